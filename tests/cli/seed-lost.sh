#!/bin/sh
# SPDX-License-Identifier: MIT
# Whatever became of a box's repository, or of the record of what it began with: diff and download
# bring its files, fetch and sync do what can be done, and one line says the rest and what to do.
# Stashes stay where they are, and that is said.  What died is cleared away by the next create.
. "${0%/*}/functions.sh"

repo=$T/repo
make_repo "$repo" >/dev/null
n=0

# box_with WHAT SCRIPT: another box, in which SCRIPT has run; then a newer commit and a file here.
box_with()
{
	what=$1 n=$((n + 1)) box=box$n
	ab create --provider mock -w "$repo" -n "$box" -y >"$T/log" 2>&1 </dev/null &&
		ab exec "$box" -n -- sh -ec "$2; echo box >made$n" >"$T/log" 2>&1 || {
		fail "$what: a box"
		diag "$(cat "$T/log")"
	}
	(cd "$repo" && echo "$n" >>src/main.c && git add -A && git commit -qm "$n" &&
		echo "$n" >here) || exit 99
}

# files_come: what the box made comes here, and what is here goes there.
files_come()
{
	run ab diff "$box" --stat
	like "$out" " made$n " "$what: diff"
	run ab sync "$box"
	is "$(ab exec "$box" -n -- sh -c 'tail -n 1 src/main.c; cat here')" "$n
$n" "$what: sync brings files"
	ok "$what: download" ab download "$box" -y
	is "$(cat "$repo/made$n")" box "$what: brings files"
}

# no_commits ERE: fetch and sync say in a line that matches why none come or go.
no_commits()
{
	files_come
	one_line_error 1 "$1.*agentbox download" "$what: fetch" ab fetch "$box"
	run ab sync "$box"
	is "$status" 1 "$what: sync"
	is "$(printf '%s\n' "$err" | wc -l)" 1 "$what: in one line"
	like "$err" "^agentbox: sync: box '$box': no commits went there.*\\(mend it there" \
		"$what: says why"
	ab destroy "$box" -y >/dev/null 2>&1
}

box_with 'no repository' 'rm -rf .git'
no_commits 'no git repository in the box'
box_with 'an empty .git' 'rm -rf .git; mkdir .git'
no_commits 'not a git repository'
box_with 'a FIFO .git' 'rm -rf .git; mkfifo .git'
no_commits 'not a git repository'
box_with 'a .git that leads nowhere' 'rm -rf .git; echo "gitdir: /nowhere" >.git'
no_commits 'not a git repository: /nowhere'
box_with 'a broken configuration' 'echo "[[[" >.git/config'
no_commits 'bad config'
box_with 'an extension that git does not know' \
	'git config core.repositoryformatversion 1; git config extensions.foo bar'
no_commits 'unknown repository extension found: *foo'
box_with 'no objects' 'rm -rf .git/objects/*'
no_commits 'the commit of HEAD is missing'
box_with 'ids of sha256' 'rm -rf .git; git init -q --object-format=sha256; git add -A
	git -c user.name=x -c user.email=x commit -qm other'
no_commits 'sha256'

# branch_stays ERE: commits come, and the branch stays for a reason that matches.
branch_stays()
{
	files_come
	run ab sync "$box"
	is "$status" 1 "$what: sync again"
	like "$out" "^the branch stays: .*$1" "$what: the branch stays"
	like "$err" 'its branch stays where it is \(.*git merge host/main' "$what: what to do"
}

box_with 'another history' 'rm -rf .git; git init -q; git add -A
	git -c user.name=x -c user.email=x commit -qm other'
branch_stays 'no history in common'
run ab fetch "$box"
like "$out" "^agentbox/$box is at .* \\(new\\), 1 commit" "$what: fetch"
ab destroy "$box" -y >/dev/null 2>&1
box_with 'a lock of HEAD' 'touch .git/HEAD.lock'
branch_stays 'a git is at work in the box'
ab destroy "$box" -y >/dev/null 2>&1

# What runs in the box when somebody works there does not run, and does not stop us.
box_with 'hooks that fail' 'mkdir -p .git/hooks
	for h in reference-transaction post-index-change post-checkout; do
		printf "#!/bin/sh\ntouch \"%s/../ran\"\nexit 1\n" "$PWD" >.git/hooks/$h
	done
	chmod 755 .git/hooks/*
	git config core.fsmonitor "$PWD/.git/hooks/post-checkout"'
files_come
is "$status" 0 "$what: sync goes through"
is "$(ab exec "$box" -n -- git rev-parse HEAD)" "$(git -C "$repo" rev-parse HEAD)" \
	"$what: the branch follows"
ab destroy "$box" -y >/dev/null 2>&1
box_with 'commits, and nobody who made them' 'git -c user.name=x -c user.email=x commit -q \
	--allow-empty -m own; git config --remove-section user || :
	git config user.useConfigOnly true'
files_come
is "$status" 0 "$what: sync merges"
ab destroy "$box" -y >/dev/null 2>&1

# The record.
# The scripts run in the box.
# shellcheck disable=SC2016
for damage in 'rm -rf "$HOME/.agentbox/seed.git"' 'rm -rf "$HOME"/.agentbox/seed.git/objects/*'; do
	box_with "after $damage" "$damage"
	for cmd in "diff $box" "sync $box" "download $box --dry-run"; do
		# A list of arguments.
		# shellcheck disable=SC2086
		one_line_error 1 "record of what was put into it is (not there|damaged) \
\\(agentbox fetch.*agentbox cp" "$what: $cmd" ab $cmd
	done
	ok "$what: fetch" ab fetch "$box"
	ab destroy "$box" -y >/dev/null 2>&1
done

# ---- stashes ----

(cd "$repo" && git add -A && git commit -qm all && echo stashed >>a.txt && git stash -q) || exit 99
run ab create --provider mock -w "$repo" -n stashed -y
like "$out" "what git stash keeps in '.' stays here" 'a stash stays here, which is said'
git -C "$repo" pack-refs --all
run ab sync stashed
is "$status" 0 'sync with a stash here'
ok 'a stash there' ab exec stashed -n -- sh -c 'echo x >>a.txt && git stash -q'
run ab fetch stashed
like "$err" '^agentbox: 1 stash stays in the box' 'it stays there, which is said'
run ab fetch stashed --json
like "$out" '"stashes":[[:space:]]*1' 'in JSON too'
git -C "$repo" stash drop -q
run ab create --provider mock -w "$repo" -n none -y
unlike "$out" stash 'without one nothing is said'

# ---- a create of several that died ----

dead=$AGENTBOX_HOME/tmp/0123456789abcdef
mkdir -p "$dead/x" && echo x >"$dead/x/y"
ok 'the next create' ab create --provider mock -w "$repo" -n next -y
is "$(find "$AGENTBOX_HOME/tmp" -mindepth 1)" '' 'clears what a dead one has left'
done_testing
