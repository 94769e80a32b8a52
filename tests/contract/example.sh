#!/bin/sh
# SPDX-License-Identifier: MIT
# The example provider builds outside of this tree with nothing but the installed header, and
# keeps the contract.
: "${CC:=cc}"
fail()
{
	echo "not ok 1 - $1"
	echo '1..1'
	exit 1
}

T=$(mktemp -d "${TMPDIR:-/tmp}/abx-example.XXXXXX") || exit 99
trap 'rm -rf "$T"' EXIT
mkdir -p "$T/include/agentbox" "$T/build" || exit 99
cp "$AGENTBOX_TEST_SRCDIR/sdk/agentbox/cloud_backend.h" "$T/include/agentbox" &&
	cp "$AGENTBOX_TEST_SRCDIR"/sdk/example/* "$T/build" && chmod -R u+w "$T" || exit 99
make -C "$T/build" CC="$CC" CPPFLAGS="-I$T/include" CFLAGS='-O2 -Wall -Wextra -Werror' \
	PKG_CONFIG=true >"$T/log" 2>&1 || {
	sed 's/^/# /' "$T/log"
	fail 'the example builds'
}
"$AGENTBOX_TEST_BUILDDIR/tests/wrapper" agentbox-provider-check "$T/build/agentbox-example.so"
