#!/bin/sh
# SPDX-License-Identifier: MIT
# What cannot be carried faithfully is refused on one line, before anything costs.
. "${0%/*}/functions.sh"

refused() # NAME ERE: the directory $T/NAME
{
	one_line_error 1 "$2" "$1 is refused" ab create --provider mock -w "$T/$1" -n "$1" -y
}

repo()
{
	mkdir -p "$T/$1" && cd "$T/$1" && git init -q . && echo a >a && git add . &&
		git commit -q -m one
}

repo subdirectory && mkdir "$T/subdirectory/sub"
one_line_error 1 'part of the repository' 'a part of a repository is refused' \
	ab create --provider mock -w "$T/subdirectory/sub" -n x -y
mkdir "$T/unborn" && git init -q "$T/unborn"
refused unborn 'no commit'
git init -q --bare "$T/bare.git"
one_line_error 1 'bare repository' 'a bare repository is refused' \
	ab create --provider mock -w "$T/bare.git" -n x -y
repo origin && git commit -q --allow-empty -m two
git clone -q --depth 1 "file://$T/origin" "$T/shallow"
refused shallow 'shallow clone.*git fetch --unshallow'
git -C "$T/origin" worktree add -q "$T/linked" -b linked
refused linked '\.git is a file'
repo merging && git checkout -q -b other && echo b >a && git commit -qam b &&
	git checkout -q main && echo c >a && git commit -qam c && git merge other >/dev/null
refused merging 'merge'
repo submodule && git -c protocol.file.allow=always submodule --quiet add "$T/origin" sub &&
	git commit -qm sub
refused submodule "submodule, 'sub'"
repo lfs && echo '*.bin filter=lfs' >.gitattributes && echo b >b.bin && git add . &&
	git commit -qm lfs
refused lfs "'b.bin' is kept by Git LFS"
repo nested && git init -q inner && echo i >inner/i
refused nested 'repository of its own'
mkdir "$T/projects" && git init -q "$T/projects/one"
refused projects "'one' is a repository of its own"
is "$(ab list -g --json)" '[]' 'no box was made'
is "$(find "$AGENTBOX_HOME/tmp" "$AGENTBOX_HOME/boxes" -mindepth 1 2>/dev/null | head -n 3)" '' \
	'nothing is left of them here'
done_testing
