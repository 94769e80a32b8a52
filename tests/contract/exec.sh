#!/bin/sh
# SPDX-License-Identifier: MIT
# exec is as good as ssh: arguments, input, output, exit codes, and no process left behind.
# What concerns terminals is in tty.sh.
. "${0%/*}/functions.sh"

new_box one -e FROM_CREATE=yes || give_up 'a box is made'
pass 'a box is made'
me=$(in_box one id -un </dev/null)

# Arguments.
set -- '' 'a b' "'" '"' '$HOME' '`id`' '$(id)' '*' '?' '-rf' '--' '-' '{a,b}' '!x' '\' '\n' '~' \
	'a=b' ';' '&' '|' '#' "$(printf 'l1\nl2')" "$(printf 'tab\tx')" "$(printf 'latin\351')" \
	"$(printf '\344\270\255')" ' ' '%s' '' ''
printf '%s\0' "$@" >"$T/want"
ok 'odd words arrive' in_box one printf '%s\0' "$@"
same "$T/run.out" "$T/want" 'argv is byte-exact'
ok 'odd words behind sh -c' in_box one sh -c 'printf "%s\0" "$@"' "it's" "$@"
same "$T/run.out" "$T/want" 'argv is byte-exact there'
run in_box one sh -c 'printf %s "$0$1$2"' -n --user root
is "$out" '-n--userroot' 'options behind -- belong to the command'
long=$(printf '%0131071d' 7)
run in_box one sh -c 'printf %s "$1" | cksum' sh "$long"
is "$out" "$(printf %s "$long" | cksum)" 'the longest argument that there is, 128 KiB - 1'
i=0
set --
while [ "$i" -lt 100 ]; do
	set -- "$@" "word $i"
	i=$((i + 1))
done
set -- "$@" "$@" "$@" "$@" "$@" "$@" "$@" "$@" "$@" "$@"
set -- "$@" "$@" "$@" "$@" "$@" "$@" "$@" "$@" "$@" "$@"
run in_box one sh -c 'echo $#; printf "%s\n" "$@" | cksum' sh "$@"
is "$out" "10000
$(printf '%s\n' "$@" | cksum)" '10,000 arguments'
set --
big=$(printf '%0100000d' 1)
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25; do
	printf 'BIG_%d=%s\n' "$i" "$big"
done >"$T/big.env"
sed 's/^BIG/MORE/' "$T/big.env" >>"$T/big.env.2"
cat "$T/big.env" "$T/big.env.2" >"$T/big.all"
run here_in_box one --env-file "$T/big.all" -- true
case $status in
125 | 126) pass 'more than exec can take fails' ;;
0) skip 'more than exec can take fails' -- 'there it takes 5 MB' ;;
*) fail "more than exec can take fails with $status" ;;
esac
[ "$status" -eq 0 ] || like "$err" '[Tt]oo (long|large|big|many)|E2BIG' 'and it is said so'

# Input.
n=$(size 104857600 16777216)
"$TOOL" bytes "$n" >"$T/data"
is "$(in_box one sha256sum <"$T/data")" "$(sha256sum <"$T/data")" "$n bytes of stdin"
is "$(in_box one cat <"$T/data" | sha256sum)" "$(sha256sum <"$T/data")" 'there and back'
is "$(in_box one sh -c 'cat; echo end' <"$T/data" | tail -c 4)" end 'it ends where it ended'
is "$(printf 'a\nb\n' | in_box one wc -l | tr -d ' ')" 2 'the end of stdin is seen'
is "$(in_box one cat <&-)" '' 'a closed stdin'
is "$(printf x | here_in_box one -n -- cat)" '' '-n reads nothing'
run here_in_box one -i -- true
is "$status" 0 '-i is accepted'
in_box one true <"$T/data"
is $? 0 'a command that reads nothing of much'
is "$(in_box one head -c 3 <"$T/data" | wc -c | tr -d ' ')" 3 'and one that reads little'
is "$(printf 'one\ntwo\n' | {
	in_box one sh -c 'read a; echo "$a"'
})" one 'a line of a pipe'

# Output.
n=$(size 1073741824 134217728)
is "$("$TOOL" rss "$T/rss" agentbox exec "$(b one)" -- head -c "$n" /dev/zero </dev/null |
	"$TOOL" slow)" "$n" "$n bytes of output to a slow reader"
rss=$(cat "$T/rss")
[ "$rss" -lt 65536 ] && pass 'in constant memory' || fail "in constant memory, not $rss KiB"
in_box one sh -c 'cat; printf "" >&2' <"$T/data" 2>"$T/err" | cmp -s - "$T/data" &&
	pass 'every byte' || fail 'every byte'
m=$(size 20000000 4000000)
in_box one sh -c 'head -c '"$m"' /dev/zero & head -c '"$m"' /dev/zero | tr "\0" e >&2; wait' \
	>"$T/o" 2>"$T/e" </dev/null
