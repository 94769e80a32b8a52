#!/bin/sh
# SPDX-License-Identifier: MIT
# A box elsewhere: what goes there is compressed where it can be read, arrives as it was, costs no
# round trip more, and its size is said before.
. "${0%/*}/functions.sh"

TOOL=$BUILD/tests/contract/agentbox-contract-tool
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

# Its size is said before; where it is too much, nobody is asked and nothing is made.
ok 'the size' ab create --provider mockfar -n size -y
like "$err" '^sending [0-9]+ files, [0-9.]+ MiB, and [0-9.]+ MiB of history$' 'is said'
ok 'of a plain tree' ab create --provider mockfar -n flat -w "$T/bin" -y
like "$err" '^sending [0-9]+ files, [0-9.]+ MiB$' 'it has no history'
ok 'in JSON' ab create --provider mockfar -n json -y --json
is "$err" '' 'it is not for people'
ok 'here' ab create --provider mock -n here -y
is "$err" '' 'nobody waits for it'
git rm -q --cached numbers noise && rm numbers noise && git commit -q -m 'They go'
for size in 1K 2M; do
	ok "a limit of $size" ab config set box.max_seed "$size"
	one_line_error 6 '[0-9]+ files, 0.1 MiB, and [2-4][.0-9]+ MiB of history: more than ' \
		'where files or history are beyond it' ab create --provider mockfar -n large
done
like "$err" '\.git .[2-4][.0-9]+ MiB..*cut the history with --depth' 'what helps is named'
ok 'a box all the same' ab create --provider mockfar -n large -y
like "$err" '^sending ' 'with -y'
ok 'or less of it' ab create --provider mockfar -n less --depth 1
like "$err" '^sending .* 0\.[0-9] MiB of history' 'which is said'
ok 'for boxes here' ab create --provider mock -n here2
ok 'no limit any more' ab config unset box.max_seed

# What takes longer than a second shows that it goes on: bytes, rate and what is left.
git checkout -q HEAD~1 -- numbers noise
slow()
{
	AGENTBOX_MOCK_FAULTS="put_tar:delay=$1" "$BUILD/tests/wrapper" \
		agentbox create --provider mockfar -n "slow$1" -y </dev/null
}
slow 5200 >"$T/slow" 2>&1
like "$(grep workspace "$T/slow")" \
	'^seeding the workspace: [0-9.]+ MiB .[0-9]+%., [0-9.]+ [KM]iB/s(, [0-9]+ s left)?$' \
	'a line where there is no terminal'
echo 'wait seeding the workspace: ' >"$T/script"
ok 'on a terminal' env AGENTBOX_MOCK_FAULTS=put_tar:delay=1500 "$BUILD/tests/wrapper" \
	"$TOOL" pty "$T/script" agentbox create --provider mockfar -n pty -y
like "$(tr '\r' '\n' <"$T/run.out")" \
	'seeding the workspace: [0-9.]+ MiB .[0-9]+%., [0-9.]+ [KM]iB/s' \
	'the same, over itself'

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
