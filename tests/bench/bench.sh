#!/bin/sh
# SPDX-License-Identifier: MIT
# `make bench`: each row against its floor, built and run at the same time, in fresh directories.
# Prints ratios; asserts nothing.  Figures hold for an idle machine, a warm cache and this build.
set -eu

# shellcheck source=functions.sh
. "${0%/*}/functions.sh"
runs=${BENCH_RUNS:-200}
create_runs=${BENCH_CREATE_RUNS:-30}
snapshot_runs=${BENCH_SNAPSHOT_RUNS:-12}
copy_runs=${BENCH_COPY_RUNS:-3}
many_runs=${BENCH_MANY_RUNS:-5}
crowd_runs=${BENCH_CROWD_RUNS:-3}
large_runs=${BENCH_LARGE_RUNS:-5}
many=8
crowd=50
AGENTBOX_PROVIDER_PATH=$BUILD/providers/local/.libs
AGENTBOX_LIBEXEC_PATH=$BUILD/providers/local
HOME=$scratch
export AGENTBOX_PROVIDER_PATH AGENTBOX_LIBEXEC_PATH HOME
repo=$scratch/repo

bench_version()
{
	"$pairs" "$runs" "$BUILD/tests/bench/floor-version" --- "$agentbox" version \
		>"$scratch/figures"
	figures
	row 'agentbox version' "$floor" "$ours" "<= 3 x a program linked to SQLite"
	row '  its memory, MB' 10 "$(awk -v kb="$kb" 'BEGIN { print kb / 1024 }')" '<= 10 MB'
}

bench_exec()
{
	"$agentbox" create -w "$repo" -n bench -y >"$scratch/log" 2>&1 || {
		cat "$scratch/log"
		exit 1
	}
	pid=$(cat "$AGENTBOX_HOME"/providers/local/store/boxes/*/run.json |
		sed -n 's/.*"pid": *\([0-9]*\).*/\1/p')
	"$pairs" "$runs" nsenter -t "$pid" -U --preserve-credentials -m -p -i -u -n /bin/true \
		--- "$agentbox" exec bench -n -- /bin/true >"$scratch/figures"
	figures
	row 'exec in a local box' "$floor" "$ours" '<= 3 x nsenter'
	"$agentbox" destroy bench -y >/dev/null 2>&1
}

# The targets in milliseconds were set where a bare box takes 1.7: what they are here.
target() # MS
{
	awk -v ms="$1" -v here="$box_floor" 'BEGIN {
		printf "<= %.1f ms (%s where a bare box takes 1.7)", ms * here / 1.7, ms }'
}

bench_create()
{
	IFS='
'
	# shellcheck disable=SC2046 # one argument a line
	"$pairs" "$create_runs" \
		"$BUILD/tests/bench/floor-box" "$scratch/floor@N@" /bin/echo out \
		--- $(git_work "$repo" "$scratch/pack@N@") \
		--- "$agentbox" create -w "$repo" -n "bench@N@" -y \
		--then "$agentbox" exec "bench@N@" -n -- /bin/echo out >"$scratch/figures"
	unset IFS
	figures
	box_floor=$floor
	row 'local create, first output' "$floor" "$third" "the git work alone takes $ours ms"
	row '  beside the git work' "$floor" \
		"$(awk -v a="$ours" -v b="$third" 'BEGIN { print b - a }')" "$(target 8)"
	row '  processor time' \
		"$(awk -v a="$floor_cpu" -v b="$ours_cpu" 'BEGIN { print a + b }')" \
		"$third_cpu" 'the floor is box and git work'
}

