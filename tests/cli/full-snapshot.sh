#!/bin/sh
# SPDX-License-Identifier: MIT
# Snapshots on a disk that is full: none by half, the box goes on, and the next one works.
if [ "$(id -u)" -eq 0 ] && [ -z "${AGENTBOX_TEST_UNSHARED-}" ]; then
	AGENTBOX_TEST_UNSHARED=1 exec unshare -m "$0"
fi
. "${0%/*}/functions.sh"

is_root || skip_all 'only root can mount a small disk'
ab doctor --provider local >/dev/null 2>&1 || skip_all 'no local boxes here'
make_repo "$T/repo" >/dev/null
cd "$T/repo" || exit 99
mkdir "$T/small"
mount -t tmpfs -o size=32m tmpfs "$T/small" || skip_all 'no tmpfs can be mounted'
atexit umount -l "$T/small"
rm -rf "$AGENTBOX_HOME"
AGENTBOX_HOME=$T/small/home
store=$AGENTBOX_HOME/providers/local/store

leave() # KIB: as much is free afterwards
{
	rm -f "$T/small/filler"
	head -c "$((($(df -k --output=avail "$T/small" | tail -n 1) - $1) * 1024))" /dev/zero \
		>"$T/small/filler"
}

# What is asked for with so little room either is there or is not, and is not in the way.
try() # WHAT KIB NAME COMMAND...
{
	what="$1, $2 KiB free"
	leave "$2"
	shown=$3
	shift 3
	run "$@"
	rm -f "$T/small/filler"
	if [ "$status" -eq 0 ]; then
		pass "$what: done"
		run listed
		like "$out" "$shown" "$what: and there"
		return 0
	fi
	is "$status $(printf '%s\n' "$err" | grep -c .)" '1 1' "$what: one line"
	like "$err" 'agentbox: .*(full|No space)' "$what: that says why"
	run listed
	unlike "$out" "$shown" "$what: nothing to be seen"
	is "$(find "$store/snapshots" -type f | wc -l)" 0 "$what: no snapshot"
	is "$(ab exec box -- cat mine </dev/null)" kept "$what: the box goes on"
	ok "$what: the next one works" "$@"
}

listed()
{
	ab checkpoint ls && ab list
}

ok 'a box' ab create --provider local -n box -y
ab exec box -n -- sh -c 'echo kept >mine; head -c 1000000 /dev/urandom >big'
for kib in 0 8 12 16 20 24 28 64; do
	try 'checkpoint' "$kib" '^now ' ab checkpoint create box --name now
	ok 'it goes' ab checkpoint rm now
	try 'fork' "$kib" ' copy ' ab fork box -n copy
	is "$(ab exec copy -- cat mine </dev/null)" kept 'the fork has it'
	ok 'it goes' ab destroy copy -y
done
ab exec box -n -- sh -c 'head -c 1000000 /dev/urandom >big'
ab exec box -n -d -- sleep 1000 >/dev/null
for kib in 0 32 512 768; do
	try 'checkpoint of what runs' "$kib" '^now ' ab checkpoint create box --name now
	is "$(ab exec box -- pgrep -c sleep </dev/null)" 1 'that goes on'
	ok 'it goes' ab checkpoint rm now
done
ok 'the box goes' ab destroy box -y
ok 'and with it' ab prune -y
is "$(find "$store/layers" "$store/snapshots" "$store/tmp" -mindepth 1 | wc -l)" 0 'all of it'
done_testing
