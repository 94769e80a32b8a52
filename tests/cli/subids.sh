#!/bin/sh
# SPDX-License-Identifier: MIT
# A change of /etc/subuid: boxes keep the ids that they were made with, or it is said why not.
. "${0%/*}/functions.sh"

is_root || skip_all 'only root can show another /etc/subuid'
have setpriv unshare newuidmap || skip_all 'setpriv, unshare and newuidmap are not all installed'
user=12345
first=1700000000
second=1710000000

mkdir "$T/ids" "$T/u"
chmod 711 "$T"
{ cat /etc/passwd && echo "abxtest:x:$user:$user::$T/u:/bin/sh"; } >"$T/ids/passwd"
cp "$HOME/.gitconfig" "$T/u/.gitconfig"
make_repo "$T/repo"
cp -r "$T/repo" "$T/u/repo"
chown -R "$user" "$T/u"

# What /etc/subuid says from now on.
ranges() # LINE...
{
	: >"$T/ids/sub"
	for line in "$@"; do
		echo "$line" >>"$T/ids/sub"
	done
}
with_ranges()
{
	# shellcheck disable=SC2016 # for the inner shell
	unshare -m sh -c '
		mount --make-rprivate / && mount --bind "$1/passwd" /etc/passwd &&
		for f in subuid subgid; do
			[ -e /etc/$f ] || : >/etc/$f
			mount --bind "$1/sub" /etc/$f || exit 99
		done
		shift
		exec timeout 120 "$@"' sh "$T/ids" "$@"
}
by_root()
{
	with_ranges "$BUILD/tests/wrapper" agentbox "$@"
}
by_user()
{
	with_ranges setpriv --reuid "$user" --regid "$user" --clear-groups \
		env HOME="$T/u" AGENTBOX_HOME="$T/u/${home:-home}" \
		"$BUILD/tests/wrapper" agentbox "$@"
}
first_id() # HOME
{
	grep -o '"uid": *[0-9]*' "$1/providers/local/store/ids" | grep -o '[0-9]*$'
}

ranges "root:$first:65536"
ok 'root: a box' by_root create -w "$T/repo" -n one --egress none -y
ok 'root: with work in it' by_root exec one -- sh -c 'echo work >/workspace/work'
ok 'root: it stops' by_root stop one
ranges "root:$second:65536"
run by_root exec one -- cat /workspace/work
is "$out" work 'root: another range in /etc/subuid: the box is as it was'
is "$(first_id "$AGENTBOX_HOME")" "$first" 'root: and so are its ids'
ok 'root: another box beside it' by_root create -w "$T/repo" -n two --egress none -y
ok 'root: which goes' by_root destroy two -y
by_root stop one >/dev/null 2>&1
ranges "somebody:$first:65536" "root:$second:65536"
code 1 'root: ids that were given to somebody else are not used' by_root start one
like "$err" "ids $first to .*somebody else.*root:$first:65536 in /etc/subuid" \
	'root: and what to do about it is said'
is "$(printf '%s\n' "$err" | wc -l)" 1 'root: in one line'
run by_root list -g
like "$out" 'one .*stopped' 'root: the box is still listed'
run by_root doctor --provider local
like "$out" "uid range .*$first" 'root: doctor says it too'
ok 'root: the box can be destroyed' by_root destroy one -y
ok 'root: and an empty directory gets the new range' \
	by_root create -w "$T/repo" -n one --egress none -y
is "$(first_id "$AGENTBOX_HOME")" "$second" 'root: as it says'
ok 'root: it goes too' by_root destroy one -y
printf '{"map": "dir' >"$AGENTBOX_HOME/providers/local/store/ids"
run by_root create -w "$T/repo" -n one --egress none -y
is "$status" 0 'root: a damaged record of the ids'
like "$err" 'store/ids: damaged' 'root: is named'
ok 'root: that one goes' by_root destroy one -y

ranges
home=single
ok 'a user without ids: a box' by_user create -w "$T/u/repo" -n one --egress none -y
ranges "abxtest:$first:65536"
run by_user exec one -- id -u
is "$out" 0 'a user who is given ids: the box is as it was'
run by_user doctor --provider local
like "$out" 'uid range .*were made' 'and doctor says how to get them'
by_user destroy one -y >/dev/null 2>&1
ok 'once it is gone' by_user create -w "$T/u/repo" -n one --egress none -y
run by_user exec one -- id -u
is "$out" 1000 'boxes have many ids'
ok 'it goes' by_user destroy one -y

home=home
ok 'a user: a box' by_user create -w "$T/u/repo" -n one --egress none -y
ok 'a user: it stops' by_user stop one
ranges "abxtest:$second:65536" "abxtest:$first:65536"
ok 'a user: another range before the first: it starts' by_user start one
ok 'a user: it stops again' by_user stop one
ranges "abxtest:$second:65536"
code 1 'a user: the first range is gone: it does not start' by_user start one
like "$err" "ids $first to .*not yours any more.*abxtest:$first:65536 in /etc/subuid" \
	'a user: and what to do about it is said'
code 1 'a user: nor can it be removed' by_user destroy one -y
like "$err" "not yours any more" 'a user: which is said too'
run by_user list -g
like "$out" ' one ' 'a user: the box is still listed'
ranges "abxtest:$first:65536"
ok 'a user: with the range again it goes' by_user destroy one -y
ranges "abxtest:$second:65536"
ok 'a user: a new box gets the new range' by_user create -w "$T/u/repo" -n two --egress none -y
is "$(first_id "$T/u/home")" "$second" 'a user: as it says'
ok 'a user: and it goes' by_user destroy two -y
done_testing
