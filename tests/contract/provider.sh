#!/bin/sh
# SPDX-License-Identifier: MIT
# agentbox provider: what there is, what is wrong with it, and what one of them can do.
. "${0%/*}/../cli/functions.sh"

mkdir -m 700 "$T/one" "$T/two"
cp "$BUILD/tests/mock/.libs/agentbox-mock.so" "$T/one" &&
	cp "$BUILD/tests/mock/.libs/agentbox-mock.so" "$T/two" &&
	cp "$BUILD/tests/abi/.libs/agentbox-fixture.so" "$T/two" &&
	chmod go-w "$T/one/agentbox-mock.so" "$T"/two/*.so || exit 99
printf 'text' >"$T/two/agentbox-broken.so"
AGENTBOX_PROVIDER_PATH=$T/one:$T/two
export AGENTBOX_PROVIDER_PATH

run ab provider list
is "$status" 0 'list succeeds, whatever is broken'
like "$out" "^mock +1\\.0\\.0 +1\\.0 +ok +$T/one/agentbox-mock\\.so" 'the first one is used'
like "$out" "^mock .* shadowed +$T/two/agentbox-mock\\.so" 'the second one is shadowed'
like "$out" '^broken +- +- +broken .*not an ELF file' 'a broken one has its reason'
is "$err" '' 'and nothing is on stderr'
is_json() # TEXT
{
	printf '%s' "$1" | perl -MJSON::PP -e 'decode_json(join "", <>)'
}

run ab provider list --json
doc=$out
ok 'list --json is JSON' is_json "$doc"
like "$doc" '"status":.*"shadowed"' 'with the same words'
no 'list made no home' [ -e "$AGENTBOX_HOME" ]

run ab provider info mock
is "$status" 0 'info of one by name'
like "$out" '^threads +parallel' 'info says its thread model'
like "$out" 'exec_stdin' 'and its capabilities'
like "$out" '^mock\.idle \(duration, default 5m\)' 'and its options'
run ab provider info "$T/one/agentbox-mock.so" --json
doc=$out
ok 'info --json is JSON' is_json "$doc"
like "$doc" '"has_destroy":.*true' 'info --json says which operations there are'
like "$doc" '"has_exec_attach":.*false' 'and which are not'

one_line_error 5 'provider .nothere. not found in: ' 'a missing one' ab provider info nothere
one_line_error 5 'not an ELF file' 'a broken one' ab provider info broken
one_line_error 5 'not an absolute path' 'a relative path' ab provider info ./agentbox-mock.so
one_line_error 2 'list, or info' 'no word' ab provider
run ab provider info broken --json
is "$status" 5 'under --json too'
like "$out" '"code":.*"provider"' 'with its code'

# One that ends whoever loads it.
perl -0777 -pi -e 's/misbehave=nothing-at-all/"misbehave=crash" . "\0" x 9/e' \
	"$T/two/agentbox-fixture.so"
one_line_error 5 'crashed when it was loaded \(signal 11\) \(reinstall it\)' \
	'one that crashes' ab provider info fixture
chmod o+w "$T/two/agentbox-fixture.so"
one_line_error 5 'refused: writable by group or others \(chmod go-w' \
	'one that others can write' ab provider info fixture
done_testing
