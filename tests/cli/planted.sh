#!/bin/sh
# SPDX-License-Identifier: MIT
# What other users of this machine cannot read, root of a box over this machine cannot read:
# a 0600 file and a 0700 directory in every top-level directory, before and while it runs.
. "${0%/*}/functions.sh"

is_root || skip_all 'only root can plant files in every top-level directory'
ab doctor --provider local >/dev/null 2>&1 || skip_all 'no local boxes on this machine'

canary=canary-$$-$(date +%s)
mark=.abx-planted-$$
planted=$T/planted
: >"$planted"

plant() # WHEN
{
	for top in /*; do
		[ -d "$top" ] && [ ! -L "$top" ] || continue
		case $top in /proc | /sys) continue ;; esac
		where=$top/$mark.$1
		[ ! -e "$where.file" ] || continue
		(umask 077 && printf '%s\n' "$canary" >"$where.file") 2>/dev/null || continue
		mkdir -m 0700 "$where.dir" || continue
		printf '%s\n' "$canary" >"$where.dir/inner"
		chmod 644 "$where.dir/inner"
		printf '%s\n' "$where" >>"$planted"
	done
	# Below directories that a box may write to over the host's.
	mkdir -p /usr/local/lib
	where=/usr/local/lib/$mark.$1
	(umask 077 && printf '%s\n' "$canary" >"$where.file")
	mkdir -m 0700 "$where.dir"
	printf '%s\n' "$canary" >"$where.dir/inner"
	printf '%s\n' "$where" >>"$planted"
	printf 'everybody\n' >"/usr/$mark.$1.open"
	printf '%s\n' "/usr/$mark.$1.open" >>"$planted"
}

# shellcheck disable=SC2317 # called at the end
unplant()
{
	while read -r where; do
		rm -rf "$where" "$where.file" "$where.dir"
	done <"$planted"
}
atexit unplant

# shellcheck disable=SC2016 # for the shell in the box
look='
for where; do
	cat "$where.file" "$where.dir/inner" "$where.dir"/* 2>/dev/null
	ls -A "$where.dir" 2>/dev/null
	cp "$where.file" /tmp/copy 2>/dev/null && cat /tmp/copy
	ln "$where.file" /tmp/link 2>/dev/null && cat /tmp/link
	chmod 644 "$where.file" 2>/dev/null && cat "$where.file"
	chmod -R 755 "$where.dir" 2>/dev/null && cat "$where.dir/inner"
	chown 0:0 "$where.file" 2>/dev/null && cat "$where.file"
	mv "$where.dir" /tmp/moved 2>/dev/null && cat /tmp/moved/inner
	dd if="$where.file" 2>/dev/null
done
find / -xdev -name "*$MARK*" -type f -exec cat {} + 2>/dev/null
find /proc/1/root/ -maxdepth 3 -name "*$MARK*" -type f -exec cat {} + 2>/dev/null
true'

examine() # WHEN
{
	for user in root vscode; do
		# shellcheck disable=SC2046 # the names have no blanks
		run ab exec glass --user "$user" -e MARK="$mark" -- sh -c "$look" sh \
			$(grep -v 'open$' "$planted")
		is "$status" 0 "$1: $user can look"
		unlike "$out" "canary" "$1: $user sees none of them"
		unlike "$out" "^inner" "$1: $user cannot list the directories"
	done
	run ab exec glass --user root -- cat "/usr/$mark.$1.open"
	is "$out" 'everybody' "$1: what everybody may read is there"
}

plant before
n=$(grep -c . "$planted")
[ "$n" -ge 10 ] && pass "planted in $n places" || fail "planted in $n places only"
mkdir "$T/repo"
make_repo "$T/repo" >/dev/null
ok 'a box over this machine' ab create --provider local -w "$T/repo" -n glass -y
examine before
plant while
examine while
for secret in /etc/shadow /etc/gshadow /etc/ssh/ssh_host_ed25519_key /root/.ssh /var/lib/docker; do
	[ -e "$secret" ] || continue
	if [ -f "$secret" ]; then
		ab exec glass --user root -- cat "$secret" >"$T/theirs" 2>/dev/null </dev/null
		grep -qxFf "$secret" "$T/theirs" && fail "$secret is the host's" ||
			pass "$secret is not the host's"
	else
		no "$secret is not there" ab exec glass --user root -- ls "$secret"
	fi
done
done_testing
