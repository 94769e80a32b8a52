#!/bin/sh
# SPDX-License-Identifier: MIT
# Credentials: typed unseen or read, asked of the provider before they are kept, shown masked.
. "${0%/*}/functions.sh"

TOOL=$BUILD/tests/contract/agentbox-contract-tool
SECRETS=$AGENTBOX_HOME/secrets.env
TOKEN=canary-token-of-mock-4711

give() # TOKEN ARG...
{
	given=$1
	shift
	printf '%s\n' "$given" | ab "$@" --token-stdin
}

run ab local login --status
is "$status $out" "0 provider 'local' needs no login" 'local needs none'
run ab docker login
is "$status $out" "0 provider 'docker' needs no login" 'nor does docker'
run ab mock login --status
is "$status $out" '4 mock.token: not configured (agentbox mock login)' 'there is none'
run ab mock login --status --json
is "$status" 4 '... with --json'
like "$out" '"configured":[[:space:]]*false' 'which says so'
one_line_error 2 'nobody is there.*--token-stdin' 'without a terminal' ab mock login </dev/null
one_line_error 2 'never is one' 'not as an argument' ab mock login "$TOKEN"
unlike "$err" "$TOKEN" 'which is not repeated'
one_line_error 2 'empty' 'nothing' give '' mock login
one_line_error 2 'one line' 'two lines' give 'a
b' mock login
one_line_error 2 "no credential 'faults'" 'no credential' give x mock login --option faults
no 'nothing of that is kept' test -e "$SECRETS"

one_line_error 4 'mock.token is not stored.*refused' 'a refused one' give wrong-token mock login
unlike "$err" wrong-token 'is not shown'
no 'and not kept' test -e "$SECRETS"

run give "  $TOKEN " login --provider mock
is "$status" 0 'a good one'
like "$out" '^logged in at mock as mock-account$' 'with the account'
like "$out" '^next: agentbox mock prepare$' 'what comes next'
unlike "$out$err" "$TOKEN" 'and it is not shown'
is "$(cat "$SECRETS")" "AGENTBOX_MOCK_TOKEN='$TOKEN'" 'it is kept'
is "$(stat -c %a "$SECRETS")" 600 'privately'
run ab mock login --status
is "$status $out" '0 mock.token: ****4711 (secrets)' 'and shown masked'
run give short mock login --json
like "$out" '"verified":[[:space:]]*true' 'a document'
like "$out" '"account":[[:space:]]*"mock-account"' 'with the account'
run ab mock login --status --json
unlike "$out" short 'nothing of a short one is shown'

for fault in ENETWORK EREMOTE ETIMEDOUT; do
	run env AGENTBOX_MOCK_FAULTS="verify:fail=$fault" sh -c \
		"printf %s later-$fault | '$BUILD/tests/wrapper' agentbox mock login --token-stdin"
	is "$status" 0 "$fault: it cannot be asked"
	like "$out" '^mock.token is stored, not verified: ' "$fault: which is said"
	ok "$fault: it is kept" grep -q "later-$fault" "$SECRETS"
done
for fault in EAUTH EINVAL EPROTO; do
	run env AGENTBOX_MOCK_FAULTS="verify:fail=$fault" sh -c \
		"printf %s never-$fault | '$BUILD/tests/wrapper' agentbox mock login --token-stdin"
	unlike "$status" '^0$' "$fault: an error"
	no "$fault: it is not kept" grep -q "never-$fault" "$SECRETS"
done
run env AGENTBOX_MOCK_TOKEN=of-the-environment sh -c \
	"printf %s kept-beside | '$BUILD/tests/wrapper' agentbox mock login --token-stdin"
like "$err" 'AGENTBOX_MOCK_TOKEN.*comes first' 'the environment goes first, which is said'
ok 'and it is kept' grep -q kept-beside "$SECRETS"

printf '# mine\nexport OTHER="x" # keep\n' >>"$SECRETS"
ok 'logout' ab mock logout
is "$(cat "$SECRETS")" '# mine
export OTHER="x" # keep' 'takes its own and leaves all else'
run ab mock logout
is "$out" 'there are no credentials of mock' 'once'

# On a terminal.  What it prints is all that is on the screen.
on_terminal() # SCRIPT-LINE...
{
	printf '%s\n' "$@" >"$T/script"
	"$TOOL" pty -t 60 "$T/script" sh -c \
		"stty -g >'$T/before'
		trap : INT TERM HUP QUIT USR1
		'$BUILD/tests/wrapper' agentbox mock login
		echo code \$?
		stty -g >'$T/after'" >"$T/screen" 2>&1 </dev/null
}
on_terminal 'wait (not shown)' "send $TOKEN"'\r' 'wait code'
ok 'typed' grep -q 'code 0' "$T/screen"
diag "$(cat "$T/screen")"
no 'and not seen' grep -q "$TOKEN" "$T/screen"
ok 'kept' grep -q "$TOKEN" "$SECRETS"
same "$T/before" "$T/after" 'the terminal is as it was'
ok 'forgotten' ab mock logout
on_terminal 'wait (not shown)' 'send half\x03' 'wait code'
ok 'Ctrl-C' grep -q 'code 130' "$T/screen"
same "$T/before" "$T/after" 'and the terminal is as it was'
on_terminal 'wait (not shown)' 'send half\x1c' 'wait code'
same "$T/before" "$T/after" 'after a SIGQUIT too'
no 'nothing is kept' grep -q half "$SECRETS"
done_testing
