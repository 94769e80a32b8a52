# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# tests/contract/e2b-functions.sh: an emulated E2B for a test.
#
#	. "${0%/*}/e2b-functions.sh"     first thing, instead of ../cli/functions.sh
#	e2b_emulator [OPTION...]         one of this test's own, or skip_all; from now on the
#	                                 provider e2b goes there; $e2b is its address
#	e2b_order '{"path": ...}'        a failure to order (tests/cloud/faults.h)
#	e2b_mend                         none any more
#	e2b_asked                        what was asked since e2b_forget, a line each: METHOD PATH
#	e2b_forget
#	e2b_suites SUITE...              each of the contract's suites is a point

# shellcheck source=../cli/functions.sh
. "${0%/*}/../cli/functions.sh"
# shellcheck source=../cloud/functions.sh
. "${0%/*}/../cloud/functions.sh"

e2b_emulator()
{
	[ -e "$BUILD/providers/e2b/.libs/agentbox-e2b.so" ] ||
		skip_all 'configured without the e2b provider'
	emulator_start e2b --no-network "$@"
	e2b=$emulator_url
	E2B_API_URL=$e2b
	E2B_SANDBOX_URL=$e2b
	E2B_DOMAIN=localhost:${e2b##*:}
	E2B_API_KEY=e2b_$(printf '%040d' 7)
	E2B_TEMPLATE=base
	export E2B_API_URL E2B_SANDBOX_URL E2B_DOMAIN E2B_API_KEY E2B_TEMPLATE
	unset E2B_ACCESS_TOKEN E2B_DEBUG
}

e2b_order()
{
	emulator_ask POST faults "$1" >/dev/null || fail "the emulator takes the order $1"
}

e2b_mend()
{
	emulator_ask DELETE faults >/dev/null
}

e2b_forget()
{
	emulator_ask DELETE log >/dev/null
}

e2b_asked()
{
	emulator_ask GET log | perl -MJSON::PP -e '
		for (@{decode_json(join "", <>)->{requests}}) {
			print "$_->{method} $_->{path}\n" unless $_->{path} =~ m{^/_emulator};
		}'
}

e2b_suites()
{
	small=1
	[ -z "${AGENTBOX_TEST_FULL:-}" ] || small=
	for suite in "$@"; do
		AGENTBOX_CONTRACT_SMALL=$small \
			AGENTBOX_CONTRACT_ENV='E2B_SANDBOX E2B_SANDBOX_ID E2B_TEMPLATE_ID' \
			"$BUILD/tests/wrapper" agentbox-provider-check \
			--live e2b "$suite" >"$T/table" 2>&1 </dev/null && pass "$suite" || {
			fail "$suite"
			diag "$(head -c 8000 "$T/table")"
		}
	done
}
