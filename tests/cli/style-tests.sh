#!/bin/sh
# SPDX-License-Identifier: MIT
# Every test that is there is run, and the written lists about tests are well-formed.
. "${0%/*}/functions.sh"

tests=$(MAKEFLAGS='' make -s --no-print-directory -f - -C "$BUILD" print-tests 2>/dev/null <<'END'
include Makefile
print-tests:
	@echo $(TESTS)
END
)
like "$tests" 'style-tests\.sh' 'the Makefile says which tests there are'
for file in "$SRC"/tests/*/*.sh; do
	name=${file#"$SRC"/}
	case $name in
	tests/cli/functions.sh | tests/bench/*) continue ;;
	esac
	# A file without the execute bit is meant to be sourced.
	[ -x "$file" ] || continue
	like " $tests " "[ /]$name " "$name is run by make check"
done
for file in "$SRC"/tests/unit/test-*.c; do
	[ -e "$file" ] || continue
	name=${file#"$SRC"/}
	name=${name%.c}
	# Without Check there are no unit tests at all, and configure says so.
	grep -q '^HAVE_CHECK_TRUE = #' "$BUILD/Makefile" ||
		like " $tests " " $name(\\\$\(EXEEXT\))? " "$name is run by make check"
done

filled='[^|]*[^ |][^|]*'
unlike "$(grep -v -e '^#' -e "^$filled|$filled|$filled\$" "$SRC/tests/skips")" . \
	'tests/skips: each line is TEST | REASON PATTERN | WHY'
like "$(cat "$SRC/tests/minimum")" '^[1-9][0-9]*$' 'tests/minimum is a number'
done_testing
