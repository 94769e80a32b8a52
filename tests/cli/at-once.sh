#!/bin/sh
# SPDX-License-Identifier: MIT
# download and sync at once on one box: no update of the record of what was sent is lost, and one
# line says who waits.  Two boxes that download into one workspace do not meet either.
. "${0%/*}/functions.sh"
# shellcheck source=fault-functions.sh
. "${0%/*}/fault-functions.sh"

# hold UNDER WORD...: the command begins, and stops where it first changes a file below UNDER.
hold()
{
	under=$1
	shift
	FAULT_UNDER=$under FAULT_AT=1 FAULT_KIND=stop LD_PRELOAD=$fault_preload \
		"$BUILD/tests/wrapper" agentbox "$@" </dev/null >"$T/held.out" 2>"$T/held.err" &
	held=$!
	wait_for 60 is_stopped "$held" || fail "$1 is held"
}

is_stopped()
{
	grep -q '^State:[[:space:]]*T' "/proc/$1/status"
}

# It ends, and $held_status is how.
let_go()
{
	held_status=0
	kill -CONT "$held"
	wait "$held" || held_status=$?
}

busy="^agentbox: box 'one': another download or sync is under way"

ok 'a box' ab create --provider mock -w "$repo" -n one -y
ok 'another one' ab create --provider mock -w "$repo" -n two -y
ok 'work in it' ab exec one -- sh -c 'echo 1 >made'
echo here >"$repo/later"

hold "$repo" download one -y
one_line_error 1 "$busy" 'sync while a download is under way' ab sync one
one_line_error 1 "$busy" 'download, too' ab download one -y
run ab download one --dry-run
is "$status" 0 '--dry-run reads only'
ok 'and so does diff' ab diff one
let_go
is "$held_status" 0 'the download comes to its end'
is "$(cat "$repo/made")" 1 'with what the box made'
ok 'then sync works' ab sync one
is "$(ab exec one -- cat later)" here 'with what is new here'

# Each knows what the other one did.
ok 'the box goes on with both' ab exec one -- sh -c 'echo 2 >made; echo box >later'
run ab download one -y
is "$status" 0 'no change is a conflict'
is "$(cat "$repo/made" "$repo/later")" "2
box" 'both come back'

ok 'more work' ab exec one -- sh -c 'echo 3 >made'
echo there >"$repo/later"
hold "$AGENTBOX_HOME/boxes/$(box_id one)/manifest" sync one
one_line_error 1 "$busy" 'download while a sync is under way' ab download one -y
let_go
is "$held_status" 0 'the sync comes to its end'
ok 'then download works' ab download one -y
is "$(cat "$repo/made" "$repo/later")" "3
there" 'with what the box made, and nothing else'

# Two boxes, one file.
ok 'one box changes a file' ab exec one -- sh -c 'echo one >a.txt'
ok 'the other one, too' ab exec two -- sh -c 'echo two >a.txt'
hold "$repo" download one -y
ab download two -y </dev/null >"$T/two.out" 2>"$T/two.err" &
two=$!
let_go
is "$held_status" 0 'the first one comes back'
wait "$two" && fail 'the second one is a conflict' || pass 'the second one is a conflict'
is "$(cat "$repo/a.txt")" one 'what came first stays'
like "$(cat "$T/two.out" "$T/two.err")" 'a.txt: not brought back: changed on this machine' \
	'which is said'
done_testing
