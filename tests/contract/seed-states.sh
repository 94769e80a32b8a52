# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2016,SC2034,SC2154
# tests/contract/seed-states.sh: states of a repository.

repo "$W/origin"
host "$W/origin" 'for i in 1 2 3; do echo $i >>a.txt && git commit -q -am "more $i"; done'

# B001
git clone -q --depth 1 "file://$W/origin" "$W/shallow"
echo more >>"$W/shallow/a.txt"
seeds B001 'a shallow clone' "$W/shallow"
is "$(tells 'git rev-parse --is-shallow-repository; git log --oneline | wc -l | tr -d " "
	git rev-list --objects HEAD >/dev/null && echo connected')" 'true
1
connected' 'B001 a shallow clone: and it is one there'
host "$W/shallow" 'for i in 1 2 3; do echo $i >>b.txt; git commit -q -am $i; done
	git fetch -q --depth 1 origin main && git gc -q'
seeds B001 'a shallow clone with commits on top' "$W/shallow"

# B003
host "$W/unborn" 'git init -q -b trunk . && echo a >a && echo b >b && git add b'
seeds B003 'a repository without commits' "$W/unborn"
there 'the first commit' 'git add -A && git commit -q -m first && git fsck --strict'
host "$W/nothing" 'git init -q -b main .'
seeds B003 'a repository with nothing at all' "$W/nothing"
there 'the first commit' 'echo x >x && git add . && git commit -q -m first'
repo "$W/orphan"
host "$W/orphan" 'git checkout -q --orphan new/line && git rm -q --cached b.txt'
seeds B003 'an orphan branch' "$W/orphan"

# B004
repo "$W/main"
host "$W/main" 'git worktree add -q -b w ../linked && cd ../linked && echo c >c && git add c
	echo d >>a.txt'
beside=$W/main
seeds B004 'a linked work tree' "$W/linked"
there 'work goes on' 'git commit -q -am more && git log --oneline | grep -q more && test -d .git'
is "$(git -C "$W/main" worktree list | wc -l | tr -d ' ')" 2 'B004 git worktree list: is as it was'
host "$W/linked" 'printf "gitdir: ../main/.git/worktrees/linked\n" >.git'
seeds B004 'a linked work tree with a relative path' "$W/linked"
host "$W/main" 'git config extensions.worktreeConfig true
	cd ../linked && git config --worktree x.y z'
seeds B004 'a linked work tree with a configuration of its own' "$W/linked"
git clone -q --bare "$W/origin" "$W/bare.git"
host "$W/bare.git" 'git worktree add -q -b w ../of-bare main && cd ../of-bare && echo x >x'
beside=$W/bare.git
seeds B004 'a linked work tree of a bare repository' "$W/of-bare"
beside=$W/moved
repo "$W/git-link"
host "$W/git-link" 'mv .git ../moved && ln -s ../moved .git && echo x >>a.txt'
seeds state 'a .git that is a symbolic link' "$W/git-link"
beside=

# B007
repo "$W/inner"
repo "$W/sub"
host "$W/sub" 'git submodule --quiet add ../inner deep/inner && git commit -q -m inner'
repo "$W/super"
host "$W/super" 'git submodule --quiet add ../sub "mod s" &&
	git submodule --quiet update --init --recursive && git commit -q -m sub && cd "mod s" &&
	echo local >local && git add . && git commit -q -m unpushed && echo dirty >>a.txt &&
	echo u >untracked && cd deep/inner && echo dirty >>b.txt'
