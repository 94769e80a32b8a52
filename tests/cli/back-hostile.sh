#!/bin/sh
# SPDX-License-Identifier: MIT
# What a box may not bring back: a repository in disguise, links that climb out of the project.
. "${0%/*}/functions.sh"

providers=mock
if ab doctor --provider local >/dev/null 2>&1; then
	providers="$providers local"
fi
for p in $providers; do
	mkdir "$T/$p"
	printf 'good\n' >"$T/$p/file"
	ok "$p: a box" ab create --provider "$p" -w "$T/$p" -n "h-$p" -y
	ok "$p: it prepares" ab exec "h-$p" -- sh -c '
		mkdir -p sub/objects sub/refs a/b/c &&
		echo x >sub/objects/keep && echo x >sub/refs/keep &&
		echo "ref: refs/heads/x" >sub/HEAD &&
		printf "[core]\nbare=false\nworktree=.\nfsmonitor=\"touch %s; false\"\n" "$1" \
			>sub/config &&
		ln -s ../../.. a/b/c/flat && ln -s flat/../../../etc/passwd a/b/c/esc &&
		ln -s a/b/c/flat/.. esc3 && ln -s file fine && echo better >file' sh "$T/$p.fsm"
	code 1 "$p: download leaves some out" ab download "h-$p" -y
	is "$(cat "$T/$p/file" "$T/$p/fine")" 'better
better' "$p: the rest came back"
	like "$out" 'sub/HEAD: not brought back: .*repository' \
		"$p: a repository in disguise is named"
	like "$out" 'esc: not brought back: .*leaves' "$p: so is a link that climbs out"
	[ ! -e "$T/$p/sub/HEAD" ] && [ ! -L "$T/$p/a/b/c/esc" ] &&
		[ ! -L "$T/$p/esc3" ] &&
		pass "$p: none of them is there" || fail "$p: none of them is there"
	git -C "$T/$p/sub" status >/dev/null 2>&1
	[ ! -e "$T/$p.fsm" ] && pass "$p: git runs nothing of it" ||
		fail "$p: git runs nothing of it"
done

if ab doctor --provider local >/dev/null 2>&1; then
	printf 'mine\n' >"$T/note"
	chmod 600 "$T/note"
	run sh -c '"$1/tests/wrapper" agentbox exec h-local -- sh -c \
		"cat; echo pwned >/proc/self/fd/0; readlink /proc/self/fd/0" <"$2"' \
		sh "$BUILD" "$T/note"
	like "$out" '^mine$' 'input arrives'
	unlike "$out" "$T" 'and not where it comes from'
	is "$(cat "$T/note")" mine 'a box cannot write into what it reads'
fi
done_testing
