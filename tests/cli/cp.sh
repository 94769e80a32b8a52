#!/bin/sh
# SPDX-License-Identifier: MIT
# cp moves files and trees both ways, whole, and takes nothing hostile from a box.
. "${0%/*}/functions.sh"

mkdir "$T/plain"
printf 'hello\n' >"$T/plain/file"
make_repo "$T/tree" >/dev/null
rm -rf "$T/tree/.git"
with_local mock
for p in $providers; do
	box=box-$p
	ok "$p: a box" ab create --provider "$p" -w "$T/plain" -n "$box" -y
	ok "$p: a file in" ab cp "$T/plain/file" "$box:in.txt"
	ok "$p: and out" ab cp "$box:in.txt" "$T/$p.txt"
	same "$T/plain/file" "$T/$p.txt" "$p: the same bytes"
	printf '#!/bin/sh\n' >"$T/script"
	chmod 750 "$T/script"
	ok "$p: into a directory that is made" ab cp "$T/script" "$box:new/dir/script"
	ok "$p: a tree in" ab cp "$T/tree" "$box:copy"
	ok "$p: again, into the directory" ab cp "$T/tree" "$box:copy"
	ok "$p: a tree out" ab cp "$box:copy/tree" "$T/$p.tree"
	is "$(tree_sum "$T/$p.tree")" "$(tree_sum "$T/tree")" "$p: the same tree"
	mkdir "$T/$p.dir"
	ok "$p: several" ab cp "$box:file" "$box:in.txt" "$T/$p.dir"
	is "$(ls "$T/$p.dir" | tr '\n' ' ')" 'file in.txt ' "$p: under their own names"
	one_line_error 1 'not in the box' "$p: a file that is not there" \
		ab cp "$box:none" "$T/x"
	one_line_error 1 'No such file' "$p: nor here" ab cp "$T/none" "$box:x"
	one_line_error 2 'one side' "$p: both here" ab cp "$T/script" "$T/x"
	ab exec "$box" -- sh -c 'echo x >exe; chmod 755 exe; echo y >private; chmod 600 private' \
		</dev/null
	ok "$p: a program out" ab cp "$box:exe" "$T/$p.exe"
	is "$(stat -c %a "$T/$p.exe")" 755 "$p: it can be run"
	ok "$p: a private file out" ab cp "$box:private" "$T/$p.private"
	is "$(stat -c %a "$T/$p.private")" 600 "$p: it stays private"
	ln -sf "$p.private" "$T/$p.link"
	ok "$p: through a link" ab cp "$box:exe" "$T/$p.link"
	is "$(cat "$T/$p.private")" x "$p: the link is followed"
	[ -L "$T/$p.link" ] && pass "$p: and stays a link" || fail "$p: and stays a link"
	mkfifo "$T/$p.fifo"
	one_line_error 1 'not a regular file' "$p: a fifo is not replaced" \
		ab cp "$box:exe" "$T/$p.fifo"
	one_line_error 1 'neither a file' "$p: nor read" ab cp "$T/$p.fifo" "$box:x"
	[ ! -e "$T/x" ] && pass "$p: nothing was made" || fail "$p: nothing was made"
	ab exec "$box" -- sh -c 'mkdir -p evil/d && cd evil && ln -s /etc abs &&
		ln -s ../../up up && mkfifo fifo && printf good >good && chmod 6755 good' </dev/null
	code 1 "$p: what is hostile is left out" ab cp "$box:evil" "$T/$p.evil"
	like "$err" 'left out' "$p: it is said"
	is "$(cat "$T/$p.evil/good")" good "$p: the rest is there"
	is "$(stat -c %a "$T/$p.evil/good")" 755 "$p: without the setuid bit"
	[ ! -e "$T/$p.evil/fifo" ] && pass "$p: no fifo" || fail "$p: no fifo"
done
done_testing
