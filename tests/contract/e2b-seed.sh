#!/bin/sh
# SPDX-License-Identifier: MIT
# Every repository arrives whole in boxes of the provider e2b.
. "${0%/*}/e2b-functions.sh"

e2b_emulator
e2b_suites seed
done_testing
