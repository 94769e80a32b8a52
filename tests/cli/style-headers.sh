#!/bin/sh
# SPDX-License-Identifier: MIT
# Every header compiles alone, and the installed one as strict C99 too.
. "${0%/*}/functions.sh"

: "${CC:=cc}"
flags="-I$BUILD -I$SRC/sdk -I$SRC -D_GNU_SOURCE -Wall -Wextra -Werror"
flags="$flags $(pkg-config --cflags sqlite3 libcjson yaml-0.1 libarchive)"

compiles() # HEADER FLAG...
{
	header=$1
	shift
	# An empty translation unit would be a warning; $CC and $flags are lists.
	# shellcheck disable=SC2086
	printf '#include "%s"\nextern int abx_not_empty;\n' "$header" |
		$CC -fsyntax-only -x c "$@" $flags -
}

find "$SRC/core" "$SRC/sdk" "$SRC/providers" -name '*.h' >"$T/headers"
while IFS= read -r header; do
	ok "${header#"$SRC"/} compiles alone" compiles "$header" -std=gnu17
done <"$T/headers"
ok 'the installed header is C99' compiles "$SRC/sdk/agentbox/cloud_backend.h" -std=c99 -pedantic
done_testing
