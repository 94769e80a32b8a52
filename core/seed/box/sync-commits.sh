# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2154,SC2034
# Behind DIR: the TREE that the workspace began with, dry or do, the host's HEAD (or -), its
# BRANCH's name, and its STATE (raw or dirty). stdin: a tar stream.
command -v git >/dev/null 2>&1 || exit 91
[ -d "$shadow" ] || exit 93
seed=$2 began_with=$2 mode=$3 head=$4 name=$5 state=$6
zero=0000000000000000000000000000000000000000
rm -rf "$HOME"/.agentbox/sync.*
stage=$HOME/.agentbox/sync.$$
clear_up() {
	rm -rf "$stage"
}
trap 'at_end $?' EXIT
trap 'exit 90' HUP INT TERM
mkdir "$stage" && tar -x -f - -C "$stage" || fail 'cannot unpack in the box'
exec </dev/null
how=none why='' x='' ref=''
: >"$stage/unmerged.commits"

# Which checkout is under way (git or rgit, from which tree to which), for the next sync, should we
# be killed: git writes a file piece by piece.
writing=$shadow/writing
begin_writing() {
	printf '%s\n' "$*" >"$writing" || fail "cannot write to $shadow in the box"
}
end_writing() {
	rm -f "$writing"
}

# is_half GIT NEW FILE: it is gone, or the beginning of what it was to become.
is_half() {
	[ -e "./$3" ] || [ -L "./$3" ] || return 0
	[ -f "./$3" ] && [ ! -L "./$3" ] || return 1
	size=$(wc -c <"./$3") && "$1" cat-file --filters "$2:$3" 2>/dev/null |
		head -c "$((size))" | cmp -s - "./$3"
}

# mend GIT OLD NEW: what a checkout that was killed has left in the middle becomes as it was before.
mend() (
	GIT_INDEX_FILE=$stage/mend.index
	export GIT_INDEX_FILE
	"$1" diff-tree -r -z --no-renames --name-only "$2" "$3" | lines | sort >"$stage/mend"
	for of in "$3" "$2"; do
		"$1" read-tree "$of" || exit 0
		"$1" update-index -q --refresh >/dev/null 2>&1
		{
			"$1" diff-files -z --name-only
			[ "$of" = "$3" ] || "$1" diff-tree -r -z --no-renames --name-only \
				--diff-filter=A "$2" "$3"
		} | lines | sort -u | comm -12 "$stage/mend" - >"$stage/mend.both"
		mv "$stage/mend.both" "$stage/mend"
	done
	umask 022
	while IFS= read -r name; do
		file=$(printf '%s.' "$name" | tr '\001' '\n')
		file=${file%.}
		is_half "$1" "$3" "$file" || continue
		rm -f "./$file"
		"$1" checkout-index -f -q -- "$file" 2>/dev/null
	done <"$stage/mend"
)

# What a sync that was killed has left.
mend_all() {
	[ -f "$writing" ] || return 0
	if read -r tool from to <"$writing"; then
		case $tool in
		ref)
			rm -f "$(git rev-parse --git-path HEAD.lock)" \
				"$(git rev-parse --git-path "$from.lock")"
			;;
		git | rgit)
			[ "$mode" = dry ] || mend "$tool" "$from" "$to" 2>/dev/null
			;;
		esac
	fi
	[ "$mode" = dry ] || end_writing
}

