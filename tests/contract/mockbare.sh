#!/bin/sh
# SPDX-License-Identifier: MIT
# A provider with nothing but what is required keeps the contract.
exec "$AGENTBOX_TEST_BUILDDIR/tests/wrapper" agentbox-provider-check \
	"$AGENTBOX_TEST_BUILDDIR/tests/mock/.libs/agentbox-mockbare.so"
