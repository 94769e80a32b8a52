# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2154
# The current tree of the workspace, in $tree; by indexes of this process's own, so that two of
# these at once do not meet, which become the next one's starting point.
command -v git >/dev/null 2>&1 || exit 91
[ -d "$shadow" ] || exit 93
tmp=index.$$ partial=
clear_up() {
	for n in "$shadow" "$shadow"/nested/*; do
		rm -f "$n/$tmp" "$n/$tmp".*
	done
	rm -f "$shadow/all.$$"*
}
trap clear_up EXIT
trap 'exit 90' HUP INT TERM

take() {
	GIT_INDEX_FILE=$rec/$tmp
	export GIT_INDEX_FILE
	[ ! -f "$rec/index" ] || cp -p "$rec/index" "$rec/$tmp" || fail 'cp failed'
	add_all >/dev/null 2>"$rec/$tmp.err" || partial=1
	tree=$(rgit write-tree) || {
		cat "$rec/$tmp.err" >&2
		exit 90
	}
	[ -z "$partial" ] || cat "$rec/$tmp.err" >&2
	unset GIT_INDEX_FILE
}

take
if [ -d "$shadow/nested" ]; then
	cp -p "$rec/$tmp" "$shadow/all.$$" || fail 'cp failed'
	# A nested repository comes behind the one that holds it.
	n=0
	while n=$((n + 1)) && [ -d "$shadow/nested/$n" ]; do
		enter "$shadow/nested/$n"
		[ -d "$at" ] || continue
		take
		compose "$shadow/all.$$" "$tree" || exit 90
	done
	enter "$shadow"
	tree=$(GIT_INDEX_FILE=$shadow/all.$$ rgit write-tree) || exit 90
fi
if [ -z "$partial" ]; then
	for n in "$shadow" "$shadow"/nested/*; do
		[ ! -f "$n/$tmp" ] || mv -f "$n/$tmp" "$n/index"
	done
fi
