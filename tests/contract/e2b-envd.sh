#!/bin/sh
# SPDX-License-Identifier: MIT
# Commands and files in boxes of the provider e2b, against the emulated service: the suites of the
# contract that are about them, what they cost in requests, and what happens when requests fail.
# e2b.sh has the other suites.  AGENTBOX_TEST_SUITES: which ones, AGENTBOX_TEST_FULL=1: with the
# full sizes.
. "${0%/*}/e2b-functions.sh"

e2b_emulator
# shellcheck disable=SC2086
e2b_suites ${AGENTBOX_TEST_SUITES:-exec tty transfer kill}
done_testing
