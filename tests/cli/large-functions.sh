# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154
# tests/cli/large-functions.sh: large things, in and out; sourced behind functions.sh.
#
#	$provider            local where it works, else mock
#	sums DIR             a sum of names, modes, times of files, links and contents of a tree
#	sums_there BOX DIR   the same in a box
#	works DIR, works_there BOX DIR
#	                     the same without times: work that came is as old as its coming
#	timed WHAT CMD...    agentbox CMD exits with $expected (0); what it took is said, and the
#	                     largest process of ours, which may not be larger than $rss_max KiB

with_local mock
provider=${providers##* }

sums_script='cd "$1" && {
	find . -name .git -prune -o -type l -printf "%p l %l\0" -o \
		-type f -printf "%p f %m %s $2\0" | sort -z
	find . -name .git -prune -o -type f -print0 | sort -z | xargs -0 -r sha256sum -z --
} | sha256sum | cut -d" " -f1'

sums()
{
	sh -c "$sums_script" sh "$1" %Ts
}

sums_there()
{
	ab exec "$1" -n -- sh -c "$sums_script" sh "$2" %Ts
}

works()
{
	sh -c "$sums_script" sh "$1" ''
}

works_there()
{
	ab exec "$1" -n -- sh -c "$sums_script" sh "$2" ''
}

expected=0
rss_max=$(memory_limit 30720)
timed()
{
	what=$1
	shift
	rm -f "$T/rss"
	began=$(date +%s%3N)
	run env RSS_FILE="$T/rss" LD_PRELOAD="$BUILD/tests/preload/.libs/rss-at-exit.so" \
		"$BUILD/tests/wrapper" agentbox "$@"
	took=$(($(date +%s%3N) - began))
	if [ "$status" -eq "$expected" ]; then
		pass "$what"
	else
		fail "$what"
		tap_show_run "$@"
	fi
	largest=$(sort -rn "$T/rss" | head -n 1)
	diag "$what: $took ms, ${largest% *} KiB in the largest process, ${largest#* }"
	[ "${largest% *}" -le "$rss_max" ] && pass "$what: in little memory" ||
		fail "$what: in little memory"
}
