#!/bin/sh
# SPDX-License-Identifier: MIT
# What commands about boxes of E2B cost in requests, by the emulated service's own log; what happens
# when answers are lost, cut short or refusals; and which sandboxes and templates are taken.
. "${0%/*}/e2b-functions.sh"

e2b_emulator
TOOL=$BUILD/tests/contract/agentbox-contract-tool
export AGENTBOX_PROVIDER=e2b
git init -q -b main "$T/project" && cd "$T/project" || exit 99
echo hello >file && git add file && git commit -qm first || exit 99

# How many requests were asked since the last look, but the creating one.
count()
{
	e2b_asked | grep -vc '^POST /v2/sandboxes$'
	e2b_forget
}
id_of()
{
	ab status "$1" --json | sed -n 's/.*"sandbox_id":[[:space:]]*"\([^"]*\)".*/\1/p'
}

e2b_forget
ok 'a box of a small repository' ab create -n one -y
n=$(count)
[ "$n" -le 8 ] && pass "takes $n requests once its sandbox is there" || fail "$n requests, not 8"
ok 'a command' ab exec one -- true
is "$(count)" 1 'takes one'
ok 'url' ab url one 3000
is "$(count)" 0 'takes none'
ok 'stop' ab stop one
is "$(count)" 1 'takes one'
run ab url one 3000
like "$out" '^http://3000-i[a-z0-9]*\.localhost:' 'url of a paused box is said'
is "$(count)" 0 'and takes none'
run ab list
like "$out" '^1 +one +paused' 'list: it is still paused'
is "$(count)" 1 'takes one'
ok 'start' ab start one
is "$(count)" 1 'takes one'
e2b_forget

# Renewed by use, when the last time was more than a minute ago, and never to an earlier time.
export AGENTBOX_E2B_KEEP_ALIVE=47m
ok 'a command in a box that is due' ab exec one -- true
is "$(e2b_asked | grep -c /timeout)" 1 'it is renewed'
e2b_forget
ok 'another one' ab exec one -- true
is "$(e2b_asked | grep -c /timeout)" 0 'not again within a minute'
AGENTBOX_E2B_KEEP_ALIVE=5m
ok 'one for which it would be less' ab exec one -- true
is "$(e2b_asked | grep -c /timeout)" 0 'does not shorten its life'
AGENTBOX_E2B_KEEP_ALIVE=90m
e2b_order '{"path": "/sandboxes/*/timeout", "kind": "status", "status": 500, "count": 9}'
ok 'a renewal that fails fails no command' ab exec one -- true
e2b_mend
unset AGENTBOX_E2B_KEEP_ALIVE
e2b_forget

# A create whose answer is lost made a sandbox, once.
sandboxes()
{
	find "$T/emulated/providers/local/store/boxes" -mindepth 1 -maxdepth 1 | wc -l
}
before=$(sandboxes)
for kind in lose truncate; do
	e2b_order '{"method": "POST", "path": "/v2/sandboxes", "kind": "'$kind'", "count": 1}'
	ok "$kind: the box is found again" ab create -n "$kind" -y
	is "$(e2b_asked | grep -c '^POST /v2/sandboxes$')" 1 'and was asked for once'
	e2b_forget
	ok 'it works' ab exec "$kind" -- true
	ok 'and goes' ab destroy "$kind" -y
done
is "$(sandboxes)" "$before" 'nothing is left'
e2b_order '{"method": "POST", "path": "/v2/sandboxes", "kind": "status", "status": 503, "count": 1,
	"body": "{\"code\":503,\"message\":\"none\",\"error_code\":\"sandbox_create_failed\"}"}'
ok 'no room once' ab create -n two -y
e2b_mend
e2b_order '{"method": "POST", "path": "/v2/sandboxes", "kind": "status", "status": 429, "count": 1,
	"headers": {"Retry-After": "1"},
	"body": "{\"code\":429,\"message\":\"Rate limit exceeded\"}"}'
