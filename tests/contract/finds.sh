#!/bin/sh
# SPDX-License-Identifier: MIT
# agentbox-provider-check finds each breach of the contract that it is there for.
. "${0%/*}/../cli/functions.sh"

so=$BUILD/tests/mock/.libs/agentbox-mock.so

check()
{
	run "$BUILD/tests/wrapper" agentbox-provider-check "$@"
}

finds() # ERE FAULTS
{
	check "$so" token=a-secret-token timeout=10s "faults=$2"
	is "$status" 1 "a provider with $2 fails"
	like "$out" "^not ok [0-9]+ - $1" "and the point is: $1"
}

finds 'it printed nothing' 'exec:print,times=1'
finds 'no descriptor is left open' 'exec:leak'
finds 'a credential is in no text' 'verify:tell'
finds 'a sandbox is made' 'get:garbage'
finds 'get of a missing one is not found' 'get:fail=EINTERNAL,times=1'
finds 'destroy once more is success' 'destroy:fail=ESTATE'
finds 'stop of a stopped one is success' 'stop:fail=ESTATE'
finds 'list finds it by its labels' 'list:fail=EINTERNAL'
finds 'a first command succeeds' 'exec:fail=EPERM'
finds 'exec in a missing one is not found' 'exec:hang'

check --no-service "$so" token=a-secret-token 'faults=verify:fail=EINTERNAL'
is "$status" 0 'without its service the provider is not asked'
unlike "$out" 'credential|sandbox' 'for anything'
check --no-service
is "$status" 2 'without a file nothing is checked'

check "$T/nothing.so"
is "$status" 1 'a missing file fails'
printf 'text' >"$T/agentbox-text.so"
check "$T/agentbox-text.so"
is "$status" 1 'a text file fails'
like "$out" '^not ok 2 - it has an agentbox note' 'for it has no note'
cp "$so" "$T/agentbox-mock.so"
chmod go+w "$T/agentbox-mock.so"
check "$T/agentbox-mock.so"
like "$out" '^not ok 1 - nobody else can write the file' 'a file that others can write fails'
cp "$BUILD/tests/abi/.libs/agentbox-fixture.so" "$T"
chmod go-w "$T/agentbox-fixture.so"
check "$T/agentbox-fixture.so"
is "$status" 1 'a provider that can do nothing fails'
like "$out" '^1\.\.[0-9]+$' 'and the plan is printed'
check "$so" 'nonsense'
like "$out" '^not ok [0-9]+ - a session opens' 'an argument that is no option fails'
run "$BUILD/tests/wrapper" agentbox-provider-check
is "$status" 2 'without a file it says how it is used'
done_testing
