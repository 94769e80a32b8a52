#!/bin/sh
# SPDX-License-Identifier: MIT
# The local provider keeps the contract.
so=$AGENTBOX_TEST_BUILDDIR/providers/local/.libs/agentbox-local.so
if [ ! -e "$so" ]; then
	echo '1..0 # SKIP configured without the local provider'
	exit 0
fi
if [ "$(id -u)" != 0 ] && ! unshare -Ur true 2>/dev/null; then
	echo '1..0 # SKIP neither root nor user namespaces'
	exit 0
fi
exec "$AGENTBOX_TEST_BUILDDIR/tests/wrapper" agentbox-provider-check "$so"
