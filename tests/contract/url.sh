#!/bin/sh
# SPDX-License-Identifier: MIT
# A web server in a box is reached from here, with everything that goes over one connection.
. "${0%/*}/functions.sh"

offers url || not_offered
# What a provider has to know beforehand; which port does not matter to the others.
new_box one --port 8123 --port 8124 || give_up 'a box is made'
pass 'a box is made'
one=$(b one)
put_tool one || give_up 'the tool runs in the box'

serve() # ADDR PORT
{
	in_box one sh -c "$BOX_TOOL serve $1 $2 \"from $2\" \
		</dev/null >/dev/null 2>&1 &" </dev/null
	wait_for 10 in_box one "$BOX_TOOL" get "http://127.0.0.1:$2/hello"
}

# curl only where the address is not plain http.
get()
{
	case $1 in
	http://*) "$TOOL" get "$1" ;;
	*) curl -sS --fail "$1" ;;
	esac
}

answers()
{
	[ "$(get "$url/hello" 2>/dev/null)" = "from $1" ]
}

serve 0.0.0.0 8123 || give_up 'a server runs in the box'
ok 'its address' ab url "$one" 8123
url=${out%/}
like "$url" '^https?://[^ ]+$' 'is one'
is "$(printf '%s\n' "$out" | wc -l | tr -d ' ')" 1 'and nothing else'
wait_for 30 answers 8123 && pass 'it answers' || give_up 'it answers'
run ab url "$one" 8123 --json
like "$out" "\"url\":[[:space:]]*\"$url/?\"" '--json has it'
run ab url "$one" 8123
is "${out%/}" "$url" 'it is the same when asked again'
n=$(size 100000000 20000000)
is "$(get "$url/bytes/$n" | cksum)" "$("$TOOL" bytes "$n" | cksum)" "an answer of $n bytes"
plain=
case $url in http://*) plain=1 ;; esac
if [ -n "$plain" ]; then
	"$TOOL" bytes "$n" >"$T/body"
	is "$("$TOOL" post "$url/sum" "$T/body")" "$("$TOOL" sum <"$T/body")" \
		"a request of $n bytes"
	"$TOOL" bytes 300000 >"$T/up"
	"$TOOL" upgrade "$url/any" <"$T/up" >"$T/down"
	is $? 0 'a connection that is upgraded'
	printf 'bye\n' | cat "$T/up" - >"$T/want"
	same "$T/down" "$T/want" 'each way, and each end by itself'
	mkfifo "$T/in"
	"$TOOL" upgrade "$url/any" <"$T/in" >"$T/talk" &
	pid=$!
	exec 9>"$T/in"
	for word in one two three; do
		printf '%s\n' "$word" >&9
		wait_for 10 grep -q "$word" "$T/talk" || fail "$word comes back at once"
	done
	exec 9>&-
	wait "$pid"
	is "$(tr '\n' ' ' <"$T/talk")" 'one two three bye ' 'back and forth'
fi
i=0
while [ "$i" -lt 20 ]; do
	get "$url/bytes/10$i" >"$T/par.$i" &
	i=$((i + 1))
done
wait
i=0 bad=
while [ "$i" -lt 20 ]; do
	[ "$(wc -c <"$T/par.$i")" -eq "10$i" ] || bad="$bad $i"
	i=$((i + 1))
done
is "$bad" '' '20 at once'

serve 127.0.0.1 8124 || give_up 'a second server runs in the box'
run ab url "$one" 8124
url=${out%/}
wait_for 30 answers 8124 && pass 'a server on 127.0.0.1 only' || fail 'a server on 127.0.0.1 only'

ok 'stop' ab stop "$one"
no 'nothing answers any more' get "$url/hello"
ok 'start' ab start "$one"
put_tool one
serve 0.0.0.0 8123 || fail 'the server runs again'
run ab url "$one" 8123
url=${out%/}
wait_for 30 answers 8123 && pass 'its address works after a start' ||
	fail 'its address works after a start'
run ab url "$one" 0
is "$status" 2 'no port'
one_line_error 3 'no-such-box' 'no box' ab url no-such-box 80
ok 'destroy' ab destroy "$one" -y
no 'nothing answers after that' get "$url/hello"
suite_done
