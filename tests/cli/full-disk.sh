#!/bin/sh
# SPDX-License-Identifier: MIT
# A full disk, here or in the box: what could not be written, where, that the disk is full, and
# what to do.
if [ "$(id -u)" -eq 0 ] && [ -z "${AGENTBOX_TEST_UNSHARED-}" ]; then
	AGENTBOX_TEST_UNSHARED=1 exec unshare -m "$0"
fi
. "${0%/*}/functions.sh"

is_root || skip_all 'only root can mount a small disk'
ab doctor --provider local >/dev/null 2>&1 || skip_all 'no boxes here'
for disk in work state; do
	mkdir "$T/$disk"
	mount -t tmpfs -o size=16m tmpfs "$T/$disk" || skip_all 'no tmpfs can be mounted'
	atexit umount -l "$T/$disk"
done

says() # WHAT TEXT
{
	like "$2" "^agentbox: .*$1.*No space left on device.*\(.*free some space" 'that is said'
	is "$(printf '%s\n' "$2" | grep -c '^agentbox: ')" 1 'in one line'
}

# The disk on which the project is.
make_repo "$T/work/repo"
cd "$T/work/repo" || exit 99
ok 'a box' ab create --provider local -n one -y --egress none
ok 'with much in it' ab exec one -- sh -c 'mkdir d && for f in big d/one d/two; do
	head -c 20000000 /dev/urandom >$f || exit 1; done'
run ab download one -y
is "$status" 1 'download'
like "$out" 'big: not brought back: .*No space left on device' 'names what stays behind'
like "$err" "^agentbox: .*not brought back \(free some space in '$T/work/repo'\)" \
	'and says what to do'
git clean -fdxq
code 1 'download --patch' ab download one --patch "$T/work/p" -y
says "$T/work/p" "$err"
is "$(ls "$T/work")" repo 'leaves nothing'
code 1 'cp of a file' ab cp one:big "$T/work/copy"
says "$T/work/copy" "$err"
is "$(ls "$T/work")" repo 'leaves nothing'
code 1 'cp of a directory' ab cp one:d "$T/work/copy"
says "$T/work/copy" "$err"
rm -rf "$T/work/copy"
ok 'commits' ab exec one -- sh -c 'git add -A && git commit -qm more'
code 1 'fetch' ab fetch one -y
says "$T/work/repo/.git" "$err"
ok 'it goes' ab destroy one -y

# The disk that the box writes to.
AGENTBOX_HOME=$T/state/home
ok 'a box on a small disk' ab create --provider local -n two -y --egress none
ok 'which is full' ab exec two -- sh -c 'head -c 1000000 /dev/urandom >new
	cat /dev/zero >/tmp/zero 2>/dev/null; [ -s /tmp/zero ]'
for command in 'download -y' 'diff'; do
	# shellcheck disable=SC2086
	code 1 "$command" ab $command
	says 'in the box' "$err"
done
ok 'with some space' ab exec two -- rm /tmp/zero
run ab diff --stat
like "$out" 'new' 'all is as it was'
ok 'it goes too' ab destroy two -y
done_testing
