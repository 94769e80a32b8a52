#!/bin/sh
# SPDX-License-Identifier: MIT
# The official SDK of E2B, unmodified, drives `agentbox-cloud-emulator e2b`.
. "${0%/*}/../cli/functions.sh"
# shellcheck source=../cloud/functions.sh
. "${0%/*}/../cloud/functions.sh"

have node npm || skip_all 'no Node.js is installed'
node -e 'const [a, b] = process.versions.node.split(".").map(Number)
	process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)' ||
	skip_all 'this Node.js is too old for the SDK'

emulator_start e2b --no-network

# The packages stay in the build directory, and are looked at again when the list changes.
mkdir -p "$BUILD/tests/sdk/e2b-run" && cd "$BUILD/tests/sdk/e2b-run" || exit 99
if ! cmp -s "$SRC/tests/sdk/e2b/package-lock.json" .installed; then
	rm -rf node_modules .installed
	cp "$SRC/tests/sdk/e2b/package.json" "$SRC/tests/sdk/e2b/package-lock.json" . || exit 99
	chmod u+w package.json package-lock.json
	run npm ci --ignore-scripts --no-audit --no-fund --no-update-notifier
	if [ "$status" -ne 0 ] &&
		printf '%s\n' "$err" | grep -Eq 'EAI_AGAIN|ENOTFOUND|ECONNREFUSED|ETIMEDOUT'; then
		diag "$err"
		skip_all 'npm has no network'
	fi
	is "$status" 0 'npm ci'
	diag "$err"
	cp package-lock.json .installed || exit 99
fi
cp -f "$SRC"/tests/sdk/e2b/*.mjs . || exit 99

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
relay light.mjs
is "$(emulator_count POST /v2/sandboxes)" 50 'a shell counts the same'
is "$(emulator_together POST /v2/sandboxes)" 50 'and how many there were together'
is "$(emulator_count '*' '/v2/sandboxes*')" 50 'patterns count what they match'
ok 'it ends' emulator_stop
done_testing
