#!/bin/sh
# SPDX-License-Identifier: MIT
# A box elsewhere: what goes there is compressed where it can be read, arrives as it was, costs no
# round trip more, and its size is said before.
. "${0%/*}/functions.sh"

have zstd || skip_all 'no zstd, which stands in for that of a box'

# 6 MB that shrink to little, and some that do not.
make_repo "$T/repo" >/dev/null
cd "$T/repo" || exit 99
seq 1 1000000 >numbers
head -c 300000 /dev/urandom >noise
git add . && git commit -q -m 'Numbers' || exit 99
make_dirty "$T/repo"
echo more >>numbers
tree=$(find . -name .git -prune -o -type f -printf '%s\n' | awk '{n += $1} END {print n}')
status_here=$(git --no-optional-locks status --porcelain=v2 -z | cksum)
diag "$tree bytes of files"

sums='find . -name .git -prune -o -type l -printf "%p l %l\0" -o \
	-type f ! -name "*.ignored" -printf "%p f %m %s %Ts\0" | sort -z | sha256sum
	find . -name .git -prune -o -type f ! -name "*.ignored" -print0 | sort -z |
	xargs -0 sha256sum -z | sha256sum'
want=$(sh -c "$sums")

# The words of what the provider was asked for, one a round trip.
trips()
{
	sed -n 's/^agentbox: [a-z]*: POST \([^ ]*\) .*/\1/p' "$T/stderr" | sed 's,.*/,,' |
		tr '\n' ' '
}

traced()
{
	AGENTBOX_DEBUG=trace,shrink "$BUILD/tests/wrapper" agentbox "$@" \
		</dev/null >"$T/stdout" 2>"$T/stderr"
}

# What a provider got in one operation, or what went into a compressor and out of it.
sent()
{
	awk -v op="$1" '$1 == op {n = $2} END {print n + 0}' "$AGENTBOX_HOME/providers/$2/bytes"
}

shrunk()
{
	sed -n 's/^agentbox: shrink: \([0-9]*\) bytes as \([0-9]*\)$/\'"$1"'/p' "$T/stderr" |
		tail -n 1
}

less()
{
	[ "$1" -gt 0 ] && [ "$1" -lt "$2" ]
}

whole() # BOX DESC
{
	is "$(ab exec "$1" -- sh -c "$sums" </dev/null)" "$want" "$2: byte by byte"
	is "$(ab exec "$1" -- git status --porcelain=v2 -z </dev/null | cksum)" "$status_here" \
		"$2: the same status"
}

ok 'a provider that takes zstd' traced create --provider mockfar -n far -y
is "$(trips)" 'sandboxes exec put_tar exec ' 'ready, one stream, one script'
far=$(sent put_tar mockfar)
diag "$far bytes travelled"
ok 'less than its files travels' less "$far" "$tree"
whole far mockfar

ok 'a provider that does not' traced create --provider mockfarplain -n plain -y
is "$(trips)" 'sandboxes exec put_tar exec ' 'is asked as often'
ok 'gets all of it' less "$tree" "$(sent put_tar mockfarplain)"
whole plain mockfarplain

ok 'tar over the stdin of a command' traced create --provider mockfarexec -n exec -y
is "$(trips)" 'sandboxes exec exec exec ' 'what the box can read costs no round trip'
ok 'and it is used' less "$(shrunk 2)" "$tree"
whole exec mockfarexec

ok 'an archive that is uploaded' traced create --provider mockfarbare -n bare -y
is "$(trips)" 'sandboxes exec upload exec exec ' 'was asked for with whether it is ready'
ok 'is compressed too' less "$(sent upload mockfarbare)" "$tree"
whole bare mockfarbare

# A box without zstd.
mkdir "$T/bin"
for dir in /usr/bin /bin; do
	for program in "$dir"/*; do
		[ "${program##*/}" = zstd ] || ln -sf "$program" "$T/bin/"
	done
done
ok 'a box without zstd' traced create --provider mockfarexec -n without -y -e PATH="$T/bin"
is "$(trips)" 'sandboxes exec exec exec ' 'is asked as often'
ok 'gets all of it' less "$tree" "$(shrunk 2)"
whole without 'without zstd'

# What is behind create.
mkdir "$T/tree" && seq 1 100000 >"$T/tree/numbers" && seq 1 9 >"$T/tree/few"
for p in far exec bare; do
	ok "cp of a tree: $p" traced cp "$T/tree" "$p:/workspace/"
	is "$(ab exec "$p" -- sh -c 'cat tree/numbers tree/few | cksum' </dev/null)" \
		"$(cat "$T/tree/numbers" "$T/tree/few" | cksum)" 'arrives'
	ok 'and was compressed' less "$(shrunk 2)" 300000
	tar -c -C "$T/tree" . | zstd -q >"$T/tree.zst"
	ok "a stream that is zstd already: $p" sh -c \
		'"$1/tests/wrapper" agentbox cp - "$2:/workspace/src" <"$3"' sh "$BUILD" "$p" \
		"$T/tree.zst"
	is "$(ab exec "$p" -- cksum src/numbers </dev/null)" \
		"$(cksum <"$T/tree/numbers") src/numbers" 'is unpacked all the same'
done

# What breaks on the way is said, and nothing is left.
mkdir "$T/broken"
cat >"$T/broken/zstd" <<'END'
#!/bin/sh
head -c 1000 >/dev/null
echo 'zstd: it broke' >&2
exit 1
END
chmod 755 "$T/broken/zstd"
code 1 'a zstd that fails in the box' \
	ab create --provider mockfarexec -n broken -y -e PATH="$T/broken:/usr/bin:/bin"
like "$err" 'tar in the box ended with 1: .*it broke' 'is what went wrong'
unlike "$(ab list -g)" broken 'leaves no box'
ab destroy --all -y >/dev/null 2>&1
done_testing
