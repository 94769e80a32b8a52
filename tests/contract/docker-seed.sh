#!/bin/sh
# SPDX-License-Identifier: MIT
# Every repository arrives whole in boxes of the docker provider, on a real engine.
AGENTBOX_TEST_SUITES=seed
. "${0%/*}/docker.sh"
