#!/bin/sh
# SPDX-License-Identifier: MIT
# Root in a box, made by root or by an ordinary user, gets at nothing of the host or another box.
. "${0%/*}/functions.sh"
# shellcheck source=user-functions.sh
. "${0%/*}/user-functions.sh"

hostile=$BUILD/tests/cli/hostile
user=12345

# A process of the host, and files that are for its root or its user alone.
sleep 98765 &
host_pid=$!
atexit kill "$host_pid"
echo 'not for boxes' >"$T/secret"
chmod 600 "$T/secret"

# In two places that a box sees, where we may write there.
planted=
if is_root; then
	for dir in /opt /usr/local/share; do
		[ -d "$dir" ] || continue
		file=$dir/abx-test-$$.secret
		atexit rm -f "$file"
		echo 'not for boxes' >"$file"
		chmod 640 "$file"
		planted="$planted $file"
	done
fi

# Without a network: who may not open /dev/net/tun has none, and this is not about it.
make_box() # RUNNER NAME
{
	"$1" create -w "$T/u/$1" -n "$2" --egress none -y
}

probe() # RUNNER WHO
{
	make_repo "$T/u/$1"
	[ "$1" = by_root ] || chown -R "$user" "$T/u"
	ok "$2: a box" make_box "$1" one || return 0
	ok "$2: another one" make_box "$1" two
	ok "$2: in which there is something to steal" "$1" exec two -- \
		sh -c 'echo secret of two >/workspace/stolen'
	# shellcheck disable=SC2086 # a list of files
	"$1" exec one --user root -- sh -c \
		'cat >/tmp/hostile && chmod 755 /tmp/hostile && exec /tmp/hostile "$@"' sh \
		"$host_pid" "$T/secret" "$T/u" "$T/home" $planted \
		<"$hostile" >"$T/probe.out" 2>"$T/probe.err" || diag "$(cat "$T/probe.err")"
	out=$(cat "$T/probe.out")
	like "$out" '^tried [0-9][0-9][0-9]' "$2: much was tried"
	unlike "$out" '^OPEN' "$2: nothing worked"
	run "$1" exec one --user root -- cat /etc/shadow /etc/gshadow
	for line in $(is_root && cut -d: -f2 /etc/shadow | grep -E '^.{13}' | sort -u); do
		case $out in *"$line"*) fail "$2: a password of the host is in the box" ;; esac
	done
	run "$1" exec one --user root -- sh -c 'find / -xdev -name stolen 2>/dev/null;
		find /proc/[0-9]*/root /proc/[0-9]*/cwd -maxdepth 3 -name stolen 2>/dev/null'
	is "$out" '' "$2: nothing of the other box can be found"
	# What goes on in the next box, as root of this one sees it.
	"$1" exec two -d -- sleep 87654 >/dev/null 2>&1
	run "$1" exec one --user root -- sh -c 'cat /proc/[0-9]*/cmdline | tr "\0" " "'
	unlike "$out" 'sleep 87654' "$2: processes of the other box are out of sight"
	# Every lock that can be reached, held: the next create does not wait for it.
	"$1" exec one --user root -d -- sh -c 'for f in /proc/1/fd/*; do
		[ ! -f "$f" ] || flock "$f" sleep 1000 & done; wait' >/dev/null 2>&1
	ok "$2: no lock of a box holds up the next one" make_box "$1" three
	ok "$2: all go" "$1" destroy --all -y
}

mkdir "$T/u" "$T/ids"
chmod 711 "$T" "$T/u"
cp "$HOME/.gitconfig" "$T/u/.gitconfig"
if ! is_root; then
	probe by_root 'ordinary user'
	done_testing
	exit
fi
probe by_root root
{ cat /etc/passwd && echo "abxtest:x:$user:$user::$T/u:/bin/sh"; } >"$T/ids/passwd"
echo "$user:1700000000:65536" >"$T/ids/with"
: >"$T/ids/without"
chown -R "$user" "$T/u"
if ! have setpriv unshare newuidmap; then
	skip 'ordinary users' -- 'setpriv, unshare and newuidmap are not all installed'
elif ! setpriv --reuid "$user" --regid "$user" --clear-groups test -x "$BUILD/tests/wrapper"; then
	skip 'ordinary users' -- 'they cannot reach the build tree'
else
	probe by_user_with_ids 'user with ids'
	# Programs that are the user's alone, and that the box's root may not even read.
	mkdir "$T/libexec"
	cp "$BUILD"/providers/local/agentbox-local-* "$T/libexec"
	chmod 700 "$T"/libexec/*
	chown -R "$user" "$T/libexec"
	AGENTBOX_LIBEXEC_PATH=$T/libexec
	export AGENTBOX_LIBEXEC_PATH
	ok 'private programs: a box' make_box by_user_with_ids one
	ok 'private programs: a command' by_user_with_ids exec one -- true
	ok 'private programs: it goes' by_user_with_ids destroy one -y
	unset AGENTBOX_LIBEXEC_PATH
	probe by_user_without_ids 'user without ids'
fi
done_testing
