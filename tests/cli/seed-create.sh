#!/bin/sh
# SPDX-License-Identifier: MIT
# create puts into a box what is here: commit, index, work tree, odd names, modes; and leaves
# the repository, its settings and the user's own to the byte as they were.
. "${0%/*}/functions.sh"

providers=mock
if ab doctor --provider local >/dev/null 2>&1; then
	providers="$providers local"
fi

# Every byte, time and inode, the stat cache included.
exact_sum()
(
	cd "$1" || exit 1
	{
		find . -printf '%p\001%y %m %U %G %T@ %C@ %i %l\0' | sort -z
		find . -type f -print0 | sort -z | xargs -0 -r sha256sum --
	} | sha256sum
)

repo=$T/repo
make_repo "$repo" >/dev/null
make_dirty "$repo"
(cd "$repo" && git update-index -q --refresh)
git_config=$(cat "$HOME/.gitconfig")
before=$(exact_sum "$repo")
list_files='find . -mindepth 1 -path ./.git -prune -o -type d -printf "%m %p\0" \
	-o -printf "%m %Ts %p %l\0" | sort -z; find . -path ./.git -prune -o -type f -print0 |
	sort -z | xargs -0 sha256sum --'
(cd "$repo" && mv x.ignored .. && sh -c "$list_files" >"$T/want.files" && mv ../x.ignored .)
before=$(exact_sum "$repo")
git -C "$repo" --no-optional-locks status --porcelain=v2 -z >"$T/want.status"
git -C "$repo" ls-files -s -z >"$T/want.index"

for p in $providers; do
	box=box-$p
	ok "$p: a dirty repository" ab create --provider "$p" -w "$repo" -n "$box" -y
	like "$out" "$(git -C "$repo" rev-parse --short=12 HEAD)" "$p: the base is said"
	is "$(exact_sum "$repo")" "$before" "$p: the repository is untouched"
	is "$(cat "$HOME/.gitconfig")" "$git_config" "$p: so is ~/.gitconfig"
	run ab exec "$box" -- sh -c "$list_files"
	cp "$T/run.out" "$T/$p.files"
	same "$T/want.files" "$T/$p.files" "$p: names, modes, times, links and contents"
	run ab exec "$box" -- git status --porcelain=v2 -z
	cp "$T/run.out" "$T/$p.status"
	same "$T/want.status" "$T/$p.status" "$p: the same git status"
	run ab exec "$box" -- git ls-files -s -z
	cp "$T/run.out" "$T/$p.index"
	same "$T/want.index" "$T/$p.index" "$p: the same index"
	run ab exec "$box" -- git rev-parse HEAD
	is "$out" "$(git -C "$repo" rev-parse HEAD)" "$p: the same commit"
	run ab exec "$box" -- git symbolic-ref HEAD
	is "$out" "refs/heads/agentbox/$box" "$p: on a branch of its own"
	run ab exec "$box" -- sh -c 'git config user.name; git config user.email'
	is "$out" "Ada Example
ada@example.org" "$p: as the user"
	ok "$p: git trusts it, and it is whole" ab exec "$box" -- git fsck --full --strict
	ok "$p: work goes on" ab exec "$box" -- git commit -qam work
	ok "$p: everything belongs to the box user" ab exec "$box" -- \
		sh -c 'test -z "$(find . ! -user "$(id -un)")"'
	ok "$p: ignored files stay here" ab exec "$box" -- test ! -e x.ignored
	ok "$p: it goes" ab destroy "$box" -y
done

# B013
# Hard links to its objects would be a change.
git clone -q --no-hardlinks "$repo" "$T/detached"
(cd "$T/detached" && git checkout -q --detach HEAD~1)
# B014
git clone -q --no-hardlinks "$repo" "$T/ahead"
(
	cd "$T/ahead" && git checkout -q -b feat &&
		for i in 1 2 3; do
			echo $i >n$i && git add . && git commit -q -m n$i || exit 1
		done && echo dirty >>n1
)
for p in $providers; do
	ok "$p: B013 a detached HEAD" ab create --provider "$p" -w "$T/detached" -n "d-$p" -y
	run ab exec "d-$p" -- git rev-parse HEAD
	is "$out" "$(git -C "$T/detached" rev-parse HEAD)" "$p: B013 the same commit"
	ok "$p: B014 a branch that is ahead" ab create --provider "$p" -w "$T/ahead" -n "a-$p" -y
	run ab exec "a-$p" -- sh -c 'git log -1 --format=%s; git diff --stat | tail -n 1'
	is "$out" 'n3
 1 file changed, 1 insertion(+)' "$p: B014 from HEAD, with what is not committed"
	ok "$p: both go" ab destroy "d-$p" "a-$p" -y
