#!/bin/sh
# SPDX-License-Identifier: MIT
# The suite of egress with somebody outside, for root and for an ordinary user.
. "${0%/*}/net-functions.sh"

net_world
peer()
{
	env AGENTBOX_CONTRACT_SMALL=1 AGENTBOX_CONTRACT_PEER=198.51.100.2:80 "$@" \
		"$BUILD/tests/wrapper" agentbox-provider-check --live local egress \
		>"$T/table" 2>&1 </dev/null && awk '
			$1 == "egress" { n = $2 }
			END { exit !(n > 80) }' "$T/table"
}
peer && pass 'root' || {
	fail 'root'
	diag "$(head -c 8000 "$T/table")"
}
make_repo "$T/repo"
net_user
mkdir "$T/tmp" && chown 12345:12345 "$T/tmp"
peer TMPDIR="$T/tmp" setpriv --reuid 12345 --regid 12345 --clear-groups && pass 'user' || {
	fail 'user'
	diag "$(head -c 8000 "$T/table")"
}
done_testing
