#!/bin/sh
# SPDX-License-Identifier: MIT
# Which state of a repository goes into a box, and how much of its history.
. "${0%/*}/functions.sh"

P='--provider mock -y'
git init -q "$T/r" && cd "$T/r" || exit 99
for i in 1 2 3 4 5; do
	echo $i >f && git add f && git commit -q -m $i || exit 99
done

# shellcheck disable=SC2086
{
	ok '--depth' ab create $P -n cut --depth 2
	like "$out" 'history: the newest 2 commits; all of it with --depth full' 'it is said'
	run ab exec cut -- git rev-list --count HEAD
	is "$out" 2 'so many commits'
	ok 'it is whole' ab exec cut -- git fsck --strict
	ok 'the setting' ab config set box.depth 3
	ok 'is for those that say nothing' ab create $P -n three
	run ab exec three -- git rev-list --count HEAD
	is "$out" 3 'so many commits'
	ok '--depth full' ab create $P -n full --depth full
	unlike "$out" 'history' 'nothing to say'
	run ab exec full -- git rev-list --count HEAD
	is "$out" 5 'all commits'
	ok 'no setting any more' ab config unset box.depth
	for bad in 0 -1 x 1x ''; do
		one_line_error 2 'depth' "--depth '$bad'" ab create $P --depth "$bad"
	done
	one_line_error 1 'depth' 'a wrong setting' ab config set box.depth 0
}
ab destroy --all -y >/dev/null 2>&1
done_testing
