#!/bin/sh
# SPDX-License-Identifier: MIT
# Where a sandbox of the emulated E2B may connect to is what it was made or told to.
# The scripts in quotes run elsewhere.
# shellcheck disable=SC2016,SC2317
. "${0%/*}/net-functions.sh"
# shellcheck source=../cloud/functions.sh
. "${0%/*}/../cloud/functions.sh"

have curl || skip_all 'curl is not installed'
net_world
emulator_start e2b
key="X-API-Key: e2b_$(printf '%040d' 7)"

ask() # METHOD PATH [JSON]
{
	run curl -s -X "$1" -H "$key" ${3:+--data "$3"} "$emulator_url$2"
}

# Through envd: what its answer holds is in envelopes.
tries() # ADDRESS: open or denied
{
	perl -e '
		my $script = "timeout 5 bash -c \"exec 3<>/dev/tcp/$ARGV[0]/80\"" .
			" && echo open || echo denied";
		$script =~ s/"/\\"/g;
		my $doc = qq({"process":{"cmd":"sh","args":["-c","$script"]},"stdin":false});
		print pack("CN", 0, length $doc), $doc;' "$1" >"$T/envelope"
	curl -s -H "E2b-Sandbox-Id: $box" -H 'E2b-Sandbox-Port: 49983' \
		-H 'Content-Type: application/connect+json' --data-binary @"$T/envelope" \
		"$emulator_url/process.Process/Start" |
		perl -MMIME::Base64 -0777 -ne 'print decode_base64($1) while /"stdout":"([^"]*)"/g'
}

sandbox() # OPTIONS NEAR FAR DESC: is 198.51.100.2 reached, is .3?
{
	ask POST /sandboxes "{\"templateID\":\"base\",\"timeout\":300$1}"
	box=$(printf '%s' "$out" | sed -n 's/.*"sandboxID":"\([^"]*\)".*/\1/p')
	[ -n "$box" ] || diag "$out"
	is "$(tries 198.51.100.2) $(tries 198.51.100.3)" "$2 $3" "$4"
}

sandbox '' open open 'everywhere, unless it is said'
ask PUT "/sandboxes/$box/network" '{"denyOut":["198.51.100.2"]}'
is "$(tries 198.51.100.2) $(tries 198.51.100.3)" 'denied open' 'but where it is told not to'
ask PUT "/sandboxes/$box/network" '{"allow_internet_access":false}'
is "$(tries 198.51.100.2) $(tries 198.51.100.3)" 'denied denied' 'or nowhere any more'
sandbox ',"allow_internet_access":false' denied denied 'no internet'
sandbox ',"network":{"denyOut":["0.0.0.0/0"],"allowOut":["198.51.100.3"]}' denied open \
	'what is allowed beats what is denied'
sandbox ',"network":{"denyOut":["198.51.100.3/32"]}' open denied 'a network that is denied'
ok 'it ends' emulator_stop
diag "$(cat "$T/emulator.err")"
done_testing
