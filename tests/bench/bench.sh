#!/bin/sh
# SPDX-License-Identifier: MIT
# `make bench`: each row against its floor, built and run at the same time, in fresh directories.
# Prints ratios; asserts nothing.  Figures hold for an idle machine, a warm cache and this build.
set -eu

BUILD=${AGENTBOX_TEST_BUILDDIR:?is not set: run make bench}
runs=${BENCH_RUNS:-200}
create_runs=${BENCH_CREATE_RUNS:-30}
scratch=$(mktemp -d "${TMPDIR:-/tmp}/abx-bench.XXXXXX")
AGENTBOX_HOME=$scratch/home
AGENTBOX_PROVIDER_PATH=$BUILD/providers/local/.libs
AGENTBOX_LIBEXEC_PATH=$BUILD/providers/local
HOME=$scratch
export AGENTBOX_HOME AGENTBOX_PROVIDER_PATH AGENTBOX_LIBEXEC_PATH HOME
# Not the wrapper: the shell that it is would be timed too.
agentbox=$BUILD/agentbox
pairs=$BUILD/tests/bench/pairs
repo=$scratch/repo

clean_up()
{
	cd /
	"$agentbox" destroy --all -y --force >/dev/null 2>&1 || :
	rm -rf "$scratch"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' HUP TERM

# 20 files of some KB and one commit: what is measured is the box, not the copying.
make_repo()
{
	mkdir "$repo"
	cd "$repo"
	git -c init.defaultBranch=main init -q .
	git config user.name Bench
	git config user.email bench@example.org
	for i in $(seq 20); do
		seq "$i" 700 >"file$i.txt"
	done
	git add .
	git commit -qm 'Bench'
}

row() # WHAT FLOOR OURS TARGET
{
	printf '%-34s %9.2f %9.2f %7s  %s\n' "$1" "$2" "$3" \
		"$(awk -v a="$2" -v b="$3" 'BEGIN { printf "%.2f", b / a }')" "$4"
}

bench_version()
{
	"$pairs" "$runs" "$BUILD/tests/bench/floor-version" --- "$agentbox" version \
		>"$scratch/figures"
	{ read -r floor _ _ && read -r ours _ kb; } <"$scratch/figures"
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
	{ read -r floor _ _ && read -r ours _ _; } <"$scratch/figures"
	row 'exec in a local box' "$floor" "$ours" '<= 3 x nsenter'
	"$agentbox" destroy bench -y >/dev/null 2>&1
}

# The git commands that a create runs, here and in the box, one after the other.
bench_create()
{
	"$pairs" "$create_runs" \
		"$BUILD/tests/bench/floor-box" "$scratch/floor@N@" /bin/echo out \
		--- git -C "$repo" config -z --list \
		--then git -C "$repo" status --porcelain=v2 --branch --untracked-files=all \
		--then git -C "$repo" pack-objects -q --revs --all "$scratch/pack@N@" \
		--then git -C "$repo" status --porcelain=v2 --branch --untracked-files=all \
		--then git -C "$repo" rev-list --objects --quiet HEAD \
		--then git -C "$repo" write-tree \
		--- "$agentbox" create -w "$repo" -n "bench@N@" -y \
		--then "$agentbox" exec "bench@N@" -n -- /bin/echo out >"$scratch/figures"
	{ read -r floor _ _ && read -r git_ms _ _ && read -r ours _ _; } <"$scratch/figures"
	row 'local create, first output' "$floor" "$ours" "the git work alone takes $git_ms ms"
	row '  beside the git work' "$floor" \
		"$(awk -v a="$git_ms" -v b="$ours" 'BEGIN { print b - a }')" '<= 8 ms'
}

make_repo
printf '%-34s %9s %9s %7s  %s\n' 'median of runs in turn' 'floor ms' 'ours ms' ratio target
bench_version
bench_exec
bench_create
printf '%s runs, create %s; %s, %s processors, Linux %s\n' "$runs" "$create_runs" \
	"$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)" "$(nproc)" "$(uname -r)"