is "$(tr -d '\0' <"$T/o" | wc -c) $(wc -c <"$T/o")" "0 $m" 'stdout apart'
is "$(tr -d e <"$T/e" | wc -c) $(wc -c <"$T/e")" "0 $m" 'stderr apart'
is "$(in_box one seq 1 200000 </dev/null | cksum)" "$(seq 1 200000 | cksum)" 'in order'
is "$(in_box one sh -c 'for i in 1 2 3 4 5 6 7 8 9; do echo $i; echo e$i >&2; done' \
	2>"$T/e" </dev/null | tr -d '\n')$(tr -d '\n' <"$T/e")" \
	123456789e1e2e3e4e5e6e7e8e9 'in order within each stream'
is "$(in_box one sh -c 'printf "\344"; sleep 0.1; printf "\270"; sleep 0.1; printf "\255\n"' \
	</dev/null)" "$(printf '\344\270\255')" 'UTF-8 that is split'
printf 'a\0b\0\0\n\r\n\r' >"$T/nul"
in_box one sh -c 'printf "a\0b\0\0\n\r\n\r"' >"$T/o" </dev/null
same "$T/o" "$T/nul" 'NUL bytes and line ends'
printf 'no newline' >"$T/want"
in_box one printf 'no newline' >"$T/o" </dev/null
same "$T/o" "$T/want" 'no newline is added'
in_box one sh -c 'echo now; while [ ! -e go ]; do sleep 0.05; done; echo end' >"$T/live" \
	</dev/null &
pid=$!
wait_for 20 grep -q now "$T/live" && pass 'it comes as it is written' ||
	fail 'it comes as it is written'
in_box one touch go </dev/null
wait "$pid"
is "$(cat "$T/live")" "now
end" 'to its end'
in_box one yes "y-$TAG" 2>"$T/e" </dev/null | head -n 1 >"$T/o"
is "$(cat "$T/o" "$T/e")" "y-$TAG" 'a reader that had enough'
wait_for 10 none_running one "y-$TAG" && pass 'ends the command' || fail 'ends the command'
run in_box one sh -c 'exec >&-; echo gone >&2; exit 4'
is "$status$err" 4gone 'a closed stdout there'

# Codes.
bad=
for c in 0 1 2 42 124 125 126 127 128 137 143 255; do
	in_box one sh -c "exit $c" </dev/null
	[ $? -eq "$c" ] || bad="$bad $c"
done
is "$bad" '' 'exit codes pass unchanged'
bad=
for s in TERM:143 KILL:137 SEGV:139 INT:130 HUP:129 ABRT:134; do
	in_box one sh -c "kill -${s%:*} \$\$" </dev/null 2>/dev/null
	c=$?
	[ "$c" -eq "${s#*:}" ] || bad="$bad $s=$c"
done
is "$bad" '' 'death by signal n is 128+n'
code 127 'a program that is not there' in_box one "/no/such/$TAG"
like "$err" "^agentbox: .*/no/such/$TAG" 'is named'
code 127 'nor without a name' in_box one ''
like "$err" "^agentbox: .*not found" 'which is said'
code 127 'nor on PATH' in_box one "no-such-$TAG"
like "$err" "^agentbox: .*no-such-$TAG" 'is named'
code 126 'one that is not executable' in_box one /workspace/file
like "$err" '^agentbox: .*/workspace/file' 'is named'
code 126 'a directory' in_box one /workspace
ok 'a script without #!' in_box one sh -c 'echo "echo ran \"\$1\"" >s && chmod 755 s'
run in_box one ./s 'a b'
is "$status:$out" '0:ran a b' 'runs as in a shell'
one_line_error 125 '/no/such/dir' 'no such directory' here_in_box one --cwd /no/such/dir -- true
one_line_error 125 '/workspace/file' 'a directory that is none' \
	here_in_box one --cwd /workspace/file -- true
one_line_error 125 'nobody-here' 'no such user' here_in_box one --user nobody-here -- true
one_line_error 125 'nothing-like-it' 'no such box' ab exec nothing-like-it -- true
run here_in_box one --cwd /tmp -- pwd
is "$out" /tmp '--cwd'

# Nothing lives on.
word=8$(printf %s "$TAG" | tr a-f 1-6)
sleeper="sleep $word"
code 124 'a timeout' here_in_box one --timeout 1s -- sh -c "setsid $sleeper & $sleeper"
wait_for 10 none_running one "$word" && pass 'ends the whole tree' || fail 'ends the whole tree'
code 124 'a timeout of what ignores TERM' here_in_box one --timeout 1s -- \
	sh -c "trap '' TERM INT HUP; $sleeper; $sleeper"
