#!/bin/sh
# SPDX-License-Identifier: MIT
# Commands and files in boxes of the provider e2b, against the emulated service: the suites of the
# contract that are about them, what they cost in requests, and what happens when requests fail.
# e2b.sh has the other suites.  AGENTBOX_TEST_SUITES: which ones, AGENTBOX_TEST_FULL=1: with the
# full sizes.
. "${0%/*}/e2b-functions.sh"

e2b_emulator
TOOL=$BUILD/tests/contract/agentbox-contract-tool
export AGENTBOX_PROVIDER=e2b
mkdir "$T/project" "$T/tree" && cd "$T" && echo hello >project/file || exit 99
ok 'a box' ab create -w "$T/project" -n one -y
e2b_forget

asked() # WANTED DESC
{
	is "$(e2b_asked | sed 's/^POST .*\///; s/?.*//' | tr '\n' ' ')" "$1" "$2"
	e2b_forget
}
run ab exec one -- cat /workspace/file
asked 'Start ' 'a command is one request'
echo 'some words' >words
is "$(ab exec one -- cat <words)" 'some words' 'it is given what there is'
asked 'Start ' 'with it'
"$TOOL" bytes 3000000 >some
is "$(ab exec one -- cksum <some)" "$(cksum <some)" 'and much'
e2b_forget
cp some tree/a
cp words tree/b
ok 'a tree in' ab cp tree one:there
like "$(e2b_asked | tr '\n' ' ')" \
	'Start POST /process.Process/StreamInput POST /process.Process/CloseStdin $' 'is one stream'
e2b_forget
ok 'a tree out' ab cp one:there back
ok 'as it was' diff -r tree back

# In constant memory.
n=64000000
[ -z "${AGENTBOX_TEST_FULL:-}" ] || n=200000000
"$TOOL" bytes "$n" >big
sum=$(sha256sum <big)
most=$(memory_limit 30000)
for way in 'big one:big' 'one:big big.back' 'tree one:tree' 'one:tree tree.back'; do
	[ "$way" != 'tree one:tree' ] || mv big tree/big
	# shellcheck disable=SC2086
	ok "cp $way" "$TOOL" rss "$T/rss" "$BUILD/tests/wrapper" agentbox cp $way
	[ "$(cat "$T/rss")" -lt "$most" ] && pass 'in less than 30 MB' ||
		fail "in less than 30 MB, not $(cat "$T/rss") KiB"
done
is "$(sha256sum <big.back)" "$sum" 'a file there and back'
ok 'a tree there and back' diff -r tree tree.back
rm -rf tree.back big.back

# Requests that fail.
e2b_forget
for kind in reset lose; do
	e2b_order '{"method": "POST", "path": "/files*", "kind": "'$kind'", "count": 1}'
	ok "$kind: an upload" ab cp tree/big "one:$kind"
	is "$(e2b_asked | grep -c '^POST /files')" 2 'is begun anew'
	is "$(ab exec one -- sha256sum "$kind" | cut -d' ' -f1)" "${sum%% *}" 'and whole'
	e2b_forget
done
e2b_order '{"method": "POST", "path": "/files*", "kind": "status", "status": 400, "count": 9,
	"body": "{\"code\":400,\"message\":\"permission denied\"}"}'
one_line_error 1 "/workspace/refused: permission denied" 'a file that is refused' \
	ab cp words one:refused
e2b_mend
e2b_order '{"method": "POST", "path": "/files*", "kind": "status", "status": 507, "count": 9,
	"body": "{\"code\":507,\"message\":\"not enough disk space available\"}"}'
one_line_error 1 'not enough disk space.*\(make room in the box\)' 'no room' ab cp words one:none
e2b_mend
e2b_order '{"method": "POST", "path": "/files*", "kind": "hang", "count": 1}'
"$BUILD/tests/wrapper" "$TOOL" sigdfl agentbox cp tree/big one:hung >"$T/log" 2>&1 </dev/null &
pid=$!
hangs()
{
	e2b_asked | grep -q '^POST /files'
}
wait_for 20 hangs
kill -TERM "$pid"
wait "$pid"
[ $? -ne 0 ] && pass 'one that hangs can be ended' || fail 'one that hangs can be ended'
e2b_mend
run ab exec one -- sh -c 'ls -A /workspace /tmp | grep -e refused -e none -e hung -e agentbox-'
is "$out" '' 'nothing of these is left'
e2b_order '{"method": "GET", "path": "/files*", "kind": "truncate", "count": 1}'
no 'half of a download' ab cp one:big half
[ ! -e half ] && pass 'is none' || fail 'is none'
e2b_mend

e2b_order '{"path": "/process.Process/Start", "kind": "status", "status": 503, "count": 9,
	"body": "{\"code\":\"unavailable\",\"message\":\"come again\"}"}'
one_line_error 125 'come again' 'a command that is refused' ab exec one -- true
e2b_mend
e2b_order '{"path": "/process.Process/Start", "kind": "truncate", "count": 1}'
run ab exec one -- sh -c 'echo once >>ran; head -c 3000000 /dev/zero; exit 3'
is "$status" 125 'what was lost of a command is an error'
like "$err" '^agentbox: .*connection' 'that is said'
is "$(ab exec one -- cat ran)" once 'it is not run again'
e2b_order '{"path": "/process.Process/Start", "kind": "deny", "count": 1, "status": 503}'
run ab exec one -- sh -c 'echo once >>denied'
is "$status" 125 'a command of which it is said that it failed'
ok 'it has begun' wait_for 10 ab exec one -- test -f denied
is "$(ab exec one -- cat denied)" once 'it is not run again either'
e2b_order '{"path": "/process.Process/Start", "kind": "lose", "count": 1}'
run ab exec one -- true
is "$status" 125 'a connection that is lost at once'
e2b_mend
ok 'the next command runs' ab exec one -- true

# Paused, and gone, behind our back.
id=$(ab status one --json | sed -n 's/.*"sandbox_id":[[:space:]]*"\([^"]*\)".*/\1/p')
curl -sf --noproxy '*' -X POST -H "X-API-Key: $E2B_API_KEY" -H 'Content-Type: application/json' \
	-d '{}' "$e2b/sandboxes/$id/pause"
printf 'all of it\n' >"$T/given"
is "$(ab exec one -- cat <"$T/given")" 'all of it' 'what it is given reaches a box that was paused'
is "$(printf 'piped\n' | ab exec one -- cat)" piped 'and one that runs'
curl -sf --noproxy '*' -X DELETE -H "X-API-Key: $E2B_API_KEY" "$e2b/sandboxes/$id"
run ab exec one -- true
is "$status" 125 'a command in a box that is gone'
like "$err" "^agentbox: .*'one'.*gone" 'that is said'
ok 'it is forgotten' ab destroy one -y

# shellcheck disable=SC2086
e2b_suites ${AGENTBOX_TEST_SUITES-exec tty transfer kill}
done_testing
