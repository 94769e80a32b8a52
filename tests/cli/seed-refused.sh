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

git init -q --bare "$T/bare.git"
one_line_error 1 'bare repository' 'a bare repository is refused' \
	ab create --provider mock -w "$T/bare.git" -n x -y
git init -q --object-format=sha256 "$T/sha256" && cd "$T/sha256" && echo a >a && git add . &&
	git commit -q -m one
refused sha256 'object format is sha256'
repo reftable && mkdir .git/reftable
refused reftable 'reftable'
mkdir -p "$T/broken/.git"
refused broken 'not a git repository'
mkdir -p "$T/projects/one" && echo 'gitdir: /nowhere' >"$T/projects/one/.git"
refused projects "one': its .git is not a git repository"
# A workspace that holds AGENTBOX_HOME, plain and as a repository; not when it is ignored.
mkdir "$T/house" && AGENTBOX_HOME=$T/house/.agentbox && export AGENTBOX_HOME
ab provider list >/dev/null 2>&1
refused house "own directory with its secrets, '.*/house/.agentbox'.*gitignore"
cd "$T/house" && git init -q . && echo a >a && git add a && git commit -q -m one
refused house 'own directory with its secrets'
echo .agentbox/ >.gitignore
ok 'a workspace that ignores AGENTBOX_HOME' ab create --provider mock -w "$T/house" -n in -y
run ab exec in -- ls -A /workspace
unlike "$out" '^\.agentbox$' 'AGENTBOX_HOME stays here'
ok 'the box is gone' ab destroy in -y
one_line_error 2 'create takes a directory \(git clone' 'B022 an address is refused' \
	ab create --provider mock -w https://ada:secret@127.0.0.1:1/x.git -n x -y
unlike "$err" secret 'and not repeated'
is "$(ab list -g --json)" '[]' 'no box was made'
is "$(find "$AGENTBOX_HOME/tmp" "$AGENTBOX_HOME/boxes" -mindepth 1 2>/dev/null | head -n 3)" '' \
	'nothing is left of them here'
done_testing
