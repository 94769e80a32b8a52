#!/bin/sh
# SPDX-License-Identifier: MIT
# --disk: a project quota where the file system has one, refused where it has not.
. "${0%/*}/functions.sh"

make_repo "$T/repo"
# A file system of our own, in a mount namespace of our own.
mounted()
{
	unshare -m sh -c 'mount --make-rprivate / &&
		mount -o loop,prjquota "$1/image" "$1/disk" && shift && exec "$@"' sh "$T" "$@"
}

# One without quotas; that of this machine may have them.
bare()
{
	unshare -m sh -c 'mount --make-rprivate / && mount -t tmpfs tmpfs "$1" && shift &&
		exec "$@"' sh "$T/bare" "$@"
}

mkdir "$T/disk" "$T/bare"
if is_root; then
	cat >"$T/refused" <<'END'
agentbox create -w "$1" -n no --egress none --disk 64M -y
code=$?
agentbox list -g --json | tr -d ' \n'
exit "$code"
END
	run bare env AGENTBOX_HOME="$T/bare/home" "$BUILD/tests/wrapper" sh "$T/refused" "$T/repo"
	is "$status" 1 'no quota here: refused'
	like "$err" '^agentbox: .*disk limit: .*leave the limit out' 'in a line with a remedy'
	is "$out" '[]' 'nothing was made'
else
	one_line_error 1 'disk limit: .*run as root.*leave the limit out' \
		'only root may set a quota: refused, with a remedy' \
		ab create -w "$T/repo" -n no --egress none --disk 64M -y
fi
if ! is_root || ! have mkfs.ext4 unshare; then
	skip 'a disk with quota' -- 'making one takes root and mkfs.ext4'
elif ! { truncate -s 256M "$T/image" && mkfs.ext4 -q -O quota,project "$T/image" &&
	mounted true; } >/dev/null 2>&1; then
	skip 'a disk with quota' -- 'this kernel mounts none (no CONFIG_QFMT_V2)'
else
	# One mount for all of it: a loop device belongs to it.
	cat >"$T/inside" <<'END'
set -eu
cd "$1"
fails()
{
	! "$@" 2>/dev/null || { echo "worked: $*" >&2; exit 1; }
}
agentbox create -w "$1" -n small --egress none --disk 32M -y >/dev/null
agentbox exec small -n -- dd if=/dev/zero of=/workspace/a bs=1M count=16
fails agentbox exec small -n -- dd if=/dev/zero of=/workspace/b bs=1M count=32
agentbox stats small --json
agentbox checkpoint create small --name kept >/dev/null
fails agentbox exec small -n -- dd if=/dev/zero of=/workspace/b bs=1M count=32
agentbox fork small -n twin >/dev/null
fails agentbox exec twin -n -- dd if=/dev/zero of=/workspace/c bs=1M count=48
agentbox exec twin -n -- stat -c twin:%s /workspace/a
agentbox stop small >/dev/null
agentbox start small >/dev/null
fails agentbox exec small -n -- dd if=/dev/zero of=/workspace/c bs=1M count=48
agentbox destroy small -y >/dev/null
agentbox destroy twin -y >/dev/null
agentbox checkpoint rm kept -y >/dev/null
agentbox create -w "$1" -n large --egress none -y >/dev/null
agentbox exec large -n -- dd if=/dev/zero of=/workspace/b bs=1M count=48
agentbox destroy large -y >/dev/null
END
	run mounted env AGENTBOX_HOME="$T/disk/home" "$BUILD/tests/wrapper" sh "$T/inside" "$T/repo"
	is "$status" 0 'a box writes as much as it may, and no more'
	like "$out" 'disk_limit_bytes.*33554432' 'stats says how much that is'
	like "$out" 'twin:16777216' 'a fork has what was there, and the limit too'
	[ "$status" -eq 0 ] || diag "$err"
fi
done_testing
