#!/bin/sh
# SPDX-License-Identifier: MIT
# diff and download bring back what a box changed, and only that; conflicts are named and left.
. "${0%/*}/functions.sh"

with_local mock

for p in $providers; do
	repo=$T/$p
	box=box-$p
	make_repo "$repo" >/dev/null
	make_dirty "$repo"
	head=$(git -C "$repo" rev-parse HEAD)
	refs=$(git -C "$repo" for-each-ref)
	ok "$p: a box" ab create --provider "$p" -w "$repo" -n "$box" -y
	run ab diff "$box" --since-create
	is "$out" '' "$p: nothing differs at first"
	run ab diff "$box"
	like "$out" '^\+\+\+ b/' "$p: but for the edits that were sent, from the commit"
	run ab download "$box" -y
	like "$out" 'nothing changed' "$p: nothing to bring back"

	# The script runs in the box.
	# shellcheck disable=SC2016
	ok "$p: work in the box" ab exec "$box" -- sh -c '
		echo more >>a.txt && printf "x\\000y" >new.bin && chmod 644 run.sh &&
		rm "star*[x]?" && git mv b.txt moved.txt && mkdir -p made/deep &&
		echo d >made/deep/file && ln -s ../a.txt made/link && echo o >x.ignored &&
		printf n >"$(printf "n\\nl\\351")" && rm link && mkdir link && echo l >link/l &&
		git add -A && git commit -qm work && echo later >later'
	run ab diff "$box" --stat
	like "$out" 'files changed' "$p: diff --stat"
	run ab diff "$box"
	like "$out" '^\+more$' "$p: diff"
	like "$out" '^Binary files /dev/null and b/new.bin differ$' "$p: binary files are named"
	run ab diff "$box" --json
	like "$out" '"path":[[:space:]]*"made/deep/file"' "$p: diff --json"
	run ab diff "$box" --json --since-create
	like "$out" '"old_path":[[:space:]]*"b.txt"' "$p: with both names of a rename"
	sum=$(tree_sum "$repo")
	ok "$p: download --dry-run" ab download "$box" --dry-run
	like "$out" '^D star\*\[x\]\?$' "$p: it lists deletions"
	is "$(tree_sum "$repo")" "$sum" "$p: and changes nothing"
	ok "$p: download" ab download "$box" -y
	for dir in "$repo" "$T/box"; do
		mkdir -p "$dir"
		(cd "$dir" && rm -f x.ignored)
	done
	rm -rf "$T/box"
	ok "$p: the box's files, to compare" ab cp "$box:." "$T/box"
	rm -rf "$T/box/.git" "$T/box/x.ignored"
	find_args='-path ./.git -prune -o ! -type d'
	# A list of arguments.
	# shellcheck disable=SC2086
	for dir in "$repo" "$T/box"; do
		(cd "$dir" && find . $find_args -printf '%p %l\0' | sort -z && find . -path ./.git \
			-prune -o -type f -print0 | sort -z | xargs -0 sha256sum --) \
			>"$T/${dir##*/}.list"
	done
	same "$T/$p.list" "$T/box.list" "$p: both sides are equal"
	is "$(stat -c %a "$repo/run.sh")" 644 "$p: modes come back"
	is "$(git -C "$repo" rev-parse HEAD)" "$head" "$p: no commit was made here"
	is "$(git -C "$repo" for-each-ref)" "$refs" "$p: no ref either"
	run ab download "$box" -y
	like "$out" 'nothing changed' "$p: a second time there is nothing"

	ok "$p: what came is deleted there" ab exec "$box" -- rm new.bin
	run ab download "$box" -y
	like "$out" '^D new.bin$' "$p: that comes too"
	[ ! -e "$repo/new.bin" ] && pass "$p: it is gone" || fail "$p: it is gone"

	ok "$p: both sides change" ab exec "$box" -- sh -c 'echo box >>a.txt; echo box >fresh'
	echo host >>"$repo/a.txt"
	code 1 "$p: a conflict" ab download "$box" -y
	like "$out" 'a\.txt: not brought back: changed on this machine' "$p: it is named"
	is "$(tail -n 1 "$repo/a.txt")" host "$p: and left alone"
	is "$(cat "$repo/fresh")" box "$p: the rest came"

	# What a box must not reach.
	mkdir "$T/$p.outside"
	ok "$p: mischief" ab exec "$box" -- sh -c 'ln -s /etc/passwd abs; ln -s ../../up up;
		mkdir -p swap; echo s >swap/s; git init -q own; echo o >own/o'
	ln -s "$T/$p.outside" "$repo/swap"
	code 1 "$p: is not brought back" ab download "$box" -y
	like "$out" 'abs: .*leaves the workspace' "$p: an absolute link"
	like "$out" 'up: .*leaves the workspace' "$p: a link upwards"
	like "$out" 'swap/s: .*symbolic link' "$p: a path through a link of ours"
	is "$(ls -A "$repo/own")" o "$p: a repository made there comes as a directory"
	is "$(ls -A "$T/$p.outside")" '' "$p: nothing is outside"
	[ ! -L "$repo/abs" ] && [ ! -L "$repo/up" ] && pass "$p: no such link is here" ||
		fail "$p: no such link is here"

	ok "$p: without its repository" ab exec "$box" -- rm -rf .git own abs up swap
	ok "$p: a file more" ab exec "$box" -- sh -c 'echo again >again'
	run ab download "$box" -y
	is "$(cat "$repo/again")" again "$p: the record does not need it"
	ok "$p: it goes" ab destroy "$box" -y
done

mkdir -p "$T/plain/d"
echo 1 >"$T/plain/d/1"
for p in $providers; do
	ok "$p: a plain directory" ab create --provider "$p" -w "$T/plain" -n "plain-$p" -y
	ok "$p: a change" ab exec "plain-$p" -- sh -c 'echo 2 >d/2; rm -f d/1; echo x >d/x.o'
	ok "$p: comes back" ab download "plain-$p" -y
	is "$(cd "$T/plain" && find . -type f | sort | tr '\n' ' ')" './d/2 ./d/x.o ' \
		"$p: all of it"
	rm -f "$T/plain/d/2" "$T/plain/d/x.o"
	echo 1 >"$T/plain/d/1"
	ok "$p: it goes" ab destroy "plain-$p" -y
done
done_testing
