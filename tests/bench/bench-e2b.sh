#!/bin/sh
# SPDX-License-Identifier: MIT
# The rows of `make bench` about copies into and out of boxes of E2B, at the emulated service; their
# floor is what curl does with the same address.
set -eu

# shellcheck source=functions.sh
. "${0%/*}/functions.sh"
copy_runs=${BENCH_COPY_RUNS:-3}
bytes=${BENCH_E2B_BYTES:-200000000}
AGENTBOX_PROVIDER_PATH=$BUILD/providers/e2b/.libs:$BUILD/providers/local/.libs
AGENTBOX_CTL=$BUILD/core/ctl/agentbox-ctl
AGENTBOX_BASE_PATH=$(cd "${0%/*}/../.." && pwd)/core/base/context
AGENTBOX_PROVIDER=e2b
export AGENTBOX_PROVIDER_PATH AGENTBOX_CTL AGENTBOX_BASE_PATH AGENTBOX_PROVIDER

if [ ! -x "$BUILD/tests/cloud/agentbox-cloud-emulator" ] || ! command -v curl >/dev/null; then
	echo 'e2b: there is no emulated service, or no curl program: its rows are left out'
	exit 0
fi
# Once it is ready it says where it is.
mkfifo "$scratch/said"
"$BUILD/tests/wrapper" agentbox-cloud-emulator e2b --no-network --home "$scratch/emulated" \
	>"$scratch/said" 2>"$scratch/emulator.err" &
emulator=$!
emulator_end()
{
	"$agentbox" destroy --all -y --force >/dev/null 2>&1 || :
	kill "$emulator" && wait "$emulator" || :
}
at_end emulator_end
read -r e2b <"$scratch/said" || {
	cat "$scratch/emulator.err"
	exit 1
}
E2B_API_URL=$e2b
E2B_SANDBOX_URL=$e2b
E2B_DOMAIN=localhost:${e2b##*:}
E2B_API_KEY=e2b_$(printf '%040d' 7)
E2B_TEMPLATE=base
export E2B_API_URL E2B_SANDBOX_URL E2B_DOMAIN E2B_API_KEY E2B_TEMPLATE

small_repo "$scratch/repo"
"$agentbox" create -w "$scratch/repo" -n one -y >"$scratch/log" 2>&1 || {
	cat "$scratch/log"
	exit 1
}
id=$("$agentbox" status one | sed -n 's/^sandbox *//p')
token=$(curl -sf --noproxy '*' -H "X-API-Key: $E2B_API_KEY" "$e2b/sandboxes/$id" |
	sed -n 's/.*"envdAccessToken":"\([^"]*\)".*/\1/p')
mkdir "$scratch/piece"
head -c "$bytes" /dev/urandom >"$scratch/piece/large"

# The words of curl for /tmp/floor in the box, one a line.
floor_of() # OPTION...
{
	printf '%s\n' curl -sf --noproxy '*' -H "E2b-Sandbox-Id: $id" -H 'E2b-Sandbox-Port: 49983' \
		-H "X-Access-Token: $token" "$@" "$e2b/files?path=/tmp/floor&username=root"
}

against() # WHAT FLOOR COMMAND...
{
	what=$1 words=$2
	shift 2
	# A word has a star in it.
	set -f
	IFS='
'
	# shellcheck disable=SC2086
	"$pairs" "$copy_runs" $words --- "$@" >"$scratch/figures"
	unset IFS
	set +f
	figures
	row "$what" "$floor" "$ours" '<= 1.43 x curl'
	memory_row
}

printf '%-36s %9s %9s %7s  %s\n' 'median of runs in turn' 'floor ms' 'ours ms' ratio target
in=$(floor_of -H 'Content-Type: application/octet-stream' -X POST -H Expect: \
	-T "$scratch/piece/large")
out=$(floor_of -o "$scratch/floor")
against 'e2b: 200 MB as a file in' "$in" "$agentbox" cp "$scratch/piece/large" one:/tmp/file@N@
against '  as a tree' "$in" "$agentbox" cp "$scratch/piece" one:/tmp/tree@N@
against '  as a file out' "$out" "$agentbox" cp one:/tmp/floor "$scratch/file@N@"
"$agentbox" exec one -n -- sh -c 'mkdir /tmp/tree && cp /tmp/floor /tmp/tree/large'
against '  as a tree out' "$out" "$agentbox" cp one:/tmp/tree "$scratch/tree@N@"