# The raw steps, the git work among them, for each of several boxes at once; against commands
# that each make one, and against one that makes all.
bench_many()
{
	: >"$scratch/raw"
	: >"$scratch/each"
	for i in $(seq "$many"); do
		[ "$i" = 1 ] || echo --and | tee -a "$scratch/each" >>"$scratch/raw"
		git_work "$repo" "$scratch/packs@N@-$i" >>"$scratch/raw"
		printf '%s\n' --then "$BUILD/tests/bench/floor-box" "$scratch/floors@N@-$i" \
			/bin/echo out >>"$scratch/raw"
		printf '%s\n' "$agentbox" create -w "$repo" -n "each@N@-$i" -y \
			--then "$agentbox" exec "each@N@-$i" -n -- /bin/echo out >>"$scratch/each"
	done
	IFS='
'
	# shellcheck disable=SC2046 # one argument a line
	"$pairs" "$many_runs" $(cat "$scratch/raw") --- $(cat "$scratch/each") \
		--- "$agentbox" create -w "$repo" -n "all@N@" --count "$many" -y \
		>"$scratch/figures"
	unset IFS
	figures
	row "$many creates at once, first outputs" "$floor" "$ours" '<= 1.5 x the raw steps at once'
	row '  processor time' "$floor_cpu" "$ours_cpu" ''
	row "create --count $many" "$floor" "$third" '<= 1.5 x the raw steps at once'
	row '  processor time' "$floor_cpu" "$third_cpu" ''
	"$agentbox" destroy --all -y >/dev/null 2>&1
}

# The raw git steps of one create, for each of many at once, against as many creates, and against
# one that makes as many.
bench_crowd()
{
	: >"$scratch/raw"
	: >"$scratch/each"
	for i in $(seq "$crowd"); do
		[ "$i" = 1 ] || echo --and | tee -a "$scratch/each" >>"$scratch/raw"
		git_work "$repo" "$scratch/crowd@N@-$i" >>"$scratch/raw"
		printf '%s\n' "$agentbox" create -w "$repo" -n "crowd@N@-$i" -y >>"$scratch/each"
	done
	# Boxes of other runs take memory and processes.
	printf '%s\n' --first "$agentbox" destroy --all -y --force --then >"$scratch/none"
	"$agentbox" create -w "$repo" -n first -y >/dev/null 2>&1
	IFS='
'
	# shellcheck disable=SC2046 # one argument a line
	"$pairs" "$crowd_runs" $(cat "$scratch/raw") \
		--- $(cat "$scratch/none" "$scratch/each") \
		--- $(cat "$scratch/none") "$agentbox" create -w "$repo" -n "all@N@" \
		--count "$crowd" -y >"$scratch/figures"
	unset IFS
	figures
	row "$crowd creates at once" "$floor" "$ours" '<= 1.5 x the raw git steps at once'
	row '  processor time' "$floor_cpu" "$ours_cpu" ''
	row "create --count $crowd" "$floor" "$third" '<= 1.5 x the raw git steps at once'
	row '  processor time' "$floor_cpu" "$third_cpu" ''
	"$agentbox" destroy --all -y --force >/dev/null 2>&1
}

# 195 MiB in 20,000 files of a work tree, by tar and a git status, and by create.
bench_large()
{
	large=$scratch/large
	large_tree "$large"
	quiet_repo "$large"
	git -C "$large" add .
	git -C "$large" commit -qm Large
	cat >"$scratch/tar-tar" <<-'END'
		#!/bin/sh
		mkdir "$2" && tar -C "$1" -c . | tar -C "$2" -x &&
			exec git -C "$2" status --porcelain
	END
	chmod 755 "$scratch/tar-tar"
	"$pairs" "$large_runs" "$scratch/tar-tar" "$large" "$scratch/tarred@N@" \
		--- "$agentbox" create -w "$large" -n "large@N@" -y >"$scratch/figures"
	figures
	row '195 MiB in 20,000 files goes in' "$floor" "$ours" '<= 1.25 x tar | tar and git status'
	memory_row
	"$agentbox" destroy --all -y --force >/dev/null 2>&1
	rm -rf "$large" "$scratch"/tarred*
}

# 195 MiB in 20,000 files that a box writes itself, also where they are already.
# shellcheck disable=SC2016 # perl's
fill_script='
	my $text = join("", map { "line $_ of a file that is like source\n" } 1 .. 280);
	for my $d (1 .. 200) {
		mkdir "/home/vscode/d$d";
		for my $f (1 .. 100) {
			open(my $o, ">", "/home/vscode/d$d/f$f") or die;
			print $o $text or die;
			close($o) or die;
		}
	}'
fill() # BOX
{
	"$agentbox" exec "$1" -n -- perl -e "$fill_script"
}