ok 'too many requests, with a time to wait' ab create -n three -y
e2b_mend
ok 'they go' ab destroy two three -y

fails() # CODE ERE STATUS BODY [HEADERS]
{
	e2b_order '{"method": "POST", "path": "/v2/sandboxes", "kind": "status", "count": 9,
		"status": '"$3"', "body": "'"$(printf %s "$4" | sed 's/"/\\"/g')"'"'"${5-}"'}'
	run ab create -n bad -y
	is "$status" "$1" "HTTP $3: exit code"
	like "$err" "$2" "HTTP $3: it is said"
	is "$(printf '%s\n' "$err" | grep -c '^agentbox: ')" 1 'in one line'
	e2b_mend
	is "$(sandboxes)" "$before" 'nothing is left'
}
fails 1 'maximum number of concurrent.*\(destroy or stop boxes' 429 \
	'{"code":429,"message":"you have reached the maximum number of concurrent sandboxes (20)"}'
fails 4 'Invalid API key.*agentbox e2b login' 401 '{"code":401,"message":"Invalid API key"}' \
	', "headers": {"X-E2B-Trace-ID": "trace-7"}'
like "$err" 'trace-7' 'with the request that it was'
fails 1 'greater than 1 hours.*e2b\.timeout' 400 \
	'{"code":400,"message":"Timeout cannot be greater than 1 hours"}'
fails 1 'HTTP 403' 403 ''

run ab create -n none -y --image nowhere
like "$err" "^agentbox: .*template nowhere: .*\(agentbox image ls" 'a template that is not there'
unset E2B_TEMPLATE
run ab create -n none -y
like "$err" '^agentbox: .*no template is named.*agentbox prepare --provider e2b' 'no template'
export E2B_TEMPLATE=base
run ab create -n none -y --memory 2G
like "$err" '^agentbox: .*(its template|e2b\.size)' 'what a template decides is refused'
run env E2B_API_KEY= "$BUILD/tests/wrapper" agentbox create -n none -y
like "$err" '^agentbox: .*no API key .*agentbox e2b login' 'no key'
run env E2B_API_KEY=abc "$BUILD/tests/wrapper" agentbox create -n none -y
like "$err" "^agentbox: .*begins with 'e2b_'" 'what is no key'

# An older server has only the first version of two routes.
e2b_order '{"path": "/v2/sandboxes*", "method": "POST", "kind": "status", "status": 405, "count": 9,
	"body": "{\"code\":405,\"message\":\"method not allowed\"}"}'
ok 'a box of an older server' ab create -n old -y
ok 'stops' ab stop old
ok 'and starts' ab start old
e2b_mend
ok 'and goes' ab destroy old -y

# One that is there already is used, and never ended.
api() # METHOD PATH [JSON]
{
	curl -sf --noproxy '*' -X "$1" -H "X-API-Key: $E2B_API_KEY" ${3:+--data "$3"} "$e2b$2"
}
id=$(api POST /v2/sandboxes '{"templateID":"base","timeout":600}' |
	sed -n 's/.*"sandboxID":"\([^"]*\)".*/\1/p')
like "$id" '^i[a-z0-9]{20}$' 'a sandbox that somebody else made'
e2b_forget
code 1 'it cannot be cut off' ab create -n taken -y --sandbox-id "$id" --egress none
like "$err" 'keeps the network' 'that is said'
one_line_error 2 'keeps its environment' 'nor be given variables' \
	ab create -n taken -y --sandbox-id "$id" -e A=b
ok 'a box of it' ab create -n taken -y --sandbox-id "$id"
is "$(id_of taken)" "$id" 'is that one'
like "$(ab exec taken -- cat file)" '^hello$' 'with the project in it'
one_line_error 1 'did not make this sandbox' 'it is not paused' ab stop taken
like "$(ab list)" 'taken +running' 'nor gone'
ok 'and forgotten' ab destroy taken -y
is "$(e2b_asked | grep -c -e ^DELETE -e /pause)" 0 'nothing was asked to end'
like "$(api GET "/sandboxes/$id")" '"state":"running"' 'it is still there'
api DELETE "/sandboxes/$id"

