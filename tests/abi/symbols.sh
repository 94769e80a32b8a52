#!/bin/sh
# SPDX-License-Identifier: MIT
# A provider exports its entry and nothing else, and needs no symbol of agentbox.
. "${0%/*}/../cli/functions.sh"

have nm || skip_all 'there is no nm'
n=0
for so in "$BUILD"/providers/*/.libs/agentbox-*.so "$BUILD"/tests/mock/.libs/agentbox-*.so \
	"$BUILD"/tests/abi/.libs/agentbox-*.so; do
	[ -e "$so" ] || continue
	n=$((n + 1))
	run nm -D --defined-only --format=posix "$so"
	is "$(printf '%s\n' "$out" | cut -d' ' -f1)" agentbox_cloud_backend \
		"${so##*/} exports one symbol"
	run nm -D --undefined-only --format=posix "$so"
	unlike "$out" '^(abx|ABX)_' "${so##*/} needs none of ours"
	like "$out" '^malloc|^free|^memcpy|^strcmp|^__asan_memcpy' "${so##*/} was looked at"
	run readelf -dW "$so"
	like "$out" 'NODELETE' "${so##*/} is never unloaded"
	like "$out" 'BIND_NOW|FLAGS.*NOW' "${so##*/} is bound at once"
	unlike "$out" 'RPATH|RUNPATH|TEXTREL' "${so##*/} has no search path of its own"
done
ok 'there were providers to look at' [ "$n" -ge 3 ]
done_testing
