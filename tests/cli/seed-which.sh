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

with_local mock
git checkout -q -b feat HEAD~1 && echo feat >only && git add only && git commit -q -m feat &&
	git checkout -q -b agentbox HEAD~1 && git checkout -q main || exit 99
echo dirty >>f && echo u >untracked && echo s >staged && git add staged
sums()
{
	git for-each-ref
	cat .git/HEAD .git/config
	find . -type f -print0 | sort -z | xargs -0 sha256sum
}
before=$(sums)
main=$(git rev-parse main) feat=$(git rev-parse feat)
state='git symbolic-ref --short HEAD; git rev-parse HEAD; git status --porcelain; ls'

for p in $providers; do
	P="--provider $p -y"
	# shellcheck disable=SC2086
	{
		ok "$p: --no-dirty" ab create $P -n clean --no-dirty
		run ab exec clean -- sh -c "$state"
		is "$out" "agentbox/clean
$main
f" "$p: what is committed"
		ok "$p: --from-branch" ab create $P -n from --from-branch feat
		run ab exec from -- sh -c "$state"
		is "$out" "agentbox/from
$feat
f
only" "$p: what is committed there"
		ok "$p: -b" ab create $P -n use -b feat
		like "$out" "note: .* on 'feat'" "$p: that other changes stay is said"
		run ab exec use -- sh -c "$state"
		is "$out" "feat
$feat
f
only" "$p: the branch itself"
		ok "$p: -b with the branch that is here" ab create $P -n here -b main
		run ab exec here -- sh -c "$state"
		is "$out" "main
$main
 M f
A  staged
?? untracked
f
staged
untracked" "$p: with what is not committed"
		# What was sent is what a host file is compared with.
		ok "$p: work on a file that is dirty here" ab exec clean -- sh -c \
			'echo box >f; echo box >made'
		run ab download clean -y
		like "$out$err" 'f.*changed on this machine' "$p: is a conflict"
		is "$(cat made; tail -n 1 f)" "box
dirty" "$p: and a file that is only there comes"
		rm -f made
	}
	is "$(sums)" "$before" "$p: B018 B020 nothing here has changed"
	ab destroy --all -y >/dev/null 2>&1
done

P='--provider mock -y'
# shellcheck disable=SC2086
{
	one_line_error 2 'only one of them' 'two branches' ab create $P -b feat --from-branch feat
	one_line_error 2 'not a name' 'no branch name' ab create $P -b 'a b'
	one_line_error 1 "'nope': there is none" 'no such branch' ab create $P -b nope
	one_line_error 1 "'--all': there is none" 'not an option' ab create $P --from-branch=--all
	mkdir "$T/none"
	one_line_error 1 'not a repository' 'no repository' ab create $P -w "$T/none" --no-dirty
	# A directory of a repository.
	mkdir -p sub/deep own && echo t >sub/deep/t && git add sub && git commit -q -m sub sub
	echo own >own/o && echo own >.git/info/exclude
	before=$(sums)
	cd sub/deep || exit 99
	ok 'in a directory of a repository' ab create $P -n part
	like "$out" "note: 'sub/deep' is a part of .*start in /workspace/sub/deep" 'it is said'
	run ab exec -- sh -c 'pwd | grep -o "sub/deep$"; ls; git -C ../.. log -1 --format=%s'
	is "$out" "sub/deep
t
sub" 'commands start there, and all of it has come'
	run ab exec part --cwd . -- cat f
	like "$out" dirty '--cwd is from the top'
	ok 'the same with -w' ab create $P -n part2 -w . --setup 'cat t >../here'
	run ab exec part2 -- cat ../here
	is "$out" t 'setup runs there'
	run ab list
	is "$(printf '%s\n' "$out" | grep -c part)" 2 'both are boxes of the project'
	cd ../.. || exit 99
	ok 'nothing in it is tracked' ab create $P -n own -w own
	run ab exec own -- sh -c 'basename "$PWD"; ls -A'
	is "$out" "workspace
o" 'it is a project of its own'
	ab destroy part part2 own -y >/dev/null
	# B020
	no 'a create that fails late' ab create $P -n feat -b feat --setup 'exit 1'
	is "$(sums)" "$before" 'B020 moves no branch'
	run ab list -g
	is "$out" 'no boxes' 'and leaves no box'
}
done_testing
