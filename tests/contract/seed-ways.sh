# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2016,SC2034,SC2154
# tests/contract/seed-ways.sh: which state goes in and how much of it; commits out (fetch) and in
# (sync); what a box makes up for download, fetch and cp.

[ -d "$W/victim" ] || { mkdir "$W/victim" && printf 'mine\n' >"$W/victim/file"; }

# A box of another state than what is checked out, whose own work tree is compared with $1.
makes() # TEXT DIR ARG...
{
	suite_id="ways $1" suite_dir=$2
	shift 2
	next_box
	run ab_create -w "$suite_dir" -n "$(b "$box")" "$@"
	said="$out
$err"
	is "$status" 0 "$suite_id: a box is made"
	[ "$status" -eq 0 ] || {
		tap_show_run create "$@"
		box=
	}
	is "$(tells 'git status --porcelain
		git fsck 2>&1 | grep -v -e "^notice: " -e "^dangling "')" '' \
		"$suite_id: nothing is changed in it, and it is whole"
	untouched "$suite_id: nothing changed here"
}

repo "$W/which"
host "$W/which" 'git checkout -q -b feat && echo f >f && git add f && git commit -q -m feat &&
	git tag v1 && git checkout -q main && echo dirty >>a.txt && echo u >untracked'
feat=$(git -C "$W/which" rev-parse feat)
makes 'another branch to go on with' "$W/which" --use-branch feat
is "$(tells 'git symbolic-ref HEAD; git rev-parse HEAD; ls')" "refs/heads/feat
$feat
a.txt
b.txt
dangling
f
link
src" 'ways another branch to go on with: it is that, and nothing else came'
like "$said" "committed on 'feat'" 'ways another branch to go on with: what stays here is said'
one_line_error 1 'agentbox cp' 'ways another branch to go on with: sync is refused' \
	ab sync "$(b "$box")"
makes 'a tag to begin from' "$W/which" --from-branch v1
is "$(tells 'git symbolic-ref HEAD; git rev-parse HEAD')" "refs/heads/agentbox/$(b "$box")
$feat" 'ways a tag to begin from: on a branch of its own'
makes 'only what is committed' "$W/which" --no-dirty
is "$(tells 'cat a.txt; ls untracked 2>/dev/null')" alpha \
	'ways only what is committed: nothing else came'
refuses ways 'a branch that is not there' "$W/which" nowhere --use-branch nowhere

repo "$W/line"
host "$W/line" 'for i in 3 4 5 6 7 8 9; do echo $i >n && git add n && git commit -q -m $i; done
	echo dirty >>n'
cut() # DEPTH WANT
{
	suite_id="ways --depth $1" suite_dir=$W/line
	next_box
	run ab_create -w "$W/line" -n "$(b "$box")" --depth "$1"
	[ "$status" -eq 0 ] || tap_show_run create
	is "$(tells 'git rev-list --count HEAD; git rev-parse --is-shallow-repository
		git status --porcelain
		git fsck --strict 2>&1 | grep -v -e "^notice: " -e "^dangling "' |
		tr '\n' ' ')" "$2  M n " "$suite_id: as much as that, and whole"
	untouched "$suite_id: nothing changed here"
}
cut 3 '3 true'
there 'commits on top come back' 'git commit -q -am box'
run ab fetch "$(b "$box")" --as cut
is "$status:$(git -C "$W/line" log -2 --format=%s cut | tr '\n' ' ')" '0:box 9 ' \
	'ways --depth 3: fetch brings what was committed on top'
is "$(git -C "$W/line" fsck 2>&1 | grep -v -e '^notice: ' -e '^dangling ')" '' \
	'ways --depth 3: the repository here is whole'
cut 1 '1 true'
cut full '9 false'
cut 9 '9 false'

repo "$W/pointers"
(cd "$W/pointers" && git config filter.lfs.clean "$W/bin-of-ways/clean" && mkdir "$W/bin-of-ways" &&
	cat >"$W/bin-of-ways/clean" <<'END' && chmod 755 "$W/bin-of-ways/clean" &&
#!/bin/sh
f=$(mktemp) && cat >"$f" || exit 1
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n' \
	"$(sha256sum <"$f" | cut -d' ' -f1)" "$(wc -c <"$f")"
rm -f "$f"
END
	git config filter.lfs.smudge cat && echo '*.bin filter=lfs -text' >.gitattributes &&
	"$TOOL" bytes 300000 >one.bin && "$TOOL" bytes 3000 >two.bin && git add . &&
	git commit -q -m lfs && echo changed >>two.bin) || exit 99