# FIRST makes ready what each run is about, and is not counted.  What is dirty then is flushed
# before: how long that takes is the disk's, and what is left to the other side's syncfs is like it.
bench_snapshot() # WHAT BOX RUNS [FIRST...]
{
	what=$1 box=$2 n=$3
	shift 3
	"$pairs" "$n" sync -f "$AGENTBOX_HOME" \
		--- "$@" "$agentbox" checkpoint create "$box" --name "$box@N@" >"$scratch/figures"
	figures
	row "checkpoint, $what" "$floor" "$ours" 'the floor is a syncfs'
	row '  beside it' "$floor" "$beside" "$(target 8)"
	"$pairs" "$n" sync -f "$AGENTBOX_HOME" \
		--- "$@" "$agentbox" fork "$box" -n "$box-fork@N@" >"$scratch/figures"
	figures
	row "fork, $what" "$floor" "$ours" 'a snapshot, a box, and its record'
	row '  beside it' "$floor" "$beside" "$(target 8)"
	"$agentbox" destroy --all -y >/dev/null 2>&1
}

# The same for one whose writable layer has the whole tree anew each time: sealed once, it is in a
# layer below.
bench_snapshots()
{
	"$agentbox" create -w "$repo" -n empty -y >/dev/null 2>&1
	bench_snapshot 'a box that wrote nothing' empty "$snapshot_runs"
	cat >"$scratch/refill" <<-END
		#!/bin/sh
		"$agentbox" exec "\$1" -n -- perl -e '$fill_script' && exec sync -f "$AGENTBOX_HOME"
	END
	chmod 755 "$scratch/refill"
	"$agentbox" create -w "$repo" -n full -y >/dev/null 2>&1
	bench_snapshot '195 MiB in 20,000 files' full "$copy_runs" \
		--first "$scratch/refill" full --then
}

# A box with a process in it: its layer is copied.
bench_copy()
{
	"$agentbox" create -w "$repo" -n busy -y >/dev/null 2>&1
	fill busy
	"$agentbox" exec busy -n -d -- sleep 3600 >/dev/null
	upper=$(echo "$AGENTBOX_HOME"/providers/local/store/boxes/*/layers/upper)
	"$pairs" "$copy_runs" cp -a "$upper" "$scratch/copy@N@" --then sync -f "$scratch" \
		--- "$agentbox" checkpoint create busy --name "busy@N@" \
		--- "$agentbox" fork busy -n "busy-fork@N@" >"$scratch/figures"
	figures
	row 'checkpoint while a process runs' "$floor" "$ours" '<= 1.3 x cp -a and syncfs'
	row 'fork while a process runs' "$floor" "$third" '<= 1.3 x cp -a and syncfs'
	"$agentbox" destroy --all -y >/dev/null 2>&1
}

# What a box that does nothing holds in memory: its first process and its network.
bench_memory()
{
	"$agentbox" create -w "$repo" -n idle -y >/dev/null 2>&1
	"$agentbox" exec idle -n -- true
	pid=$(sed -n 's/.*"pid": *\([0-9]*\).*/\1/p' \
		"$AGENTBOX_HOME"/providers/local/store/boxes/*/run.json)
	# Its network is whoever has the file open that says that there is one, and its child.
	net=$(for fd in /proc/[0-9]*/fd/*; do
		case $(readlink "$fd") in
		"$AGENTBOX_HOME"/*/net) echo "$fd" ;;
		esac
	done | sed -n 's,^/proc/\([0-9]*\)/.*,\1,p' | sort -u)
	kb=0
	for p in "$pid" $net $(for n in $net; do pgrep -P "$n" || :; done); do
		kb=$((kb + $(awk '/^Pss:/ { print $2 }' "/proc/$p/smaps_rollup")))
	done
	row 'an idle box with its network, MB' 2 \
		"$(awk -v kb="$kb" 'BEGIN { print kb / 1024 }')" '<= 2 MB'
	"$agentbox" destroy idle -y >/dev/null 2>&1
}

small_repo "$repo"
cd "$repo"
printf '%-36s %9s %9s %7s  %s\n' 'median of runs in turn' 'floor ms' 'ours ms' ratio target
bench_version
bench_exec
bench_create
bench_many
bench_crowd
bench_large
bench_snapshots
bench_copy
bench_memory
printf '%s runs, create %s; %s, %s processors, Linux %s\n' "$runs" "$create_runs" \
	"$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)" "$(nproc)" "$(uname -r)"
