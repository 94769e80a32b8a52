#!/bin/sh
# SPDX-License-Identifier: MIT
# The state of a box is kept, and boxes are made of it that go their own way.
. "${0%/*}/functions.sh"

offers snapshot_create || not_offered
git init -q -b main "$T/repo"
(cd "$T/repo" && printf 'one\n' >file && mkdir -p deep/er && printf 'two\n' >deep/er/file &&
	git add -A && git commit -qm first) >/dev/null || exit 99
printf 'dirty\n' >"$T/repo/dirty"
cd "$T/repo" || exit 99
# The workspace is given twice; the last one counts.
new_box one -w "$T/repo" || give_up 'a box of a repository'
pass 'a box of a repository'
one=$(b one) kept=ct-$TAG-kept
word=5$(printf %s "$TAG" | tr a-f 1-6)

in_box one sh -c "echo changed >file && echo new >new &&
	rm deep/er/file && echo home >~/home &&
	ln -s new link && chmod 700 new && mkdir -m 711 dir && truncate -s 1M sparse &&
	git add new &&
	git -c user.name=x -c user.email=x@example.org commit -qm agent" </dev/null ||
	fail 'an agent works'
state='cat file new ~/home; ls deep/er; readlink link; stat -c %a new dir; git log --format=%s
	git status --porcelain; git branch --show-current; wc -c <sparse; id -un'
in_box one sh -c "$state" >"$T/state" </dev/null

drop()
{
	ab checkpoint rm "$kept" -y </dev/null >/dev/null 2>&1
	ab checkpoint rm "$kept-2" -y </dev/null >/dev/null 2>&1
}
atexit drop

ok 'a checkpoint' ab checkpoint create "$one" --name "$kept"
run ab checkpoint ls
like "$out" "$kept" 'it is listed'
run ab checkpoint ls --json
like "$out" "\"name\":[[:space:]]*\"$kept\"" 'in JSON too'
ok 'the box goes on' in_box one sh -c 'echo later >file; echo later >later'
run ab checkpoint create "$one" --name "$kept"
[ "$status" -ne 0 ] && pass 'its name is taken' || fail 'its name is taken'
like "$err" "$kept" 'and it is said'

new_box two -w "$T/repo" --snapshot "$kept" && pass 'a box of it' || fail 'a box of it'
in_box two sh -c "$state" >"$T/state.2" </dev/null
same "$T/state" "$T/state.2" 'has what was kept'
no 'nothing that came later' in_box two test -e later
ok 'it may write' in_box two sh -c 'echo two >file && echo two >two && rm new && echo x >~/x'
is "$(in_box one cat file </dev/null)" later 'the first sees nothing of that'
no 'nor a new file' in_box one test -e two
new_box three -w "$T/repo" --snapshot "$kept" && pass 'a second box of it' ||
	fail 'a second box of it'
in_box three sh -c "$state" >"$T/state.3" </dev/null
same "$T/state" "$T/state.3" 'has what was kept'
run ab diff --since-create "$(b two)"
like "$out" '^\+two' 'diff compares with where it all began'
like "$out" '^-one' 'and with nothing else'
unlike "$out" 'dirty' 'what was seeded is no change'

ok 'the first goes' ab destroy "$one" -y
is "$(in_box two cat file </dev/null)" two 'the others stay'
ok 'a box of a checkpoint stops' ab stop "$(b three)"
in_box three sh -c "$state" >"$T/state.3" </dev/null
same "$T/state" "$T/state.3" 'and starts with what it had'
ok 'the checkpoint goes' ab checkpoint rm "$kept" -y
run ab checkpoint ls
unlike "$out" "$kept" 'it is not listed any more'
code 3 'nor removed twice' ab checkpoint rm "$kept" -y
run ab_create -w "$T/repo" -n "$(b none)" --snapshot "$kept"
[ "$status" -ne 0 ] && pass 'nor is a box made of it' || fail 'nor is a box made of it'
in_box three sh -c "$state" >"$T/state.3" </dev/null
same "$T/state" "$T/state.3" 'its boxes live on'

# With processes.
in_box two sh -c "sleep $word >/dev/null 2>&1 </dev/null &" </dev/null
put_tool two && in_box two sh -c "$BOX_TOOL count n </dev/null >/dev/null 2>&1 &" </dev/null
ok 'a fork of a box at work' ab fork "$(b two)" -n "$(b four)"
boxes="$boxes four"
is "$(in_box four cat file two </dev/null | tr '\n' ' ')" 'two two ' 'has its files'
is "$(running two "$word")" 1 'the box goes on working'
n=$(in_box two cat n </dev/null)
counts()
{
	[ "$(in_box two cat n </dev/null)" -gt "$n" ]
}
wait_for 10 counts && pass 'and writing' || fail 'and writing'
m=$(in_box four cat n </dev/null)
wait_for 10 counts
n=$(in_box two cat n </dev/null)
counts_too()
{
	[ "$(in_box four cat n </dev/null)" -gt "$m" ]
}
if [ "$(running four "$word")" = 0 ]; then
	! counts_too && pass 'what it writes does not reach the fork' ||
		fail 'what it writes does not reach the fork'
else
	wait_for 10 counts_too && pass 'the fork works on too' || fail 'the fork works on too'
fi
in_box four sh -c 'echo four >file; echo four >only-four' </dev/null
is "$(in_box two cat file </dev/null)" two 'nor the other way round'
run ab diff "$(b four)"
like "$out" '^\+four' 'diff of a fork'
run ab download "$(b four)" -y
is "$status:$(cat "$T/repo/file" "$T/repo/only-four" | tr '\n' ' ')" '0:four four ' \
	'download from a fork'
ok 'a fork of a fork' ab fork "$(b four)" -n "$(b five)"
boxes="$boxes five"
is "$(in_box five cat file </dev/null)" four 'has its files'
run ab fork "$(b four)" -n "$(b five)"
[ "$status" -ne 0 ] && pass 'under a name that is taken: no' ||
	fail 'under a name that is taken: no'
ok 'the one between goes' ab destroy "$(b four)" -y
is "$(in_box five cat file </dev/null)" four 'the last one stays'
ok 'three at once' ab fork "$(b five)" -n "$(b six)" --count 3
boxes="$boxes six-1 six-2 six-3"
is "$(for i in 1 2 3; do in_box "six-$i" cat file </dev/null; done | tr '\n' ' ')" \
	'four four four ' 'each has its files'
ok 'a checkpoint that ends the processes' ab checkpoint create "$(b two)" --name "$kept-2" --stop
is "$(running two "$word")" 0 'they are gone'
is "$(in_box two cat file </dev/null)" two 'its files are there'
ok 'of a box that is stopped' sh -c 'agentbox stop "$1" && agentbox fork "$1" -n "$2"' - \
	"$(b two)" "$(b seven)"
boxes="$boxes seven"
is "$(in_box seven cat file </dev/null)" two 'a fork has its files'
ok 'the last checkpoint goes' ab checkpoint rm "$kept-2" -y
suite_done