done

# B023: the workspace as people write it.
mkdir -p "$T/b023/here" "$T/b023/sp #%20? ace" "$T/b023/dir:with:colons"
cd "$T/b023/here" || exit 99
for w in ../here . "$T/b023/sp #%20? ace" '../sp #%20? ace' ../dir:with:colons; do
	(cd "$w" && [ -e .git ] || { git init -q . && echo x >x && git add . && git commit -qm x; })
	ok "B023 create -w '$w'" ab create --provider mock -w "$w" -n w -y
	ok "B023 it is there" ab exec w -- test -f x
	ab destroy w -y >/dev/null
done

# B017, B018: many at once from one repository; nothing to fight for.
for i in 1 2 3 4 5 6 7 8; do
	ab create --provider mock -w "$repo" -n "many$i" -y >"$T/many$i" 2>&1 </dev/null &
done
wait
is "$(grep -l 'is running' "$T"/many? | wc -l)" 8 'B018 eight creates at once'
is "$(cat "$HOME/.gitconfig")" "$git_config" 'B017 ~/.gitconfig is as it was'
is "$(exact_sum "$repo")" "$before" 'B018 the repository too'
is "$(git -C "$repo" for-each-ref | wc -l)" 1 'B018 no branch was made'
ab destroy --all -y >/dev/null 2>&1

# Of one command: git looks once for all of them.
mkdir "$T/bin"
printf '#!/bin/sh\necho "$*" >>"%s/asked"\nPATH=%s exec git "$@"\n' "$T" "$PATH" >"$T/bin/git"
chmod 755 "$T/bin/git"
for p in $providers; do
	rm -f "$T/asked"
	(PATH=$T/bin:$PATH && ab create --provider "$p" -w "$repo" -n at-once --count 4 -y) \
		>"$T/at-once" 2>&1
	is "$(grep -c 'is running' "$T/at-once")" 4 "$p: four boxes of one command"
	is "$(grep -c pack-objects "$T/asked")" 1 "$p: one pack for all of them"
	is "$(ab list -g --json | sed -n 's/^.*"branch":.*"\(agentbox.*\)",$/\1/p' | sort)" \
		"$(printf 'agentbox/at-once-%s\n' 1 2 3 4)" "$p: each with a branch of its own"
	for i in 1 2 3 4; do
		ab exec "at-once-$i" -n -- sh -c "$list_files" >"$T/at-once"
		same "$T/want.files" "$T/at-once" "$p: all of it in box $i"
	done
	ab destroy --all -y >/dev/null 2>&1
	is "$(ls "$AGENTBOX_HOME/tmp")" '' "$p: what it was put into is gone"
done
is "$(exact_sum "$repo")" "$before" 'the repository is as it was'

# Plain directories.
mkdir -p "$T/plain/empty" "$T/plain/a/b" "$T/none"
printf 'x\n' >"$T/plain/a/b/x"
printf '*\n' >"$T/plain/.gitignore"
mkfifo "$T/plain/fifo"
for p in $providers; do
	ok "$p: a directory without git" ab create --provider "$p" -w "$T/plain" -n "p-$p" -y
	run ab exec "p-$p" -- sh -c 'find . -mindepth 1 | sort'
	is "$out" './.gitignore
./a
./a/b
./a/b/x
./empty' "$p: everything but the FIFO"
	ok "$p: an empty directory" ab create --provider "$p" -w "$T/none" -n "n-$p" -y
	run ab exec "n-$p" -- ls -A
	is "$out" '' "$p: is empty"
	ok "$p: both go" ab destroy "p-$p" "n-$p" -y
done
done_testing
