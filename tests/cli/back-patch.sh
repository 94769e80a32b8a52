#!/bin/sh
# SPDX-License-Identifier: MIT
# download --patch: what a box changed, as git apply takes it.
. "${0%/*}/functions.sh"

providers=mock
[ "$(ab provider list --json | grep -c '"local"')" = 0 ] || providers="$providers local"

for p in $providers; do
	repo=$T/$p
	make_repo "$repo" >/dev/null
	cp -a "$repo" "$T/$p.copy"
	ok "$p: a box" ab create --provider "$p" -w "$repo" -n "$p" -y
	ok "$p: nothing is an empty patch" ab download "$p" --patch "$T/$p.none"
	is "$(wc -c <"$T/$p.none")" 0 "$p: of no bytes"
	ok "$p: work" ab exec "$p" -- sh -c 'echo more >>a.txt; head -c 3000 /dev/urandom >bin;
		mkdir -p "n w"; printf "q\n" >"n w/\"q\\\\
\$(printf "\\344")"; ln -s a.txt lnk; printf x >noeol; chmod 755 noeol;
		git add -A; git commit -qm work; rm -f bin2; echo x >>noeol; mkfifo pipe'
	sum=$(tree_sum "$repo")
	run ab download "$p" --patch "$T/$p.patch"
	is "$status" 1 "$p: what cannot be in it is told by the exit code"
	like "$err" 'pipe: not in the patch' "$p: and named"
	is "$(tree_sum "$repo")" "$sum" "$p: the project is left alone"
	ok "$p: git applies it" git -C "$T/$p.copy" apply --whitespace=nowarn "$T/$p.patch"
	ab exec "$p" -- rm pipe </dev/null
	ok "$p: the same on stdout" sh -c '"$0" agentbox download "$1" --patch - >"$2"' \
		"$BUILD/tests/wrapper" "$p" "$T/$p.stdout"
	same "$T/$p.stdout" "$T/$p.patch" "$p: every byte"
	ok "$p: as a download" ab download "$p" -y
	is "$(cd "$repo" && git status --porcelain -z | tr '\0' '\n')" \
		"$(cd "$T/$p.copy" && git status --porcelain -z | tr '\0' '\n')" \
		"$p: it makes the same state"
	is "$(cd "$repo" && sha1sum bin a.txt noeol && stat -c %a noeol)" \
		"$(cd "$T/$p.copy" && sha1sum bin a.txt noeol && stat -c %a noeol)" \
		"$p: of the same bytes"
	code 2 "$p: not with --dry-run" ab download "$p" --patch x --dry-run
	code 1 "$p: a file that cannot be written" ab download "$p" --patch "$T/nowhere/x"
	ok "$p: it goes" ab destroy "$p" -y
done
done_testing