seeds B007 'submodules, nested, dirty, with a commit of their own' "$W/super"
is "$(tells 'git submodule status --recursive | sed "s/ (.*//"')" \
	"$(git -C "$W/super" submodule status --recursive | sed 's/ (.*//')" \
	'B007 submodules: git submodule status --recursive as here'
there 'a commit in one of them' 'cd "mod s" && git commit -q -am more && cd .. &&
	git commit -q -am more && git -C "mod s/deep/inner" commit -q -am more'

# B008
repo "$W/dead"
host "$W/dead" 'git submodule --quiet add ../sub one && git submodule --quiet add ../sub two &&
	git config -f .gitmodules submodule.one.url git@127.0.0.1:none.git &&
	git config -f .gitmodules submodule.two.url "$PWD/../gone" &&
	git add . && git commit -q -m subs && git submodule --quiet deinit --all -f &&
	rm -rf .git/modules'
seeds B008 'submodules that are not there and cannot be reached' "$W/dead"
there 'its directories are' 'test -d one && test -d two && git commit -q --allow-empty -m x'

# B010: the files are what is here, whether the box has Git LFS or not.
mkdir "$W/bin"
cat >"$W/bin/clean" <<'END'
#!/bin/sh
f=$(mktemp) && cat >"$f" || exit 1
[ -s "$f" ] || exit 0
h=$(sha256sum <"$f" | cut -d' ' -f1)
o=$(git rev-parse --git-dir)/lfs/objects/$(echo "$h" | cut -c 1-2)/$(echo "$h" | cut -c 3-4)
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n' "$h" \
	"$(wc -c <"$f")"
[ -e "$o/$h" ] || { mkdir -p "$o" && mv "$f" "$o/$h"; }
rm -f "$f"
END
cat >"$W/bin/smudge" <<'END'
#!/bin/sh
h=$(sed -n 's/^oid sha256://p')
[ -n "$h" ] || exit 0
o=$(git rev-parse --git-dir)/lfs/objects/$(echo "$h" | cut -c 1-2)/$(echo "$h" | cut -c 3-4)
cat "$o/$h"
END
chmod 755 "$W/bin"/*
repo "$W/lfs"
(cd "$W/lfs" && git config filter.lfs.clean "$W/bin/clean" &&
	git config filter.lfs.smudge "$W/bin/smudge" && git config filter.lfs.required true &&
	echo '*.bin filter=lfs diff=lfs merge=lfs -text' >.gitattributes &&
	"$TOOL" bytes 300000 >one.bin && echo small >two.bin && : >empty.bin &&
	"$TOOL" bytes 3000 >three.bin && git add . && git commit -q -m lfs) || exit 99
seeds B010 'files of Git LFS' "$W/lfs"
is "$(tells 'sha256sum one.bin two.bin; git status --porcelain')" \
	"$(cd "$W/lfs" && sha256sum one.bin two.bin)" \
	'B010 files of Git LFS: bytes, and nothing to commit'
there 'a new one becomes a pointer' 'echo new >new.bin && git add . && git commit -q -m new &&
	git cat-file -p HEAD:new.bin | grep -q "^oid sha256"'

# B011: neither program is in a box of any provider.
cat >"$W/bin/up" <<'END'
#!/bin/sh
exec tr a-z A-Z
END
chmod 755 "$W/bin/up"
repo "$W/filter"
(cd "$W/filter" && git config filter.up.clean "$W/bin/up" &&
	git config filter.up.smudge "tr A-Z a-z" && git config filter.up.required true &&
	echo '*.up filter=up' >.gitattributes && echo words >b.up && echo more >c.up &&
	git add . && git commit -q -m up && echo dirty >c.up) || exit 99
seeds B011 'a required filter that the box has not' "$W/filter"
there 'every other file is there' 'test -f a.txt && test -f b.txt && test -x src/run'

# B012
repo "$W/fat"
(cd "$W/fat" && mkdir -p .git/lfs/objects/aa/bb && truncate -s 2G .git/lfs/objects/aa/bb/x) ||
	exit 99
# Summing up what is no data would take long.
mv "$W/fat/.git/lfs" "$W/lfs-of-fat" && ln -s ../../lfs-of-fat "$W/fat/.git/lfs"
seeds B012 'objects of Git LFS that no file needs' "$W/fat"
[ "$(tells 'du -sk . | cut -f1')" -lt 4096 ] && pass 'B012 objects of Git LFS: stay here' ||
	fail 'B012 objects of Git LFS: stay here'

# B013
git clone -q --no-hardlinks "$W/origin" "$W/detached"
host "$W/detached" 'git checkout -q --detach HEAD~1'
seeds B013 'a detached HEAD' "$W/detached"
host "$W/detached" 'echo lonely >lonely && git add . && git commit -q -m lonely &&
	git reflog expire --expire=now --all'
seeds B013 'a detached HEAD that no ref reaches' "$W/detached"

# B014
git clone -q --no-hardlinks "$W/origin" "$W/ahead"
host "$W/ahead" 'git remote set-head origin main && git checkout -q -b feat &&
	for i in 1 2 3; do echo $i >n$i && git add . && git commit -q -m n$i; done
	git update-ref refs/heads/main HEAD~5 && echo dirty >>n1'
seeds B014 'a branch that is ahead of origin/HEAD' "$W/ahead"
head=$(git -C "$W/ahead" rev-parse HEAD)
like "$said" "$(printf %.12s "$head")" 'B014 a branch that is ahead: create says its base'
like "$(ab status "$(b "$box")" --json)" "\"base_commit\":[[:space:]]*\"$head\"" \
	'B014 a branch that is ahead: so does status'
is "$(tells 'git config user.name; git config user.email')" 'Ada Example
ada@example.org' 'B014 a branch that is ahead: commits are those of the user'

# B019, B020
repo "$W/names"
name=$(b s$((suite_n + 1)))
host "$W/names" 'git branch "$1" && git branch feat && git checkout -q feat && echo u >u &&
	git add . && git commit -q -m unique && git checkout -q main' sh "agentbox/$name"
seeds B019 'a branch of the name of the box' "$W/names"
repo "$W/names-2"
host "$W/names-2" 'git branch agentbox'
seeds B019 'a branch that is called agentbox' "$W/names-2"
one_line_error 2 "'a b'.*name" 'B019 a name that no ref can have: is refused' \
	ab_create -w "$W/names" -n 'a b'

suite_id='B020 a create that fails' suite_dir=$W/names
suite_detail >"$T/detail"
suite_exact >"$T/exact"
code 1 "$suite_id: fails" ab_create -w "$W/names" -n "$(b feat)" --setup false
untouched "$suite_id: nothing changed here"
code 3 'B022 a create that fails: leaves no record' ab status "$(b feat)"
run ab_create -w "$W/names" -n "$(b feat)"
boxes="$boxes feat"
is "$status:$(in_box feat sh -c 'ls; git status --porcelain' </dev/null | tr '\n' ' ')" \
	'0:a.txt b.txt dangling link src ' \
	'B022 a create that fails: the next one begins from nothing'
ab destroy "$(b feat)" -y >/dev/null 2>&1 </dev/null

# What else a repository can be.
state=0
states() # TEXT SCRIPT: a repository of its own, after SCRIPT
{
	state=$((state + 1))
	repo "$W/state-$state"
	host "$W/state-$state" "$2"
	seeds state "$1" "$W/state-$state"
}
states 'staged, changed, untracked' 'echo s >staged && git add staged && echo c >>a.txt &&
	echo 1 >>b.txt && git add b.txt && echo 2 >>b.txt && git mv src/run src/moved && rm link &&
	mkdir new && echo n >"new/un tracked" && chmod 755 a.txt'
states 'intent to add' 'echo n >n && git add -N n'
states 'assumed unchanged' 'git update-index --assume-unchanged a.txt && echo mine >a.txt'
states 'skip-worktree' 'git update-index --skip-worktree a.txt && echo mine >a.txt'
two_sides='git checkout -q -b other && echo b >a.txt && git commit -q -am b &&
	git checkout -q main && echo c >a.txt && git commit -q -am c'
states 'a merge under way' "$two_sides; ! git merge -q other"
there 'can be ended' 'echo m >a.txt && git add a.txt && git commit -q --no-edit &&
	test "$(git log -1 --format=%P | wc -w)" = 2'
states 'a rebase under way' "$two_sides; git checkout -q -b topic && echo t >t &&
	git add t && git commit -q -m t && ! git rebase -q other"
there 'can be ended' 'echo m >a.txt && git add a.txt && GIT_EDITOR=true git rebase --continue &&
	test -f t && test "$(git symbolic-ref HEAD)" = refs/heads/topic'
states 'a cherry-pick under way' "$two_sides; ! git cherry-pick other"
states 'a revert under way' 'git revert -n HEAD'
states 'a bisect under way' 'for i in 1 2 3 4 5; do echo $i >n; git add n; git commit -q -m $i
	done; git bisect start -q HEAD HEAD~4'
states 'a stash' 'echo s >>a.txt && git stash -q && echo d >>b.txt'
states 'a sparse checkout' 'mkdir -p d/e f && echo d >d/e/f && echo f >f/f && git add . &&
	git commit -q -m dirs && git sparse-checkout set f && echo x >>f/f'
there 'can be widened' 'test ! -e d && git sparse-checkout add d && test -f d/e/f'
states 'a sparse checkout by patterns' 'mkdir d && echo d >d/d && git add . &&
	git commit -q -m d && git sparse-checkout set --no-cone "/*" "!d"'
states 'replaced objects' 'git commit -q --allow-empty -m b && git replace HEAD HEAD~1 &&
	git pack-refs --all'
states 'line ends that git makes' 'git config core.autocrlf true && printf "a\r\nb\r\n" >crlf &&
	git add . && git commit -q -m crlf && printf "c\r\n" >>crlf'
states 'attributes of many kinds' 'printf "%s\n" "*.u working-tree-encoding=UTF-16LE" \
	"*.id ident" "*.e eol=crlf" >.gitattributes && printf "a\0\n\0" >x.u &&
	echo "\$Id\$" >v.id &&
	echo e >e.e && git add . && git commit -q -m a && rm v.id e.e && git checkout v.id e.e'
states 'no file modes' 'git config core.fileMode false && chmod 755 a.txt && chmod 644 src/run'
states 'nested repositories' 'git init -q -b main nested && cd nested && echo n >n && git add . &&
	git commit -q -m n && echo dirty >>n && git init -q -b x unborn && echo u >unborn/u &&
	cd .. &&
	mkdir -p deep/er && git clone -q nested deep/er/clone'
states 'refs in one file, objects in packs' 'git branch x && git tag -a -m t t &&
	git gc -q --prune=now && git pack-refs --all'
states 'hooks, and a program of the configuration' '
	printf "#!/bin/sh\ntouch \"%s/ran.ignored\"\n" "$PWD" \
	>.git/hooks/post-index-change && chmod 755 .git/hooks/post-index-change &&
	git config core.fsmonitor "touch $PWD/ran.ignored; false" &&
	git config core.pager "touch $PWD/ran.ignored" && echo "*.ignored" >.git/info/exclude'
there 'none of that came along' 'test ! -e .git/hooks/post-index-change &&
	test -z "$(git config core.fsmonitor)"'

git clone -q --shared "$W/origin" "$W/alternates"
beside=$W/origin
seeds state 'objects of another repository' "$W/alternates"
beside=
host "$W/origin" 'git config uploadpack.allowFilter true'
git clone -q --filter=blob:none "file://$W/origin" "$W/partial"
mv "$W/origin" "$W/origin-away"
echo x >>"$W/partial/a.txt"
seeds state 'a partial clone whose origin is away' "$W/partial"
there 'work goes on' 'git commit -q -am more'
mv "$W/origin-away" "$W/origin"
mkdir "$W/projects"
git clone -q "$W/origin" "$W/projects/one"
git clone -q "$W/origin" "$W/projects/two"
echo x >>"$W/projects/two/a.txt"
echo readme >"$W/projects/README"
seeds state 'a directory of repositories' "$W/projects"

git init -q --bare "$W/bare-2.git"
refuses state 'a bare repository' "$W/bare-2.git" 'bare repository'
git init -q --object-format=sha256 "$W/sha256" 2>/dev/null &&
	refuses state 'objects of SHA-256' "$W/sha256" 'object format is sha256'
repo "$W/reftable"
mkdir "$W/reftable/.git/reftable"
refuses state 'refs as reftable' "$W/reftable" 'reftable'
mkdir -p "$W/broken/.git"
refuses state 'a .git that is no repository' "$W/broken" 'not a git repository'
