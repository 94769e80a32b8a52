#!/bin/sh
# SPDX-License-Identifier: MIT
# What is true of a box's network with slirp4netns is true with pasta.
AGENTBOX_TEST_CARRIER=pasta
export AGENTBOX_TEST_CARRIER
. "${0%/*}/net-functions.sh"

# All at once: most of their time they wait.
AGENTBOX_TEST_NET='' AGENTBOX_TEST_USER_ONLY=1
export AGENTBOX_TEST_NET AGENTBOX_TEST_USER_ONLY
for test in egress rules url; do
	"$SRC/tests/cli/net-$test.sh" >"$T/$test" 2>&1 </dev/null &
done
wait
for test in egress rules url; do
	if grep -q '^1\.\.[1-9]' "$T/$test" && ! grep -q '^not ok' "$T/$test"; then
		pass "net-$test"
	else
		fail "net-$test"
		diag "$(grep -A4 -e '^not ok' -e '^1\.\.0' "$T/$test" | head -c 8000)"
	fi
done
is_said()
{
	ab doctor | grep -q 'network .*ok .*pasta'
}
ok 'doctor says that it is pasta' is_said
make_repo "$T/repo"
run env AGENTBOX_LOCAL_NETWORK=wires "$BUILD/tests/wrapper" agentbox create -w "$T/repo" -n no -y
is "$status" 1 'nothing else is taken'
like "$err" 'local.network: wires: neither slirp4netns nor pasta' 'and it is said'
ok 'a box' ab create -w "$T/repo" -n one -y
ok 'it stops' ab stop one
: >"$T/no-program"
mount --bind "$T/no-program" "$(readlink -f "$(command -v pasta)")"
run ab create -w "$T/repo" -n two -y
is "$status" 1 'without the program no box is made'
like "$err" 'network: pasta is missing \(install the package passt, or use --egress none\)' \
	'and the remedy is said'
run ab start one
run ab exec one -n -- true
is "$status" 0 'one that was made before works'
like "$err" 'network: pasta.*install the package passt' 'and says what its network lacks'
ok 'it is destroyed' ab destroy one -y
done_testing