suite_id='B012 --skip-lfs' suite_dir=$W/pointers
next_box
run ab_create -w "$W/pointers" -n "$(b "$box")" --skip-lfs
[ "$status" -eq 0 ] || tap_show_run create
is "$(tells 'cat one.bin')" "$(git -C "$W/pointers" cat-file -p HEAD:one.bin)" \
	'B012 --skip-lfs: a pointer in place of the content'
is "$(tells 'sha256sum two.bin; git status --porcelain')" "$(cd "$W/pointers" &&
	sha256sum two.bin && git --no-optional-locks status --porcelain)" \
	'B012 --skip-lfs: what was changed here is there as it is'
untouched 'B012 --skip-lfs: nothing changed here'
run ab download "$(b "$box")" -y
is "$status:$(cd "$W/pointers" && git status --porcelain)" '0: M two.bin' \
	'B012 --skip-lfs: no pointer comes back'

# Commits out.
repo "$W/commits"
repo "$W/part"
host "$W/commits" 'git submodule --quiet add ../part sub && git commit -q -m sub &&
	echo dirty >>b.txt && echo staged >staged && git add staged'
seeds ways 'commits that come back' "$W/commits"
there 'it works' 'echo 1 >>a.txt && git commit -q -am one && echo 2 >>a.txt &&
	git commit -q -am two &&
	git -C sub commit -q --allow-empty -m of-sub && echo left >left'
before=$(git -C "$W/commits" status --porcelain)
files=$(cd "$W/commits" && find . -path ./.git -prune -o -print0 | sort -z | sha256sum)
index=$(sha256sum <"$W/commits/.git/index")
run ab fetch "$(b "$box")"
is "$status" 0 'ways fetch: succeeds'
[ "$status" -eq 0 ] || tap_show_run fetch
is "$(git -C "$W/commits" log -2 --format=%s "agentbox/$(b "$box")" | tr '\n' ' ')" 'two one ' \
	'ways fetch: the commits are a branch'
is "$(git -C "$W/commits" rev-parse "agentbox/$(b "$box")")" "$(tells 'git rev-parse HEAD')" \
	'ways fetch: the same commits'
is "$(git -C "$W/commits/sub" log -1 --format=%s "agentbox/$(b "$box")")" of-sub \
	'ways fetch: those of a submodule too'
is "$(git -C "$W/commits" status --porcelain):$(git -C "$W/commits" symbolic-ref HEAD)" \
	"$before:refs/heads/main" 'ways fetch: the work tree here stays'
is "$(cd "$W/commits" && find . -path ./.git -prune -o -print0 | sort -z | sha256sum)" "$files" \
	'ways fetch: no file more'
is "$(sha256sum <"$W/commits/.git/index")" "$index" 'ways fetch: the index stays'
like "$out$err" 'not committed' 'ways fetch: what is not committed is said'
is "$(git -C "$W/commits" fsck 2>&1 | grep -v -e '^notice: ' -e '^dangling ')" '' \
	'ways fetch: the repository here is whole'
there 'a commit loses its tree' 'echo x >>a.txt && git commit -q -am lie &&
	rm -f ".git/objects/$(git rev-parse "HEAD^{tree}" | sed "s,^..,&/,")"'
refs=$(git -C "$W/commits" for-each-ref)
run ab fetch "$(b "$box")"
[ "$status" -ne 0 ] && c=0 || c=1
is "$c:$(git -C "$W/commits" for-each-ref)" "0:$refs" \
	'ways fetch: objects that are missing make no ref'

# Newer work in.
repo "$W/newer"
seeds ways 'work that goes in later' "$W/newer"
there 'both sides work' 'echo box >>b.txt && echo own >own'
host "$W/newer" 'echo more >>a.txt && git commit -q -am newer && echo host >>b.txt &&
	echo edit >edit && rm link'
suite_detail >"$T/detail"
suite_exact >"$T/exact"
run ab sync "$(b "$box")"
is "$status" 1 'ways sync: a conflict is exit code 1'
like "$out" '^b.txt: changed in the box too' 'ways sync: it is named'
is "$(tells 'git log -1 --format=%s; for f in a.txt b.txt edit own; do tail -n 1 $f; done
	ls link 2>/dev/null' | tr '\n' ' ')" 'newer more box edit own ' \
	'ways sync: commits and edits are there, and its own work is'
untouched 'ways sync: nothing changed here'
run ab download "$(b "$box")" -y
is "$status:$(cat "$W/newer/own")" 1:own 'ways sync: what it made comes back'
is "$(tail -n 1 "$W/newer/b.txt")" host 'ways sync: what both changed stays on both sides'
there 'what came back goes again' 'rm own'
ab download "$(b "$box")" -y >/dev/null 2>&1 </dev/null
[ ! -e "$W/newer/own" ] && pass 'ways download: what was brought and is deleted there goes' ||
	fail 'ways download: what was brought and is deleted there goes'

