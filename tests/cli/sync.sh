#!/bin/sh
# SPDX-License-Identifier: MIT
# sync brings newer commits and edits of the host into a box; what both changed stays as in the box.
. "${0%/*}/functions.sh"

with_local mock

for p in $providers; do
	repo=$T/$p
	box=box-$p
	make_repo "$repo" >/dev/null
	make_dirty "$repo"
	ok "$p: a box" ab create --provider "$p" -w "$repo" -n "$box" -y
	run ab sync "$box"
	is "$out" "box '$box' is up to date" "$p: nothing to bring"
	(
		cd "$repo" && git add -A && git commit -qm 'work of the host' &&
			echo later >later && echo host >>a.txt
	)
	ok "$p: a name that git does not take" ab exec "$box" -- sh -c 'echo 1 >.GIT'
	one_line_error 1 "not take all files of the workspace: .*\\.GIT" "$p: is named" \
		ab sync "$box"
	ok "$p: it goes" ab exec "$box" -- rm .GIT
	ok "$p: the box works" ab exec "$box" -- sh -c 'echo box >>a.txt; echo own >own'
	run ab sync "$box" --dry-run
	like "$out" '^later$' "$p: --dry-run names what would come"
	code 1 "$p: --dry-run changed nothing" ab exec "$box" -- test -e later
	sum=$(tree_sum "$repo")
	run ab sync "$box"
	is "$status" 1 "$p: a conflict is exit code 1"
	like "$out" "^a.txt: changed in the box too: the box's stays$" "$p: and named"
	like "$out" '^the branch moved to host/main, ' "$p: the branch goes on"
	is "$(tree_sum "$repo")" "$sum" "$p: nothing of the host changed"
	is "$(ab exec "$box" -- git rev-parse HEAD)" "$(git -C "$repo" rev-parse HEAD)" \
		"$p: the commits are there"
	is "$(ab exec "$box" -- cat later)" later "$p: and what is not committed"
	is "$(ab exec "$box" -- tail -n 1 a.txt)" box "$p: the box's file stays"
	run ab download "$box" --dry-run
	unlike "$out" later "$p: what came is no change of the box"
	like "$out" own "$p: what it made is"
	run ab list -g --json
	like "$out" "$(git -C "$repo" rev-parse HEAD)" "$p: the base commit is the new one"
	run ab fetch "$box"
	like "$out" 'nothing to fetch' "$p: nothing of the box's own"
	run ab sync "$box" --json
	like "$out" '"branch":[[:space:]]*"same"' "$p: --json"
	ok "$p: the box commits" ab exec "$box" -- sh -c 'git add -A && git commit -qm box'
	(
		cd "$repo" && git checkout -q a.txt && echo more >"more" && git add -A &&
			git commit -qm more
	)
	ok "$p: a merge" ab sync "$box"
	is "$(ab exec "$box" -- sh -c 'git log -1 --format=%s; git status --porcelain')" \
		"Merge 'main' of the host" "$p: it is clean"
	ok "$p: the box stops" ab stop "$box"
	run ab sync "$box"
	like "$err" 'is running now' "$p: a stopped box is started"
	ok "$p: a box of what is committed" ab create --provider "$p" -w "$repo" -n "c-$p" \
		--no-dirty -y
	one_line_error 1 'made with --from-branch.*agentbox cp' "$p: is not synced" ab sync "c-$p"
	git -C "$repo" branch other
	ok "$p: a box of another branch" ab create --provider "$p" -w "$repo" -n "o-$p" -b other -y
	one_line_error 1 'made with --from-branch' "$p: is not synced either" ab sync "o-$p"
	ok "$p: one of the branch that is checked out" ab create --provider "$p" -w "$repo" \
		-n "b-$p" -b main -y
	echo newer >"$repo/newer"
	ok "$p: is synced" ab sync "b-$p"
	is "$(ab exec "b-$p" -- cat newer)" newer "$p: it has what is newer"
	ok "$p: the box has a file too large to come back" ab exec "b-$p" -- truncate -s 17G huge
	echo newest >"$repo/newer"
	ok "$p: it is synced nevertheless" ab sync "b-$p"
	is "$(ab exec "b-$p" -- sh -c 'cat newer; find "$HOME/.agentbox" -size +10M; ls huge')" \
		"newest
huge" "$p: without reading that file"
done
done_testing
