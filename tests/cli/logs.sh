#!/bin/sh
# SPDX-License-Identifier: MIT
# What a detached command has said, to its end, and how it ended.
. "${0%/*}/functions.sh"

make_repo "$T/repo" >/dev/null
cd "$T/repo" || exit 99
with_local mockbare

detach()
{
	run ab exec -d box "$@"
	id=$out
}

says_end()
{
	run timeout 60 "$BUILD/tests/wrapper" agentbox logs -f box "$id"
	is "$status" 0 "$p: -f ends with its command"
	is "$err" "agentbox: logs: $id $1" "$p: $1"
}

# field NAME: its value in the document that was printed.
field()
{
	printf '%s\n' "$out" | sed -n "s/.*\"$1\":[[:space:]]*\"*\([^\",]*\)\"*,*\$/\1/p"
}

has_died()
{
	! ab exec box -- kill -0 "$1" 2>/dev/null
}

for p in $providers; do
	ok "$p: a box" ab create --provider "$p" -n box -y
	detach -- sh -c 'exit 7'
	says_end 'ended with exit code 7'
	run ab logs box --json
	is "$(field exec_id) $(field state) $(field exit_code) $(field signal)" \
		"$id ended 7 null" "$p: as a document"
	detach -- sh -c 'kill -9 $$'
	says_end 'was ended by signal 9 (exit code 137)'
	run ab logs box "$id" --json
	is "$(field exit_code) $(field signal)" '137 9' "$p: as a document"
	detach --timeout 1s -- sleep 1004
	says_end 'ran out of time (exit code 124)'

	# It goes on when somebody is seen to follow it.
	detach -- sh -c 'echo one; echo two; while [ ! -e /tmp/go ]; do sleep 0.1; done; echo three'
	run ab logs box
	like "$err" "^agentbox: logs: $id is still running\$" "$p: not over yet"
	"$BUILD/tests/wrapper" agentbox logs -f -n 1 box "$id" >"$T/out" 2>"$T/err" </dev/null &
	follower=$!
	ok "$p: followed" wait_for 20 grep -q two "$T/out"
	ok "$p: it goes on" ab exec box -- touch /tmp/go
	wait "$follower"
	is "$?" 0 "$p: the follower ends"
	is "$(cat "$T/out")" "$(printf 'two\nthree')" "$p: with the last words, and none twice"
	is "$(cat "$T/err")" "agentbox: logs: $id ended with exit code 0" "$p: and says how"

	# Nobody is left who could say how it ended.
	detach -- sh -c 'echo $PPID; exec sleep 1005'
	ok "$p: it says who watches it" wait_for 20 sh -c '
		"$0" agentbox logs box 2>/dev/null | grep -q .' "$BUILD/tests/wrapper"
	watcher=$(ab logs box "$id" 2>/dev/null)
	ok "$p: the watcher dies" ab exec --user root box -- kill -9 "$watcher"
	ok "$p: for good" wait_for 20 has_died "$watcher"
	says_end 'ended when its box was stopped, or was killed'
	run ab logs box "$id" --json
	is "$(field state) $(field exit_code)" 'lost null' "$p: as a document"

	# What the box says of it is the box's word.
	detach -- true
	says_end 'ended with exit code 0'
	state=$(ab logs box "$id" --json | sed -n 's/.*"log":[^"]*"\(.*\)\.log".*/\1.state/p')
	for lie in 'ended 999 0 0' 'ended -1 0 0' 'ended 0 0' 'running' 'x' ''; do
		ab exec --user root box -- sh -c 'printf "%s\n" "$1" >"$2"' sh "$lie" "$state"
		run ab logs box "$id" --json
		is "$status" 0 "$p: a state that is none: '$lie'"
		is "$(field exit_code)" null "$p: is no exit code"
	done
	code 2 "$p: a document has no lines" ab logs box --json -n 3
	ok "$p: over" ab destroy -y box
done
done_testing