wait_for 15 none_running one "$word" && pass 'ends that too' || fail 'ends that too'
code 0 'a timeout that is not reached' here_in_box one --timeout 1m -- true
for sig in INT TERM HUP KILL; do
	"$TOOL" sigdfl agentbox exec "$(b one)" -- sh -c "setsid $sleeper & $sleeper; true" \
		</dev/null >/dev/null 2>&1 &
	pid=$!
	wait_for 20 some_running one "$word" || fail "$sig: the command runs"
	kill -"$sig" "$pid"
	wait "$pid" 2>/dev/null
	c=$?
	# A transport that does not tell has it found out by its silence, of 20 s.
	wait_for 30 none_running one "$word" &&
		pass "the client ended by $sig: the tree goes too" ||
		fail "the client ended by $sig: the tree goes too"
	[ "$c" -ne 0 ] && pass 'and it says so' || fail 'and it says so'
done
run in_box one sh -c "$sleeper & echo started"
is "$status:$out" 0:started 'a grandchild that keeps the pipe does not hold the client'
is "$(running one "$word")" 1 'it lives on'
run in_box one sh -c "$sleeper >/dev/null 2>&1 </dev/null & echo started"
is "$status:$out" 0:started 'nor does one in the background'
in_box one pkill -f "$word" </dev/null >/dev/null 2>&1
run here_in_box one -d -- sh -c 'while [ ! -e go2 ]; do sleep 0.05; done; echo ran >ran'
is "$status" 0 '-d returns at once'
in_box one touch go2 </dev/null
wait_for 20 in_box one test -s ran && pass 'and the command goes on' ||
	fail 'and the command goes on'

# The environment.
names()
{
	# shellcheck disable=SC2086
	in_box "$@" env -0 </dev/null | tr '\n' ' ' | tr '\0' '\n' | cut -d= -f1 | sort |
		grep -vx -e PWD -e 'AGENTBOX[A-Z_]*' -e OLDPWD -e SHLVL -e _ \
			${AGENTBOX_CONTRACT_ENV:+$(printf ' -e %s' $AGENTBOX_CONTRACT_ENV)} |
		tr '\n' ' '
}
SECRET_OF_HOST=$TAG
export SECRET_OF_HOST
is "$(names one)" 'FROM_CREATE HOME LANG LOGNAME PATH SHELL TERM USER ' \
	'nothing is in the environment but what is documented'
run in_box one sh -c 'echo "$USER|$LOGNAME|$FROM_CREATE"; cd && pwd; echo "$HOME"; id -un'
is "$out" "$me|$me|yes
$(in_box one sh -c 'echo ~' </dev/null)
$(in_box one printenv HOME </dev/null)
$me" 'and it is right'
odd=$(printf 'n1\nn2=\351 %s' "\$HOME '\"")
ODD=$odd
export ODD
run here_in_box one -e A='x y' -e B= -e C=a=b=c -e ODD -- \
	sh -c 'printf "%s\0" "$A" "$B" "$C" "$ODD"'
printf '%s\0' 'x y' '' 'a=b=c' "$odd" >"$T/want"
same "$T/run.out" "$T/want" 'odd values arrive'
printf 'FILE_A=1\n# comment\n\nFILE_B=two words\n' >"$T/env"
run here_in_box one --env-file "$T/env" -- sh -c 'echo "$FILE_A|$FILE_B"'
is "$out" '1|two words' '--env-file'
run here_in_box one -e FROM_CREATE=no -- printenv FROM_CREATE
is "$out" no 'that of the command wins'
HIDDEN=hidden$TAG
export HIDDEN
here_in_box one -e HIDDEN -- sh -c 'echo "$HIDDEN" >seen; while [ ! -e go3 ]; do sleep 0.1; done' \
	</dev/null &
pid=$!
wait_for 20 in_box one test -s seen || fail 'it runs'
shown=$(grep -l "hid[d]en$TAG" /proc/[0-9]*/cmdline 2>/dev/null)
is "$shown" '' 'a value is in no command line of this machine'
in_box one touch go3 </dev/null
wait "$pid"

# Many at once.
n=$(size 100 25)
i=0
while [ "$i" -lt "$n" ]; do
	in_box one sh -c "cat; echo $i; exit $i" >"$T/par.$i" 2>&1 </dev/null &
	eval "pid_$i=\$!"
	i=$((i + 1))
done
i=0 bad=
while [ "$i" -lt "$n" ]; do
	eval "wait \$pid_$i"
	[ $? -eq "$i" ] && [ "$(cat "$T/par.$i")" = "$i" ] || bad="$bad $i"
	i=$((i + 1))
done
is "$bad" '' "$n at once, each with its own output and code"

# A box that rests.
if offers stop || offers pause; then
	ok 'stop' ab stop "$(b one)"
	run in_box one cat /workspace/file
	is "$out" hello 'a stopped box is started first'
fi
if offers pause; then
	ok 'pause' ab pause "$(b one)"
	run in_box one cat /workspace/file
	is "$out" hello 'a paused box is resumed first'
fi
suite_done
