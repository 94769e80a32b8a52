#!/bin/sh
# SPDX-License-Identifier: MIT
# The installed header is strict C99 and C++11 without padding, for each compiler that is here,
# and a plugin that is written in either loads.
. "${0%/*}/../cli/functions.sh"

strict='-pedantic-errors -Wall -Wextra -Wpadded -Werror'

compiles() # COMPILER LANGUAGE STANDARD
{
	# $strict is a list.
	# shellcheck disable=SC2086
	printf '#include <agentbox/cloud_backend.h>\nextern int abx_not_empty;\n' |
		"$1" -x "$2" "-std=$3" $strict -I"$SRC/sdk" -fsyntax-only -
}

found=
for cc in gcc clang; do
	have "$cc" || continue
	found=1
	for std in c99 c11 c17; do
		ok "$cc -std=$std" compiles "$cc" c "$std"
	done
done
for cxx in g++ clang++; do
	have "$cxx" || continue
	# A C++ compiler is not needed to build agentbox, and may be there without its library.
	printf '#include <cstddef>\n' | "$cxx" -x c++ -std=c++11 -fsyntax-only - 2>/dev/null ||
		continue
	for std in c++11 c++17; do
		ok "$cxx -std=$std" compiles "$cxx" c++ "$std"
	done
done
is "$found" 1 'a compiler was found'
done_testing
