#!/bin/sh
# SPDX-License-Identifier: MIT
# The docker provider keeps the contract, on a real engine; docker-seed.sh has the longest suite.
# AGENTBOX_TEST_SUITES: which suites, AGENTBOX_TEST_FULL=1: with the full sizes.
. "${0%/*}/docker-functions.sh"

docker_engine
docker_root "$T/root.tar" || fail 'a root file system is made'
tag=test-$(od -An -N4 -tx4 /dev/urandom | tr -d ' ')
code 0 'an image of it' ab prepare --provider docker --from "$T/root.tar" -n "$tag"
image=agentbox/prepared:$tag
run ab image ls --provider docker
like "$out" "^$tag " 'is listed'

check()
{
	"$BUILD/tests/wrapper" agentbox-provider-check "$@"
}

code 0 'the contract of a plugin' check \
	"$BUILD/providers/docker/.libs/agentbox-docker.so" "image=$image"
small=1
[ -z "${AGENTBOX_TEST_FULL:-}" ] || small=
for suite in ${AGENTBOX_TEST_SUITES:-exec tty transfer lifecycle url snapshot egress kill}; do
	AGENTBOX_CONTRACT_CREATE="--image $image" AGENTBOX_CONTRACT_SMALL=$small \
		check --live docker "$suite" >"$T/table" 2>&1 </dev/null && pass "$suite" || {
		fail "$suite"
		diag "$(head -c 8000 "$T/table")"
	}
done
code 0 'the image goes' ab image rm "$tag" --provider docker -y
run ab image ls --provider docker
unlike "$out" "$tag" 'and is gone'
done_testing