one_line_error 1 'local.*cannot use a sandbox that is there already' 'local has none such' \
	ab create --provider local -y --sandbox-id "$id"

# What ends with the box.
for end in pause leave; do
	ok "a box that destroy will $end" ab create -n "$end" -y
	id=$(id_of "$end")
	ok 'it is destroyed' env AGENTBOX_E2B_ON_DESTROY="$end" "$BUILD/tests/wrapper" \
		agentbox destroy "$end" -y
	state=running
	[ "$end" = leave ] || state=paused
	like "$(api GET "/sandboxes/$id")" "\"state\":\"$state\"" "its sandbox is $state"
	api DELETE "/sandboxes/$id"
done
ok 'all go' ab destroy --all -y

# Ports that are not for everybody; where a box may connect to.
e2b_forget
ok 'a box with private urls and few ways out' ab create -n shut -y --private-urls \
	--egress 192.0.2.7,example.org
run ab url shut 80 --json
like "$out" '"header":.*"e2b-traffic-access-token"' 'the header of its urls is said'
like "$out" '"token":.*"[0-9a-f]{64}"' 'with the token'
described=$(api GET "/sandboxes/$(id_of shut)")
like "$described" '"allowOut":\["192.0.2.7","example.org"\],"denyOut":\["0.0.0.0/0"\]' \
	'what is not allowed is denied'
e2b_forget
ok 'egress of a box that runs' ab egress shut none
is "$(e2b_asked | grep -c '^PUT /sandboxes/[^ ]*/network$')" 1 'is one request'
like "$(api GET "/sandboxes/$(id_of shut)")" '"allowInternetAccess":false' 'and is changed'
run ab create -n bad -y --egress host
like "$err" 'a sandbox is not on this machine' 'the host has no network there'
ok 'it goes' ab destroy shut -y

# Many: nothing is made, only listed.
install=$(e2b_asked | sed -n 's/.*agentbox\.install%3D\([0-9a-f-]*\).*/\1/p' | head -n 1)
like "$install" '^[0-9a-f-]{36}$' 'the label of this install'
emulator_stop
e2b_emulator --light
curl -s --noproxy '*' -H "X-API-Key: $E2B_API_KEY" -o "$T/made" --data \
	'{"templateID":"base","metadata":{"agentbox":"true","agentbox.install":"'"$install"'"}}' \
	"$e2b/v2/sandboxes?[1-500]"
e2b_forget
run ab prune --dry-run
is "$(e2b_asked | grep -c '^GET /v2/sandboxes')" 5 'a list of 500 boxes is five requests'
is "$(printf '%s\n' "$out" | grep -c 'sandbox i[a-z0-9]\{20\}')" 500 'and has all of them'

# Creates wait for the service together, not in turn.
e2b_order '{"method": "POST", "path": "/v2/sandboxes", "kind": "hang", "count": -1}'
e2b_forget
"$BUILD/tests/wrapper" "$TOOL" sigdfl agentbox create -w "$T/project" -n many --count 50 -y \
	>"$T/log" 2>&1 </dev/null &
pid=$!
all_wait()
{
	[ "$(emulator_together POST /v2/sandboxes)" -eq 50 ]
}
wait_for 60 all_wait && pass '50 creates are under way at one time' ||
	fail "50 creates are under way at one time, not $(emulator_together POST /v2/sandboxes)"
kill -TERM "$pid"
wait "$pid"
[ $? -ne 0 ] && pass 'and can be ended' || fail 'and can be ended'
e2b_mend
is "$(ab list -g --json)" '[]' 'of which nothing is left'
done_testing
