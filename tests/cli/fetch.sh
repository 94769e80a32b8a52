#!/bin/sh
# SPDX-License-Identifier: MIT
# fetch makes a box's commits a branch here, and changes nothing else.
. "${0%/*}/functions.sh"

with_local mock

for p in $providers; do
	repo=$T/$p
	box=box-$p
	make_repo "$repo" >/dev/null
	make_dirty "$repo"
	ok "$p: a box" ab create --provider "$p" -w "$repo" -n "$box" -y
	run ab fetch "$box"
	is "$out" 'nothing to fetch: the box has no commits of its own' "$p: nothing to fetch"
	ok "$p: commits in the box" ab exec "$box" -- sh -c '
		git add -A && git commit -qm "work: one" && git commit -q --allow-empty -m two &&
		echo later >later'
	head=$(git -C "$repo" rev-parse HEAD)
	before=$(git -C "$repo" status --porcelain -z | tr '\0' '\n')
	run ab fetch "$box"
	like "$out" "^agentbox/$box is at [0-9a-f]{10} \(new\), 2 commits" "$p: commits come"
	like "$out" '^  [0-9a-f]+ work: one$' "$p: they are listed"
	like "$err" "1 file is not committed in the box \(agentbox download $box\)" \
		"$p: what is not committed is said"
	is "$(git -C "$repo" rev-parse "agentbox/$box")" \
		"$(ab exec "$box" -- git rev-parse HEAD)" "$p: the branch is the box's"
	is "$(git -C "$repo" rev-parse HEAD)" "$head" "$p: HEAD stays"
	is "$(git -C "$repo" status --porcelain -z | tr '\0' '\n')" "$before" \
		"$p: the work tree stays"
	run ab fetch "$box"
	like "$out" 'is up to date' "$p: nothing new"
	run ab fetch "$box" --as other --json
	like "$out" '"result":[[:space:]]*"new"' "$p: --as, --json"
	ok "$p: the other branch" git -C "$repo" rev-parse -q --verify other
	code 1 "$p: a branch that is checked out is left alone" ab fetch "$box" --as main
	like "$err" 'is checked out in' "$p: and said so"
	code 2 "$p: no name for a branch" ab fetch "$box" --as a..b
	ok "$p: the box stops" ab stop "$box"
	run ab fetch "$box"
	like "$err" 'is running now' "$p: a stopped box is started"
done

mkdir "$T/plain" && echo a >"$T/plain/a"
ok 'a box without a repository' ab create --provider mock -w "$T/plain" -n plain -y
code 1 'there is nothing to fetch into' ab fetch plain
like "$err" 'is not a git repository \(agentbox download brings the files\)' 'and it is said'
done_testing
