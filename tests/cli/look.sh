#!/bin/sh
# SPDX-License-Identifier: MIT
# What can be seen of boxes: files, processes, addresses, and changes as they happen.
. "${0%/*}/functions.sh"

make_repo "$T/repo" >/dev/null
with_local mock
runs_sleep()
{
	ab top "$1" -1 2>/dev/null | grep -q sleep
}

for p in $providers mockbare; do
	cd "$T/repo" || exit 99
	box=box-$p
	ok "$p: a box" ab create --provider "$p" -n "$box" -y
	ok "$p: its files" ab files "$box" .
	like "$out" '^file +0755 +[0-9]+ +20..-..-..T.*Z +run.sh$' "$p: a program"
	like "$out" '^directory .* src$' "$p: a directory"
	like "$out" '^link .* dangling$' "$p: a link, not what it leads to"
	like "$out" ' new\\x0aline$' "$p: an odd name is one line"
	like "$out" ' latin\\xe9$' "$p: and printable"
	all=$(find "$T/repo" -mindepth 1 -maxdepth 1 -printf '.\n' | wc -l)
	is "$(printf '%s\n' "$out" | wc -l)" "$all" "$p: each is there"
	ok "$p: as JSON" ab files "$box" /workspace --json
	like "$out" '"name":[[:space:]]+"new\\nline"' "$p: exact"
	like "$out" '"name_bytes":[[:space:]]+\[108, 97, 116, 105, 110, 233\]' \
		"$p: what is no UTF-8 too"
	like "$out" '"mode":[[:space:]]+493' "$p: modes are numbers"
	one_line_error 1 'none' "$p: no such directory" ab files "$box" none
	ok "$p: an empty one" ab exec "$box" -- mkdir hollow
	ok "$p: is listed" ab files "$box" hollow
	is "$out" '' "$p: as nothing"

	"$BUILD/tests/wrapper" agentbox exec "$box" -- sleep 1003 >/dev/null 2>&1 </dev/null &
	busy=$!
	ok "$p: something runs" wait_for 10 runs_sleep "$box"
	ok "$p: its processes" ab top "$box" -1
	like "$out" '^PID ' "$p: a table"
	like "$out" '^[0-9]+ .*sleep' "$p: with what runs in it"
	ok "$p: as JSON" ab top "$box" --json
	like "$out" '"pid":[[:space:]]+[0-9]+' "$p: numbers are numbers"
	kill "$busy"
	one_line_error 2 'from 1 to 65535' "$p: no port" ab url "$box" 70000
	one_line_error 2 'takes one box' "$p: stats is about one" ab stats a b
	one_line_error 3 'no box' "$p: that is there" ab stats none
done
for command in 'stats box-mockbare' 'url box-mockbare 80'; do
	# shellcheck disable=SC2086 # words
	one_line_error 1 "provider 'mockbare': cannot" "without the operation: $command" ab $command
done

end_watching()
{
	kill "$watcher" "$json" 2>/dev/null || :
}

# Changes made by other commands, by other providers, in their order.
"$BUILD/tests/wrapper" agentbox watch >"$T/watch" 2>&1 </dev/null &
watcher=$!
"$BUILD/tests/wrapper" agentbox watch -g --json >"$T/watch.json" </dev/null 2>&1 &
json=$!
atexit end_watching
ok 'watch begins' wait_for 10 grep -q ' box-mock running$' "$T/watch"
ok 'of all as JSON too' wait_for 10 grep -q '"name":"box-mock".*"was":null' "$T/watch.json"
ab stop box-mock >/dev/null 2>&1
ok 'a stop is seen' wait_for 10 grep -q ' box-mock stopped (was running)$' "$T/watch"
ok 'as JSON too' wait_for 10 grep -q '"state":"stopped","was":"running"' "$T/watch.json"
# However short.
kill -STOP "$watcher"
ab start box-mock >/dev/null 2>&1
ab stop box-mock >/dev/null 2>&1
kill -CONT "$watcher"
ok 'a state that is over is seen' \
	wait_for 10 grep -q ' box-mock running (was stopped)$' "$T/watch"
stopped_twice()
{
	[ "$(grep -c ' box-mock stopped (was running)$' "$T/watch")" -eq 2 ]
}
ok 'with its end' wait_for 10 stopped_twice
ab destroy -y box-mockbare >/dev/null 2>&1
ok 'an end is seen' wait_for 10 grep -q ' box-mockbare destroyed' "$T/watch"
ok 'a new one is made' ab create --provider mock -n late -y
ok 'and seen' wait_for 10 grep -q ' late running' "$T/watch"
kill -TERM "$watcher" "$json"
wait "$watcher"
is "$?" 0 'asked to end, it ends'
wait "$json"
is "$(grep -cv '^{"at":"[^"]*","id":"[0-9a-f]*",.*}$' "$T/watch.json")" 0 'each line a document'
one_line_error 2 'takes no argument' 'watch takes no box' ab watch late
done_testing
