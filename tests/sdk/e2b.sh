#!/bin/sh
# SPDX-License-Identifier: MIT
# The official SDK of E2B, unmodified, drives `agentbox-cloud-emulator e2b`.
. "${0%/*}/../cli/functions.sh"
# shellcheck source=../cloud/functions.sh
. "${0%/*}/../cloud/functions.sh"

sdk_packages e2b || {
	case $err in
	*Node.js*) skip_all "$err" ;;
	*EAI_AGAIN* | *ENOTFOUND* | *ECONNREFUSED* | *ETIMEDOUT*)
		diag "$err"
		skip_all 'npm has no network'
		;;
	esac
	fail 'npm ci'
	diag "$err"
	done_testing
}
cd "$sdk_dir" || exit 99
emulator_start e2b --no-network

relay() # FILE.mjs
{
	E2B_API_URL=$emulator_url E2B_SANDBOX_URL=$emulator_url E2B_DOMAIN=${emulator_url#*://} \
		E2B_API_KEY=e2b_$(printf "%040d" 7) EMULATOR=$emulator_url \
		timeout 300 node "$1" >"$T/node.out" 2>"$T/node.err" </dev/null
	node_status=$?
	while IFS= read -r line; do
		case $line in
		'ok '*) pass "${line#* - }" ;;
		'not ok '*) fail "${line#* - }" ;;
		'# '*) diag "${line#??}" ;;
		esac
	done <"$T/node.out"
	is "$node_status" 0 "$1 comes to its end"
	diag "$(cat "$T/node.err")"
}
relay test.mjs
relay template.mjs
relay ports.mjs
relay wire.mjs

ok 'it ends when it is told to' emulator_stop
is "$(ls "$T/emulated/providers/local/store/boxes")" '' 'and leaves no sandbox behind'
diag "$(cat "$T/emulator.err")"

emulator_start e2b --light
relay cli.mjs
relay light.mjs
is "$(emulator_count POST /v2/sandboxes)" 50 'a shell counts the same'
is "$(emulator_together POST /v2/sandboxes)" 50 'and how many there were together'
is "$(emulator_count '*' '/v2/sandboxes*')" 50 'patterns count what they match'
ok 'it ends' emulator_stop

# What AGENTBOX_TEST_OPENAPI does finds what is wrong.
cat >"$T/api.yml" <<'END'
components:
  schemas:
    Made: {type: object, required: [name], properties: {name: {type: string}, n: {type: integer}}}
paths:
  /things/{id}:
    parameters: [{in: path, name: id, schema: {type: string, maxLength: 4}}]
    post:
      parameters: [{in: query, name: limit, schema: {type: integer, maximum: 9}}]
      requestBody:
        required: true
        content: {application/json: {schema: {$ref: '#/components/schemas/Made'}}}
END
described()
{
	printf '{"method":"%s","uri":"%s","status":200,"has_body":%s}\n' "$1" "$2" \
		"${3:+true,\"body\":}${3:-false}" >"$T/record"
	run node openapi.mjs "$T/record" "$T/api.yml"
}
described POST '/things/a?limit=9' '{"name":"x","n":1}'
is "$out" '' 'a request that is described'
described PUT /things/a
is "$out" 'PUT /things/a: no such route' 'another method'
described POST /things/a
is "$out" 'POST /things/a: there is no body' 'no body'
described POST '/things/a?limit=10' '{"name":"x"}'
like "$out" '^POST /things/a: query limit: .*<= 9$' 'a parameter that cannot be'
described POST '/things/a?other=1' '{"name":"x"}'
is "$out" 'POST /things/a: query other is not described' 'one that is not there'
described POST /things/abcde '{"name":"x"}'
like "$out" '^POST /things/abcde: path id: .*4 characters$' 'one in the path'
described POST /things/a '{"name":1}'
like "$out" 'body: .*name must be string$' 'a member of another type'
described POST /things/a '{"name":"x","N":1}'
like "$out" 'body: .*must NOT have additional properties$' 'one of another name'
done_testing
