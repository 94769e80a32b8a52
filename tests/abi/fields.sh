#!/bin/sh
# SPDX-License-Identifier: MIT
# The layout and the numbers of the ABI are those that were written down.  A member that is
# appended, or a new number, comes with a line in 1.0.fields and in fields.h.
. "${0%/*}/../cli/functions.sh"

run "$BUILD/tests/abi/fields"
is "$status" 0 'no member of a struct is missing from the list'
[ "$status" = 0 ] || diag "$err"
printf '%s\n' "$out" >"$T/now"
same "$SRC/tests/abi/1.0.fields" "$T/now" 'offsets, sizes and numbers are those of 1.0'
# A number is a macro without parameters whose value holds no text and no code.
sed -n 's/^#define \(ABX_[A-Z0-9_]*\)[[:space:]][[:space:]]*[(A-Z0-9-].*/\1/p' \
	"$SRC/sdk/agentbox/cloud_backend.h" >"$T/numbers"
ok 'there are numbers in the header' [ -s "$T/numbers" ]
while IFS= read -r name; do
	case $name in
	ABX_NOTE_OWNER | ABX_EXPORT | ABX_OP | ABX_SB) continue ;;
	esac
	grep -q "^C($name)\$" "$SRC/tests/abi/fields.h" || printf '%s\n' "$name"
done <"$T/numbers" >"$T/missing"
is "$(cat "$T/missing")" '' 'every number of the header is in the list'
done_testing
