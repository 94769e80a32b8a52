# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2154
# Commits on stdin, one a line: those that the host has.
command -v git >/dev/null 2>&1 || exit 91
GIT_NO_REPLACE_OBJECTS=1
export GIT_NO_REPLACE_OBJECTS
tmp=$HOME/.agentbox/fetch.$$
trap 'rm -rf "$tmp"' EXIT
trap 'exit 90' HUP INT TERM
mkdir -p "$HOME/.agentbox" && mkdir "$tmp" && cat >"$tmp/has" || fail 'cannot write in the box'

# What the host lacks of $head, as a pack in $tmp/pack; nothing is said for an empty one.
pack() {
	: >"$tmp/pack"
	{
		cat "$tmp/has"
		[ ! -f "$rec/commit" ] || [ "$rec" = "$shadow" ] || cat "$rec/commit"
	} | git cat-file --batch-check='%(objectname) %(objecttype)' |
		sed -n 's/ commit$//p' >"$tmp/common"
	! grep -q -x "$head" "$tmp/common" || return 0
	set -- --revs --stdout --thin --delta-base-offset -q
	[ "$(git rev-parse --is-shallow-repository)" != true ] || set -- "$@" --shallow
	[ -z "$(git config --get extensions.partialClone)" ] || set -- "$@" --missing=allow-any
	{
		printf '%s\n--not\n' "$head"
		cat "$tmp/common"
	} | git -c pack.packSizeLimit=0 pack-objects "$@" >"$tmp/pack" || exit 90
}

say() {
	printf 'repo\000%s\000%s\000%s\000%s\000%s\000%s\000%s\000' "$path" "$@" || exit 90
}

one() {
	cd "$at" 2>/dev/null || return 0
	if ! usable; then
		[ -z "$broken" ] || say '?' "$broken" '' 0 0 0
		return 0
	fi
	head=$(git rev-parse --verify -q 'HEAD^{commit}') || head=-
	branch=$(git symbolic-ref -q --short HEAD) || branch=
	under_way=
	for name in rebase-merge rebase-apply MERGE_HEAD CHERRY_PICK_HEAD REVERT_HEAD; do
		[ ! -e "$git_dir/$name" ] || under_way=$name
	done
	# A repository in it is no file of its own.
	dirty=$(git status --porcelain -z --no-renames --untracked-files=all \
		--ignore-submodules=dirty | tr '\n\000' ' \n' | sed '/^?? .*\/$/d' | wc -l) ||
		exit 90
	stashes=$(git stash list --format=%h | wc -l) || stashes=0
	: >"$tmp/pack"
	[ "$head" = - ] || pack
	say "$head" "$branch" "$under_way" $((dirty)) $((stashes)) $(($(wc -c <"$tmp/pack")))
	cat "$tmp/pack" || exit 90
}

one
n=0
while n=$((n + 1)) && [ -d "$shadow/nested/$n" ]; do
	enter "$shadow/nested/$n"
	one
done
printf 'end\000'
