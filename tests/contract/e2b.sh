#!/bin/sh
# SPDX-License-Identifier: MIT
# The e2b provider keeps the contract, on the emulated E2B: its plugin file, and the suites about
# boxes as a whole.  e2b-envd.sh has those about what is done in them, e2b-seed.sh the longest.
# AGENTBOX_TEST_SUITES: which suites, AGENTBOX_TEST_FULL=1: with the full sizes.
. "${0%/*}/e2b-functions.sh"

e2b_emulator
code 0 'the contract of a plugin' "$BUILD/tests/wrapper" agentbox-provider-check \
	"$BUILD/providers/e2b/.libs/agentbox-e2b.so" template=base
# shellcheck disable=SC2086
e2b_suites ${AGENTBOX_TEST_SUITES:-lifecycle url snapshot egress}
ok 'the emulator ends when it is told to' emulator_stop
is "$(ls "$T/emulated/providers/local/store/boxes")" '' 'and nothing is left in it'
diag "$(cat "$T/emulator.err")"
done_testing
