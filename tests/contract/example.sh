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
# A box of it, used by the program, before the contract numbers its points.
round()
(
	AGENTBOX_PROVIDER_PATH=$T/build AGENTBOX_HOME=$T/home
	export AGENTBOX_PROVIDER_PATH AGENTBOX_HOME
	ab()
	{
		"$AGENTBOX_TEST_BUILDDIR/tests/wrapper" agentbox "$@" </dev/null
	}
	mkdir "$T/project" && cd "$T/project" && echo one >file || exit 1
	ab create --provider example -n one -y &&
		ab exec one -- sh -c 'echo two >>file; echo new >other' &&
		ab diff one | grep -q '^+two' && ab download one -y &&
		[ "$(cat file other | tr '\n' ' ')" = 'one two new ' ] && ab destroy one -y
)
make -C "$T/build" CC="$CC" CPPFLAGS="-I$T/include" CFLAGS='-O2 -Wall -Wextra -Werror' \
	PKG_CONFIG=true >"$T/log" 2>&1 || {
	sed 's/^/# /' "$T/log"
	fail 'the example builds'
}
round >"$T/log" 2>&1 || {
	sed 's/^/# /' "$T/log"
	fail 'a box of the example is made, changed, brought back and destroyed'
}
"$AGENTBOX_TEST_BUILDDIR/tests/wrapper" agentbox-provider-check "$T/build/agentbox-example.so"
