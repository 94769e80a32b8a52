#!/bin/sh
# SPDX-License-Identifier: MIT
# The official SDK of E2B, unmodified, drives `agentbox-cloud-emulator e2b`.
. "${0%/*}/../cli/functions.sh"

[ -x "$BUILD/tests/cloud/agentbox-cloud-emulator" ] ||
	skip_all 'configured without the cloud emulator'
if ! is_root && ! unshare -Ur true 2>/dev/null; then
	skip_all 'neither root nor user namespaces'
fi
have node npm || skip_all 'no Node.js is installed'
node -e 'const [a, b] = process.versions.node.split(".").map(Number)
	process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)' ||
	skip_all 'this Node.js is too old for the SDK'

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

"$BUILD/tests/wrapper" agentbox-cloud-emulator e2b --home "$T/emulated" --no-network \
	>"$T/emulator.out" 2>"$T/emulator.err" &
emulator=$!
stop_emulator()
{
	[ -n "$emulator" ] || return 0
	kill "$emulator" && wait "$emulator"
	set -- $?
	emulator=
	return "$1"
}
atexit stop_emulator
wait_for 30 test -s "$T/emulator.out"
url=$(cat "$T/emulator.out")
like "$url" '^http://127\.0\.0\.1:[0-9]+$' 'the emulator says where it is'
# Without it the SDK would go to the real one.
if [ -z "$url" ]; then
	diag "$(cat "$T/emulator.err")"
	done_testing
fi

relay() # FILE.mjs
{
	E2B_API_URL=$url E2B_SANDBOX_URL=$url E2B_API_KEY=e2b_$(printf '%040d' 7) EMULATOR=$url \
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
relay wire.mjs

ok 'it ends when it is told to' stop_emulator
is "$(ls "$T/emulated/providers/local/store/boxes")" '' 'and leaves no sandbox behind'
diag "$(cat "$T/emulator.err")"
done_testing
