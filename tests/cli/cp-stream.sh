#!/bin/sh
# SPDX-License-Identifier: MIT
# cp with a stream on one side, trailing slashes, and what a killed cp leaves: nothing.
. "${0%/*}/functions.sh"

mkdir "$T/plain"
printf 'hello\n' >"$T/plain/file"
head -c 300000 /dev/urandom >"$T/bytes"
make_repo "$T/tree" >/dev/null
rm -rf "$T/tree/.git"
# First plain entries, then extended ones, in a directory that is there by then.
mkdir -p "$T/mixed/d/e"
(cd "$T/mixed/d" && echo one >"1" && echo two >"2" && echo other >"1é" && echo deep >e/3)
chmod 750 "$T/mixed/d"
touch -d @1000000001 "$T/mixed/d/e"
touch -d @1000000000 "$T/mixed/d"
(
	cd "$T/mixed" || exit
	tar -b 1 --format=gnu --no-recursion -c d d/1 d/e | head -c -1024
	tar --format=posix -c d/1é d/2 d/e/3
) >"$T/mixed.tar"
head -c 200000 "$T/bytes" >"$T/mixed/big"
tar --format=gnu -C "$T/mixed" -c big | head -c 100000 >"$T/cut.tar"
with_local mock

into() # FILE BOX:PATH
{
	"$BUILD/tests/wrapper" agentbox cp - "$2" <"$1"
}

out_of() # BOX:PATH FILE
{
	"$BUILD/tests/wrapper" agentbox cp "$1" - >"$2" </dev/null
}

for p in $providers; do
	box=box-$p
	ok "$p: a box" ab create --provider "$p" -w "$T/plain" -n "$box" -y
	ok "$p: a stream becomes a file" into "$T/bytes" "$box:new/bytes"
	ok "$p: a file becomes a stream" out_of "$box:new/bytes" "$T/$p.bytes"
	same "$T/bytes" "$T/$p.bytes" "$p: the same bytes"
	ok "$p: an empty stream" into /dev/null "$box:empty"
	ok "$p: an empty file" out_of "$box:empty" "$T/$p.empty"
	is "$(stat -c %s "$T/$p.empty")" 0 "$p: nothing in it"
	ab exec "$box" -- sh -c 'chmod 750 new/bytes; mkdir dir' </dev/null
	ok "$p: a file is replaced" into "$T/plain/file" "$box:new/bytes"
	is "$(ab exec "$box" -- stat -c %a new/bytes </dev/null)" 750 "$p: it keeps its mode"

	tar -C "$T/tree" -cf "$T/tree.tar" .
	ok "$p: a tar stream goes into a directory" into "$T/tree.tar" "$box:dir/"
	ok "$p: a directory becomes a tar stream" out_of "$box:dir" "$T/$p.tar"
	mkdir "$T/$p.tree"
	tar -C "$T/$p.tree" -xf "$T/$p.tar"
	chmod "$(stat -c %a "$T/tree")" "$T/$p.tree"
	is "$(cd "$T/$p.tree" && find . -type f -print0 | sort -z | xargs -0 sha256sum)" \
		"$(cd "$T/tree" && find . -type f -print0 | sort -z | xargs -0 sha256sum)" \
		"$p: the same files"
	ab exec "$box" -- mkdir mixed </dev/null
	ok "$p: a stream of two formats" into "$T/mixed.tar" "$box:mixed"
	is "$(ab exec "$box" -- sh -c 'cd mixed && stat -c "%n %a %Y" d &&
		cat d/1 d/1é d/2 d/e/3' </dev/null)" "$(echo "d 750 1000000000
one
other
two
deep")" "$p: all of it, with the time of the directory"
	# Where tar does it, what came into a directory that it had finished counts.
	[ "$p" != local ] || is "$(ab exec "$box" -- stat -c %Y mixed/d/e </dev/null)" 1000000001 \
		"$p: and of the one in it"
	ok "$p: the same over itself" into "$T/mixed.tar" "$box:mixed"
	no "$p: a stream that is cut" into "$T/cut.tar" "$box:mixed/d"

	no "$p: what is no tar stream does not go into a directory" into "$T/bytes" "$box:dir"

	one_line_error 1 'not in the box' "$p: nothing there" ab cp "$box:none" -
	one_line_error 2 'only one source' "$p: one stream, one source" \
		ab cp - "$T/bytes" "$box:dir"
	one_line_error 2 'only one source' "$p: and no two into it" \
		ab cp "$box:file" "$box:empty" -
	one_line_error 1 'is not a directory' "$p: a stream is no directory" \
		ab cp - "$box:missing/"
	one_line_error 1 'is not a directory' "$p: nor a file" ab cp "$T/bytes" "$box:missing/"
	one_line_error 1 'is not a directory' "$p: nor here" ab cp "$box:file" "$T/missing/"
	ok "$p: a directory may be" ab cp "$box:dir" "$T/$p.made/"
	[ -f "$T/$p.made/a.txt" ] && pass "$p: it is made" || fail "$p: it is made"
	ok "$p: several into one" ab cp "$box:file" "$box:empty" "$T/$p.made/"
	is "$(cat "$T/$p.made/file")" hello "$p: under their names"
done

killed_cp()
{
	AGENTBOX_MOCK_FAULTS=download:kill "$BUILD/tests/wrapper" agentbox cp box-mock:file \
		"$T/out/x"
}

mkdir "$T/out"
run killed_cp
is "$status" 137 'killed while a file comes'
is "$(ls -A "$T/out")" '' 'nothing is left of it'
printf 'old\n' >"$T/out/x"
run killed_cp
is "$(ls -A "$T/out") $(cat "$T/out/x")" 'x old' 'nor of one that replaces another'
ok 'then it comes' ab cp box-mock:file "$T/out/x"
is "$(ls -A "$T/out") $(cat "$T/out/x")" 'x hello' 'whole, and alone'
done_testing