# The host's commits are in the repository and in the record.
take_commits() {
	if [ -f "$stage/pack" ]; then
		if [ "$mode" = dry ]; then
			mkdir -p "$stage/objects/pack"
			GIT_ALTERNATE_OBJECT_DIRECTORIES=$(git rev-parse --git-path objects)
			GIT_OBJECT_DIRECTORY=$stage/objects
			export GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES
		fi
		pack=$(git index-pack --stdin --fix-thin <"$stage/pack") || exit 90
		pack=pack-${pack#*	}
		[ "$mode" = "do" ] || return 0
		from=$(git rev-parse --git-path objects/pack) || exit 90
		for end in pack idx; do
			[ ! -e "$shadow/objects/pack/$pack.$end" ] || continue
			ln "$from/$pack.$end" "$shadow/objects/pack/" 2>/dev/null ||
				cp "$from/$pack.$end" "$shadow/objects/pack/" || exit 90
		done
	fi
	git cat-file -e "$head^{commit}" || fail "the host's commit did not come"
	[ "$mode" = "do" ] || return 0
	git update-ref "refs/remotes/host/$name" "$head" 2>/dev/null && return 0
	# What the host's branch was called before is in the way.
	git for-each-ref --format='delete %(refname)' refs/remotes/host |
		git update-ref --stdin && git update-ref "refs/remotes/host/$name" "$head" ||
		exit 90
}

# What becomes of the box's branch: $how, and $why it is left.
look_at_branch() {
	how=left
	x=$(git rev-parse --verify -q 'HEAD^{commit}') || x=
	if [ -n "$x" ] && git merge-base --is-ancestor "$head" "$x"; then
		how=same
		return 0
	fi
	for file in rebase-merge rebase-apply MERGE_HEAD CHERRY_PICK_HEAD REVERT_HEAD; do
		[ ! -e "$git_dir/$file" ] || why='a merge or rebase is under way in the box'
	done
	ref=$(git symbolic-ref -q HEAD) || why='HEAD is detached in the box'
	[ -z "$(git ls-files -u)" ] || why='there are unmerged files in the box'
	for file in index.lock HEAD.lock "$ref.lock"; do
		[ ! -e "$git_dir/$file" ] || why="a git is at work in the box ($file)"
	done
	[ -z "$why" ] || return 0
	if [ -z "$x" ] || git merge-base --is-ancestor "$x" "$head"; then
		how=forward
	elif git merge-base "$x" "$head" >/dev/null; then
		merge
	else
		why='it has no history in common with the box'
	fi
}

# advance FROM TO [-i]: the box's index goes on from one commit to another, and with it what
# nobody has changed in the work tree, unless -i. What is staged stays. A file that already is
# what it becomes counts as the commit's, whatever draft of it is staged: the host sent it before.
advance() {
	# Beside the one that it replaces: a move from elsewhere may be a copy.
	index=$git_dir/agentbox.index
	rm -f "$index" "$index.lock"
	[ ! -f "$git_dir/index" ] || cp -p "$git_dir/index" "$index" || exit 90
	GIT_INDEX_FILE=$stage/to.index git read-tree "$2" &&
		git diff-tree -r -z --no-renames --name-only "$1" "$2" | lines |
		sort >"$stage/moving" || exit 90
	GIT_INDEX_FILE=$stage/to.index git update-index -q --refresh >/dev/null 2>&1
	GIT_INDEX_FILE=$stage/to.index git diff-files -z --name-only | lines |
		sort -u >"$stage/others"
	[ -n "${3-}" ] || begin_writing git "$1" "$2"
	(
		GIT_INDEX_FILE=$index
		export GIT_INDEX_FILE
		umask 022
		comm -23 "$stage/moving" "$stage/others" | tr '\n\001' '\000\n' |
			git update-index --add --remove -z --stdin &&
			git update-index -q --refresh >/dev/null 2>&1
		git read-tree -m ${3:--u} "$1" "$2"
	) 2>"$stage/said" && mv -f "$index" "$git_dir/index" || {
		rm -f "$index"
		end_writing
		return 1
	}
	end_writing
}

# move_branch FROM TO: HEAD goes on from one commit to another.
move_branch() {
	begin_writing ref "$(git symbolic-ref -q HEAD || echo HEAD)"
	git update-ref -m 'agentbox sync' HEAD "$2" "$1" || exit 90
	end_writing
}

# identified COMMAND...: also where nobody has told git who works there.
identified() (
	git var GIT_COMMITTER_IDENT >/dev/null 2>&1 || {
		GIT_AUTHOR_NAME=agentbox GIT_AUTHOR_EMAIL=agentbox@localhost
		GIT_COMMITTER_NAME=agentbox GIT_COMMITTER_EMAIL=agentbox@localhost
		export GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL
	}
	"$@"
)

# As git merge does it, but for a merge that would not be clean: that is not begun.
merge() {
	git merge-tree --write-tree --name-only --no-messages -z "$x" "$head" \
		>"$stage/merge" 2>"$stage/said"
	case $? in
	0) ;;
	1)
		why='its commits and those of the box do not go together'
		tr '\n\000' '\001\n' <"$stage/merge" | sed -e 1d -e '/^$/d' |
			tr '\n\001' '\000\n' >"$stage/unmerged.commits"
		return 0
		;;
	*)
		why='a merge needs git 2.38 in the box'
		return 0
		;;
	esac
	both=$(tr '\000' '\n' <"$stage/merge" | head -n 1)
	if [ "$mode" = dry ]; then
		how=merged
		return 0
	fi
	commit=$(identified git commit-tree "$both" -p "$x" -p "$head" \
		-m "Merge '$name' of the host") || exit 90
	if ! advance "$x" "$commit"; then
		why='what is not committed in the box is in the way'
		return 0
	fi
	move_branch "$x" "$commit"
	how=merged
}

mend_all
if [ "$head" = - ]; then
	:
elif ! usable; then
	[ -f "$rec/plain" ] || why=${broken:-there is none}
else
	rm -f "$(git rev-parse --git-path "refs/remotes/host/$name.lock")"
	take_commits
	look_at_branch
	unset GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES
fi