# What a box makes up for download.  Each kind by its name.
repo "$W/kinds"
seeds B038 'kinds that are no files' "$W/kinds"
there 'they are made' 'printf good >good && ln good again && ln a.txt b && chmod 6755 good &&
	chmod 4755 again && mkfifo fifo && mkdir -m 3777 sticky && printf in >sticky/in &&
	{ mknod null c 1 3 2>/dev/null || mkfifo null; } && { mknod disk b 7 200 2>/dev/null ||
	mkfifo disk; }'
run ab download "$(b "$box")" -y
is "$status" 1 'B038 kinds that are no files: are refused'
for name in fifo null disk; do
	like "$out" "^A $name: not brought back: neither a file" \
		"B038 kinds that are no files: $name is named by its kind"
done
is "$(find "$W/kinds" -path '*/.git' -prune -o ! -type f ! -type d ! -type l -print)" '' \
	'B038 kinds that are no files: none is here'
is "$(cd "$W/kinds" && cat good again sticky/in b)" 'goodgoodinalpha' \
	'B038 kinds that are no files: the rest is'
is "$(find "$W/kinds" -path '*/.git' -prune -o -perm /7000 -print)" '' \
	'B038 kinds that are no files: without setuid, setgid and sticky'
is "$(cd "$W/kinds" && stat -c %h good again a.txt b | sort -u)" 1 \
	'B038 kinds that are no files: hard links are files of their own'

# Much in little: what it says is small, and what is read of it is not.
there 'a bomb' 'rm -f fifo null disk && head -c 67108864 /dev/zero >bomb && echo ok >small'
run ab download "$(b "$box")" -y --max-file 1M
is "$status:$(cat "$W/kinds/small" 2>/dev/null)" 1:ok 'B038 a bomb: the rest comes'
like "$out" '^A bomb: not brought back: larger than what may come back' 'B038 a bomb: is named'
[ ! -e "$W/kinds/bomb" ] && pass 'B038 a bomb: is not here' || fail 'B038 a bomb: is not here'
there 'many' 'rm bomb && i=0 && while [ $i -lt 40 ]; do
	head -c 1048576 /dev/zero >z$i && echo $i >>z$i
	i=$((i + 1)); done'
run ab download "$(b "$box")" -y --max-total 10M
is "$status" 1 'B038 bombs: are refused'
like "$out" 'too much for one download' 'B038 bombs: by their kind'
[ "$(cat "$W/kinds"/z* | wc -c)" -le 10485760 ] && pass 'B038 bombs: no more than was allowed' ||
	fail 'B038 bombs: no more than was allowed'

# cp from a box that lies in wait.
there 'B038 cp: a trap' 'mkdir -p trap/sub && ln -s ../../victim trap/d && echo x >trap/x &&
	ln -s /etc/passwd trap/abs && printf good >trap/good && chmod 6755 trap/good &&
	ln trap/good trap/hard && mkfifo trap/fifo && ln -s x trap/fine && echo last >trap/z'
mkdir "$T/cp-out"
victim=$(exact "$W/victim")
run ab cp "$(b "$box"):trap" "$T/cp-out"
is "$status" 1 'B038 cp: what is hostile is refused'
for name in d abs fifo; do
	like "$err" "$name" "B038 cp: $name is named"
done
is "$(cd "$T/cp-out/trap" && cat good hard x fine z | tr '\n' ' ')" 'goodgoodx x last ' \
	'B038 cp: the rest is there'
is "$(find "$T/cp-out" -perm /7000)" '' 'B038 cp: without setuid and setgid'
ln -s "$W/victim" "$T/cp-out/trap/link"
there 'B038 cp: a directory where there is a link here' 'rm -f trap/d && mkdir trap/link &&
	echo pwn >trap/link/file && mkdir trap/d && echo pwn >trap/d/file'
ab cp "$(b "$box"):trap" "$T/cp-out" >/dev/null 2>&1 </dev/null
is "$(exact "$W/victim")" "$victim" 'B038 cp: nothing is written through a link that is here'
run ab cp "$(b "$box"):../../../../../../../../etc/hostname" "$T/cp-host"
[ ! -e "$T/cp-host" ] || [ "$(tells 'cat /etc/hostname')" = "$(cat "$T/cp-host")" ] && c=0 || c=1
is "$c" 0 'B042 cp: a path that climbs stays in the box'
