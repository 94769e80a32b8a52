#!/bin/sh
# SPDX-License-Identifier: MIT
# The mock provider keeps the contract.
exec "$AGENTBOX_TEST_BUILDDIR/tests/wrapper" agentbox-provider-check \
	"$AGENTBOX_TEST_BUILDDIR/tests/mock/.libs/agentbox-mock.so" token=a-secret-token
