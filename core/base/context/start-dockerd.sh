#!/bin/sh
# SPDX-License-Identifier: MIT
# Start an engine in a box, as root; where one runs already, nothing happens.  It says which storage
# the engine has and returns once that answers.  Otherwise one line says why: exit code 44, there is
# no engine in the box; 45, what is around the box forbids it; 46, it does not start.
set -u
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C
data=/var/lib/docker run=/var/run log=/var/log/agentbox/dockerd.log groups=/sys/fs/cgroup

die() # CODE TEXT
{
	printf '%s\n' "$2" >&2
	exit "$1"
}

answers()
{
	if command -v docker >/dev/null; then
		docker -H "unix://$run/docker.sock" version >/dev/null 2>&1
	else
		[ -S "$run/docker.sock" ]
	fi
}

# A command that only what is around the box can keep from its work.
must()
{
	must_said=$("$@" 2>&1) || die 45 "$(printf '%s' "$must_said" | head -n 1)"
}

writable() # MOUNT
{
	must mount -o remount,bind,rw "$1"
}

# The engine makes groups below the box's own.
open_groups()
{
	if [ ! -e "$groups/cgroup.controllers" ]; then
		for group in "$groups"/*; do
			[ -L "$group" ] || [ -w "$group" ] || writable "$group"
		done
		return
	fi
	[ -w "$groups" ] || writable "$groups"
	# A group has either processes or groups with controllers.
	must mkdir -p "$groups/box"
	while IFS= read -r process; do
		echo "$process" 2>/dev/null >"$groups/box/cgroup.procs"
	done <"$groups/cgroup.procs"
	sed 's/ / +/g; s/^/+/' "$groups/cgroup.controllers" 2>/dev/null \
		>"$groups/cgroup.subtree_control"
}

# A layer over another one must carry a program that runs and a file that is written.
can() # MOUNT-COMMAND
{
	rm -rf "$probe" && mkdir -p "$probe/l" "$probe/u" "$probe/w" "$probe/m" || return 1
	printf '#!/bin/sh\nexit 0\n' >"$probe/l/x" && chmod 755 "$probe/l/x"
	layers=lowerdir=$probe/l,upperdir=$probe/u,workdir=$probe/w
	"$@" -o "$layers" "$probe/m" >/dev/null 2>&1 || return 1
	"$probe/m/x" 2>/dev/null && echo y 2>/dev/null >"$probe/m/x"
	can=$?
	umount "$probe/m" 2>/dev/null || umount -l "$probe/m"
	return "$can"
}

choose_storage()
{
	probe=$data/agentbox-probe
	mkdir -p "$data" || die 46 "$data: it cannot be made"
	[ -e /dev/fuse ] || mknod -m 666 /dev/fuse c 10 229 2>/dev/null
	if can mount -t overlay overlay; then
		storage=overlay2
	elif command -v fuse-overlayfs >/dev/null && can fuse-overlayfs; then
		storage=fuse-overlayfs
	else
		storage=vfs
	fi
	rm -rf "$probe"
}

command -v dockerd >/dev/null || die 44 'there is no dockerd in it'
if answers; then
	echo running
	exit 0
fi
[ -w /proc/sys/net ] || {
	must mount --bind /proc/sys/net /proc/sys/net
	writable /proc/sys/net
}
open_groups
choose_storage
# What an engine that ended, or that of the box this one was forked from, has left.
rm -rf "$run/docker" "$run/docker.pid" "$run/docker.sock" "$run/containerd"
mkdir -p "${log%/*}" || die 46 "${log%/*}: it cannot be made"
setsid dockerd --storage-driver "$storage" >"$log" 2>&1 </dev/null &
engine=$! tries=0
until answers; do
	tries=$((tries + 1))
	if ! kill -0 "$engine" 2>/dev/null; then
		die 46 "dockerd ended: $(grep -v 'level=\(info\|warning\)' "$log" | tail -n 4 |
			tr '\n' ' ')"
	fi
	[ "$tries" -lt 300 ] || die 46 "dockerd does not answer; $log is what it says"
	sleep 0.2
done
echo "$storage"
