#!/bin/sh
# SPDX-License-Identifier: MIT
# exec is as good as ssh: argv, stdin, output, exit codes, timeouts, and no process left.
. "${0%/*}/functions.sh"

ab doctor --provider local >/dev/null 2>&1 || skip_all 'no local boxes on this machine'
mkdir "$T/plain"
printf 'hello\n' >"$T/plain/file"
ok 'a box' ab create --provider local -w "$T/plain" -n one -y -e FROM_CREATE=yes

bad=
for c in 0 1 2 42 124 125 126 127 128 137 143 255; do
	ab exec one -- sh -c "exit $c" </dev/null
	[ $? -eq "$c" ] || bad="$bad $c"
done
is "$bad" '' 'exit codes pass unchanged'
code 143 'death by TERM' ab exec one -- sh -c 'kill -TERM $$'
code 137 'death by KILL' ab exec one -- sh -c 'kill -KILL $$'
code 127 'no such program' ab exec one -- /no/such/program
like "$err" '^agentbox: .*/no/such/program' 'it is said'
code 127 'no name' ab exec one -- ''
like "$err" "^agentbox: exec: '': not found" 'it is said'
code 127 'no name, with arguments' ab exec one -- '' x
code 126 'not executable' ab exec one -- /workspace/file
like "$err" '^agentbox: .*/workspace/file' 'it is said'
one_line_error 125 '/no/such/dir' 'no such directory' ab exec one --cwd /no/such/dir -- true
one_line_error 125 'nobody-here' 'no such user' ab exec one --user nobody-here -- true

for word in '' 'a b' "'" '"' '$HOME' '`id`' '*' '-rf' '--' '{a,b}' '!x' '\' "$(printf 'l1\nl2')" \
	"$(printf 'latin\351')"; do
	printf '%s\0' "$word"
done >"$T/want"
ok 'odd words' ab exec one -- printf '%s\0' '' 'a b' "'" '"' '$HOME' '`id`' '*' '-rf' '--' '{a,b}' \
	'!x' '\' "$(printf 'l1\nl2')" "$(printf 'latin\351')"
same "$T/run.out" "$T/want" 'argv is byte-exact'
long=$(printf '%0131071d' 0)
run ab exec one -- sh -c 'printf %s "$1" | wc -c' sh "$(printf '%0130000d' 0)"
is "$out" 130000 'an argument of 130,000 bytes'
[ "${#long}" -eq 131071 ] && code 0 'the longest argument there is' ab exec one -- true "$long"

head -c 20000000 /dev/urandom >"$T/random"
sum=$(sha256sum <"$T/random")
is "$(ab exec one -- sha256sum <"$T/random")" "$sum" '20 MB of stdin'
is "$(ab exec one -- cat <"$T/random" | sha256sum)" "$sum" '20 MB there and back'
is "$(printf 'a\nb\n' | ab exec one -- wc -l)" 2 'the end of stdin is seen'
is "$(ab exec one -- cat <&-)" '' 'a closed stdin'
is "$(printf 'x' | ab exec one -n -- cat)" '' '-n reads nothing'
run ab exec one -- sh -c 'echo out; echo err >&2'
is "$out" out 'stdout alone'
is "$err" err 'stderr alone'
ab exec one -- yes 2>"$T/yes.err" | head -n 1 >"$T/yes.out"
is "$(cat "$T/yes.out" "$T/yes.err")" y 'a reader that had enough'

run ab exec one -e A='x y' -e B= -- sh -c 'echo "$A|$B|$FROM_CREATE|$HOME|$USER|$PWD"'
is "$out" 'x y||yes|/home/vscode|vscode|/workspace' 'the environment'
SECRET_X=from-here ab exec one -e SECRET_X -- sh -c 'echo "$SECRET_X"' >"$T/env.out" </dev/null
is "$(cat "$T/env.out")" from-here '-e K takes it from here'
is "$(ab exec one --user root -- id -u </dev/null)" 0 '--user root'
is "$(ab exec one -- id -un </dev/null)" vscode 'the box user'

