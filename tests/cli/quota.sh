#!/bin/sh
# SPDX-License-Identifier: MIT
# --disk: a project quota where the file system has one, refused where it has not.
. "${0%/*}/functions.sh"

make_repo "$T/repo"
one_line_error 1 'disk limit: .*leave the limit out' 'no quota here: refused, with a remedy' \
	ab create -w "$T/repo" -n no --egress none --disk 64M -y
run ab list -g --json
is "$(printf '%s' "$out" | tr -d ' \n')" '[]' 'nothing was made'

# A file system of our own, in a mount namespace of our own.
mounted()
{
	unshare -m sh -c 'mount --make-rprivate / &&
		mount -o loop,prjquota "$1/image" "$1/disk" && shift && exec "$@"' sh "$T" "$@"
}

mkdir "$T/disk"
if ! is_root || ! have mkfs.ext4 unshare; then
	skip 'a disk with quota' -- 'making one takes root and mkfs.ext4'
elif ! { truncate -s 256M "$T/image" && mkfs.ext4 -q -O quota,project "$T/image" &&
	mounted true; } >/dev/null 2>&1; then
	skip 'a disk with quota' -- 'this kernel mounts none (no CONFIG_QFMT_V2)'
else
	# One mount for all of it: a loop device belongs to it.
	cat >"$T/inside" <<'END'
set -eu
agentbox create -w "$1" -n small --egress none --disk 32M -y >/dev/null
agentbox exec small -n -- dd if=/dev/zero of=/workspace/a bs=1M count=16 2>/dev/null
! agentbox exec small -n -- dd if=/dev/zero of=/workspace/b bs=1M count=32 2>/dev/null
agentbox stats small --json
agentbox destroy small -y >/dev/null
agentbox create -w "$1" -n large --egress none -y >/dev/null
agentbox exec large -n -- dd if=/dev/zero of=/workspace/b bs=1M count=48 2>/dev/null
agentbox destroy large -y >/dev/null
END
	run mounted env AGENTBOX_HOME="$T/disk/home" "$BUILD/tests/wrapper" sh "$T/inside" "$T/repo"
	is "$status" 0 'a box writes as much as it may, and no more'
	like "$out" 'disk_limit_bytes.*33554432' 'stats says how much that is'
	diag "$err"
fi
done_testing
