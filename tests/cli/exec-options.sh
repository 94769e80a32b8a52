#!/bin/sh
# SPDX-License-Identifier: MIT
# Options of exec, its result as JSON, logs of what was detached, and a stdout that fails.
. "${0%/*}/functions.sh"

ab doctor --provider local >/dev/null 2>&1 || skip_all 'no local boxes on this machine'
mkdir "$T/plain"
printf 'hello\n' >"$T/plain/file"
mkdir "$T/plain/sub"
printf 'inside\n' >"$T/plain/sub/other"
ok 'a box' ab create --provider local -w "$T/plain" -n one -y

run ab exec one --cwd sub -- sh -c 'pwd; cat other'
is "$out" '/workspace/sub
inside' 'a relative --cwd starts from the workspace'

# Two pipes have no order: which of both is cut, nobody knows.
run ab exec one --max-output 1000 -- sh -c 'head -c 600 /dev/zero | tr "\0" a
	head -c 600 /dev/zero | tr "\0" c >&2'
said=$(printf %s "$err" | sed -n '1s/^\(c*\).*/\1/p')
is "$status:$(($(wc -c <"$T/run.out") + ${#said}))" 141:1000 \
	'--max-output cuts both streams together'
is "$(tr -d a <"$T/run.out")" '' 'what came is the beginning'
like "$err" '^c*agentbox: exec: more than 1000 bytes' 'it is said'
run ab exec one --max-output 6 -- echo hello
is "$status:$out" 0:hello 'as many bytes as are allowed'
run ab exec one --max-output 1M -- sh -c 'yes & sleep 9631; true'
is "$status" 141 'it ends the tree'
wait_for 10 sh -c "! \"$BUILD/tests/wrapper\" agentbox exec one -n -- pgrep -f 'sleep 963[1]'" &&
	pass 'all of it' || fail 'all of it'
code 125 'a size that is none' ab exec one --max-output lots -- true

run ab exec one --json -- sh -c 'echo out; exit 3'
is "$status:$out" 3:out 'stdout is the command'"'"'s'
like "$err" '"exit_code":3,"signal":null,"timed_out":false,"truncated":false' \
	'the result is on stderr'
run ab exec one --json --timeout 1s -- sleep 60
is "$status" 124 'a timeout'
like "$err" '"exit_code":124.*"timed_out":true' 'in JSON'
run ab exec one --json --max-output 3 -- echo hello
like "$err" '"exit_code":141.*"truncated":true' 'cut output in JSON'

code 125 'a full stdout' sh -c "\"$BUILD/tests/wrapper\" agentbox exec one -- echo hi >/dev/full"
like "$err" '^agentbox: .*No space left' 'says so'
code 125 'a closed stdout' sh -c "\"$BUILD/tests/wrapper\" agentbox exec one -- echo hi >&-"
like "$err" '^agentbox: .*Bad file descriptor' 'says so'
ok 'a closed stdout that nobody needs' sh -c \
	"\"$BUILD/tests/wrapper\" agentbox exec one -- true >&-"
ok 'a closed stderr' sh -c "\"$BUILD/tests/wrapper\" agentbox exec one -- sh -c 'echo x >&2' 2>&-"
one_line_error 1 'Bad file descriptor' 'other commands notice it too' \
	sh -c "\"$BUILD/tests/wrapper\" agentbox list >&-"

run ab exec one -d -- sh -c 'echo said; echo complained >&2; sleep 0.1; echo more'
id=$out
like "$id" '^[0-9a-f]+$' '-d prints an id'
more_in_log()
{
	ab logs one "$id" </dev/null | grep -q more
}
wait_for 10 more_in_log && pass 'its output is in its log' || fail 'its output is in its log'
run ab logs one "$id"
is "$out" 'said
complained
more' 'all of it'
run ab logs one -n 1
is "$out" more 'the last line of the latest one'
cd "$T/plain" || exit 1
run ab logs "$id"
is "$(printf '%s\n' "$out" | head -n 1)" said 'the id alone, with one box'
run ab exec one --user root -n -- stat -c '%a %U' "/var/log/agentbox/$id.log"
is "$out" '600 vscode' 'only its user may read it'
one_line_error 1 'no log of .nothing' 'no such log' ab logs one nothing
one_line_error 1 'is no id' 'a path is no id' ab logs one ../../etc/passwd
run ab exec one -d --json -- true
like "$out" '"exec_id":.*"[0-9a-f]+"' '-d --json has it on stdout'
code 125 '-t and -d' ab exec one -t -d -- true
code 125 '-t and -T' ab exec one -t -T -- true

# A client that is stopped gives the terminal back, and takes it again.
TOOL=$BUILD/tests/contract/agentbox-contract-tool
cat >"$T/stop.sh" <<END
set -m
before=\$(stty -g)
(
	until agentbox exec one -n -- test -e ready; do sleep 0.1; done
	pkill -TSTP -f 'agentbox exec one -- sh -c touch read[y]'
) &
agentbox exec one -- sh -c 'touch ready; read line; echo "got \$line"'
[ "\$(stty -g)" = "\$before" ] && echo restored
fg %agentbox
[ "\$(stty -g)" = "\$before" ] && echo restored again
END
printf 'wait restored\nsend word\\r\nwait again\n' >"$T/stop.script"
if have bash pkill; then
	run "$BUILD/tests/wrapper" "$TOOL" pty -t 30 "$T/stop.script" bash "$T/stop.sh"
	like "$out" 'got word' 'a stopped client goes on'
	like "$out" '^restored' 'the terminal was given back meanwhile'
	like "$out" '^restored again' 'and at the end'
fi

run env AGENTBOX_LIBEXEC_PATH="$T" "$BUILD/tests/wrapper" agentbox stop one
run env AGENTBOX_LIBEXEC_PATH="$T" "$BUILD/tests/wrapper" agentbox start one
is "$status" 5 'a provider without its programs is broken'
like "$err" 'agentbox-local-box is missing' 'and it says which'
done_testing