count_in_box()
{
	ab exec one --user root -- sh -c \
		'n=0; for f in /proc/[0-9]*/cmdline; do
			tr "\0" " " <$f 2>/dev/null | grep -q "^sleep 9876" && n=$((n + 1))
		done; echo $n' </dev/null
}
none_in_box()
{
	[ "$(count_in_box)" = 0 ]
}
some_in_box()
{
	[ "$(count_in_box)" != 0 ]
}

code 124 'a timeout' ab exec one --timeout 1s -- sh -c 'setsid sleep 9876 & sleep 9876'
wait_for 5 none_in_box && pass 'it ends the whole tree' || fail 'it ends the whole tree'
for sig in INT TERM HUP KILL; do
	# A shell starts background jobs with SIGINT ignored, nohup(1) all with SIGHUP.
	"$BUILD/tests/contract/agentbox-contract-tool" sigdfl \
		"$BUILD/tests/wrapper" agentbox exec one -- sh -c \
		'setsid sleep 9876 & sleep 9876; true' </dev/null >/dev/null 2>&1 &
	pid=$!
	wait_for 10 some_in_box || fail "$sig: the command runs"
	kill -"$sig" "$pid"
	wait "$pid" 2>/dev/null
	wait_for 5 none_in_box && pass "client ended by $sig: the tree goes too" ||
		fail "client ended by $sig: the tree goes too"
done
ab exec one -- sh -c 'sleep 9876 >/dev/null 2>&1 & echo started' >"$T/bg.out" </dev/null
is "$(cat "$T/bg.out")" started 'a background process does not hold the command'
is "$(count_in_box)" 1 'and lives on'
start=$(date +%s)
ab exec one -- sh -c 'sleep 9876 & echo started' >"$T/bg.out" </dev/null
[ $(($(date +%s) - start)) -lt 60 ] && pass 'not even one that keeps the pipe' ||
	fail 'not even one that keeps the pipe'

ok 'stop' ab stop one
run ab exec one -- cat file
is "$out" hello 'a stopped box is started'
is "$(count_in_box)" 0 'stopping ended its processes'
run ab shell one -- 'echo "$0" | grep -c .; exit 3'
is "$status" 3 'shell runs a line'
run ab shell one -- printf '%s|' 'a b' '$HOME'
is "$out" 'a b|$HOME|' 'shell runs words unchanged'
ab exec one -- sh -c 'trap "" TERM; echo run >>log; while :; do sleep 1; done' >/dev/null 2>&1 \
	</dev/null &
pid=$!
wait_for 10 ab exec one -- test -s log || fail 'the command that is stopped begins'
ok 'stopped under a command' ab stop one --grace 0
wait "$pid"
case $? in
125 | 137) pass 'the command ends with it' ;;
*) fail 'the command ends with it' ;;
esac
is "$(ab status one --json | grep -c stopped)" 1 'the box stays stopped'
is "$(ab exec one -- cat log </dev/null)" run 'and the command ran once'

# Whoever supervises the command may be killed before it has said a word.
for i in 1 2 3; do
	ab exec one --user root -- sh -c 'echo run >>killed; kill -9 -1' \
		>/dev/null 2>&1 </dev/null
done
is "$(ab exec one -- cat killed </dev/null | grep -c run)" 3 'a command is never run again'

# timeout(1) signals the process and then its group: that is one signal.
ok 'the same signal twice at once is one' sh -c 'for i in 1 2 3 4 5; do
	timeout --preserve-status -s TERM 1 "$0" agentbox exec one -T -- \
		sh -c "trap \"exit 9\" TERM; sleep 50 & wait" </dev/null
	[ $? = 9 ] || exit 1
done' "$BUILD/tests/wrapper"
i=0
while [ "$i" -lt 100 ]; do
	ab exec one -- sh -c "echo $i" >"$T/par.$i" 2>&1 </dev/null &
	i=$((i + 1))
done
wait
is "$(cat "$T"/par.* | sort -n | uniq | wc -l)" 100 '100 at once'
done_testing
