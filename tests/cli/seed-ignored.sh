#!/bin/sh
# SPDX-License-Identifier: MIT
# Which files go into a box: ignored ones, .agentboxignore, too many of them, special ones.
. "${0%/*}/functions.sh"

P='--provider mock -y'
git init -q "$T/r" && cd "$T/r" || exit 99
printf 'node_modules/\n.env\n' >.gitignore
mkdir -p node_modules/m apps/api data
echo m >node_modules/m/i.js
echo 1 >.env
echo 2 >apps/api/.env
echo a >a
git add . && git commit -q -m one || exit 99
list='find . -name .git -prune -o -type f -print | LC_ALL=C sort | tr "\n" " "'

# shellcheck disable=SC2086
{
	ok 'B029 no ignored file goes' ab create $P -n none
	like "$out" '3 ignored files and directories stay' 'B028 and it is said'
	like "$out" 'here .\.env, apps/api/\.env, node_modules/.:' 'by name'
	like "$out" '--include-ignored GLOB' 'and what would take them along'
	run ab exec none -- sh -c "$list"
	is "$out" './.gitignore ./a ' 'none is there'
	ok 'B028 --include-ignored' ab create $P -n env --include-ignored .env
	like "$out" '1 ignored file or directory stays here .node_modules/.:' 'the rest is said'
	run ab exec env -- sh -c "$list"
	is "$out" './.env ./.gitignore ./a ./apps/api/.env ' 'at any depth, parents made'
	run ab exec env -- git status --porcelain
	is "$out" '' 'they are ignored there too'
	ok 'the setting' ab config set box.include_ignored '/.env,node_modules'
	ok 'is for those that say nothing' ab create $P -n set
	run ab exec set -- sh -c "$list"
	is "$out" './.env ./.gitignore ./a ./node_modules/m/i.js ' 'a list, from the root'
	ok 'no setting any more' ab config unset box.include_ignored
	printf 'defaults:\n  box:\n    include_ignored: .env\n' >agentbox.yaml
	one_line_error 6 'box.include_ignored' 'not for a repository to say' ab create $P -n no
	rm agentbox.yaml

	echo d >data/d && echo data/ >.agentboxignore
	ok 'B027 .agentboxignore' ab create $P -n stay
	run ab exec stay -- sh -c "$list"
	is "$out" './.agentboxignore ./.gitignore ./a ' 'keeps untracked files here'
	rm .agentboxignore

	ok 'B027 a limit' ab config set box.max_seed 10
	one_line_error 6 'more than box.max_seed' 'is one without -y' \
		ab create --provider mock -n big
	like "$err" 'a .0.0 MiB.' 'what is large is named'
	like "$(ab list)" 'stay' 'the others are there'
	unlike "$(ab list)" 'big' 'it is not'
	ok 'and none with it' ab create $P -n big
	ok 'no limit any more' ab config unset box.max_seed

	mkdir "$T/plain" && mkfifo "$T/plain/fifo" && echo f >"$T/plain/f"
	ok 'a plain tree with a FIFO' ab create $P -n plain -w "$T/plain"
	like "$out" "1 socket, FIFO or device stays here, first 'fifo'" 'that it stays is said'
	mkdir -p d/e && mkfifo d/e/fifo d/z f.ignored && echo '*.ignored' >.git/info/exclude
	ok 'a repository with FIFOs' ab create $P -n fifos
	like "$out" "2 sockets, FIFOs or devices stay here, first 'd/e/fifo'" 'that is said too'
}
ab destroy --all -y >/dev/null 2>&1
done_testing
