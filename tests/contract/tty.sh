#!/bin/sh
# SPDX-License-Identifier: MIT
# exec and shell on a terminal: size, keys, pastes, codes; and none where nobody asked for one.
. "${0%/*}/functions.sh"

new_box one || give_up 'a box is made'
pass 'a box is made'

# on_tty [OPTION...] SCRIPT WORD...: what tool-pty.c says; without carriage returns in $out
on_tty()
{
	run "$TOOL" pty "$@"
	tr -d '\r' <"$T/run.out" >"$T/tty.out"
	out=$(cat "$T/tty.out")
}
one=$(b one)
: >"$T/nothing"

is_tty='for i in 0 1 2; do [ -t $i ] && printf "tty " || printf "no "; done; echo'
on_tty "$T/nothing" agentbox exec "$one" -- sh -c "$is_tty"
is "$out" 'tty tty tty ' 'on a terminal there is one'
on_tty "$T/nothing" agentbox exec "$one" -T -- sh -c "$is_tty"
is "$out" 'no no no ' '-T gives none'
run in_box one sh -c "$is_tty"
is "$out" 'no no no ' 'nor is there one without'
run here_in_box one -t -- sh -c "$is_tty"
is "$(printf %s "$out" | tr -d '\r')" 'tty tty tty ' '-t gives one to a pipe'
cat >"$T/piped" <<END
agentbox exec $one -- sh -c '$is_tty' </dev/null
agentbox exec $one -- sh -c '$is_tty' | cat
END
on_tty "$T/nothing" sh "$T/piped"
is "$out" "no no no 
no no no " 'nor with input or output elsewhere'
in_box one printf 'a\nb\n' </dev/null >"$T/o"
printf 'a\nb\n' >"$T/want"
same "$T/o" "$T/want" 'no carriage return is added to a pipe'

on_tty -r 41 -c 133 "$T/nothing" agentbox exec "$one" -- stty size
is "$out" '41 133' 'the size of the terminal'
cat >"$T/resize" <<'END'
wait READY
resize 50 90
END
on_tty -r 41 -c 133 "$T/resize" agentbox exec "$one" -- sh -c \
	'trap "stty size; exit 7" WINCH; echo READY; while :; do sleep 0.05; done'
is "$out:$status" "READY
50 90:7" 'a change of size is passed on'
on_tty -r 0 -c 0 "$T/nothing" agentbox exec "$one" -- stty size
like "$out" '^[1-9][0-9]* [1-9][0-9]*$' 'a terminal without a size gets a sane one'
run here_in_box one -t -- stty size
like "$(printf %s "$out" | tr -d '\r')" '^[1-9][0-9]* [1-9][0-9]*$' 'no terminal here too'

bad=
for c in 0 1 2 42 124 125 126 127 128 137 143 255; do
	on_tty "$T/nothing" agentbox exec "$one" -- sh -c "exit $c"
	[ "$status" -eq "$c" ] || bad="$bad $c=$status"
	run here_in_box one -t -- sh -c "exit $c"
	[ "$status" -eq "$c" ] || bad="$bad -t:$c=$status"
done
is "$bad" '' 'exit codes pass unchanged'
bad=
for s in TERM:143 KILL:137 SEGV:139; do
	on_tty "$T/nothing" agentbox exec "$one" -- sh -c "kill -${s%:*} \$\$"
	[ "$status" -eq "${s#*:}" ] || bad="$bad $s=$status"
done
is "$bad" '' 'death by signal n is 128+n'
on_tty "$T/nothing" agentbox exec "$one" -- "no-such-$TAG"
is "$status" 127 'a program that is not there'
like "$out" "^agentbox: .*no-such-$TAG" 'is named'

word=7$(printf %s "$TAG" | tr a-f 1-6)
printf 'wait READY\nsend \\x03\n' >"$T/intr"
on_tty "$T/intr" agentbox exec "$one" -- sh -c "echo READY; exec sleep $word"
is "$status" 130 'Ctrl-C is typed there'
wait_for 10 none_running one "$word" && pass 'and ends the command' || fail 'and ends the command'
on_tty "$T/intr" agentbox exec "$one" -- sh -c \
	'trap "echo caught; exit 5" INT; echo READY; while :; do sleep 0.05; done'
is "$status" 5 'a command may catch it'
printf 'wait READY\nsend one\\rtwo\\r\nwait two\nsend \\x04\n' >"$T/eof"
on_tty "$T/eof" agentbox exec "$one" -- sh -c 'echo READY; wc -l'
is "$status:$(tail -n 1 "$T/tty.out" | tr -d ' ')" 0:2 'Ctrl-D ends the input'
printf 'wait READY\nhangup\n' >"$T/hangup"
on_tty "$T/hangup" agentbox exec "$one" -- sh -c "echo READY; sleep $word; true"
wait_for 15 none_running one "$word" && pass 'a terminal that is closed ends the command' ||
	fail 'a terminal that is closed ends the command'

i=0
while [ "$i" -lt 1500 ]; do
	printf 'line %d \303\274\344\270\255 of what is pasted\r' "$i"
	i=$((i + 1))
done >"$T/paste"
n=$(wc -c <"$T/paste")
printf 'wait READY\npaste %s\n' "$T/paste" >"$T/script"
on_tty "$T/script" agentbox exec "$one" -- sh -c "stty raw -echo; echo READY
	head -c $n | { dd bs=1 count=3 2>/dev/null; sleep 0.5; cat; } | cksum"
is "$(tail -n 1 "$T/tty.out")" "$(cksum <"$T/paste")" "a paste of $n bytes to a slow reader"
on_tty "$T/nothing" agentbox exec "$one" -- sh -c 'printf "\344\270\255\377\0x"'
printf '\344\270\255\377\0x' >"$T/want"
same "$T/tty.out" "$T/want" 'output is bytes'

cat >"$T/restore" <<END
before=\$(stty -g)
agentbox exec $one -- sh -c 'stty raw -echo; kill -KILL \$\$'
[ "\$before" = "\$(stty -g)" ] && echo same
agentbox exec $one --timeout 1s -- sleep $word
echo code \$?
[ "\$before" = "\$(stty -g)" ] && echo same
END
on_tty "$T/nothing" sh "$T/restore"
is "$(grep -c same "$T/tty.out")" 2 'the terminal is afterwards as it was before'
like "$out" '^code 124$' 'a timeout'

TERM=xterm-256color on_tty "$T/nothing" agentbox exec "$one" -- printenv TERM
is "$out" xterm-256color 'TERM is that of the terminal'
TERM="\$(touch $T/x)" on_tty "$T/nothing" agentbox exec "$one" -- printenv TERM
like "$out" '^[A-Za-z0-9.+-]+$' 'unless it is none'
on_tty "$T/nothing" agentbox exec "$one" -- locale charmap
[ "$status" -eq 127 ] && skip 'the locale is UTF-8' -- 'there is no locale program' ||
	is "$out" UTF-8 'the locale is UTF-8'

printf 'send echo $((40+2)); [ -t 0 ] \\&\\& exit 9\\r\n' | sed 's/\\&/\&/g' >"$T/shell"
on_tty "$T/shell" agentbox shell "$one"
is "$status" 9 'shell is interactive'
# A line editor may say something of its own before.
like "$out" '42$' 'and runs what is typed'
suite_done
