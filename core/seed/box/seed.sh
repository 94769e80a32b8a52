# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2154
# After the stream.  Behind DIR, for each repository, the one that holds others first: its PATH
# in the workspace, its KIND (git, partial, plain), BASE commit (or -) and STATE (clean, or
# clean:TREE of the commit, dirty, assumed, raw; commit, commit-raw: still to be checked out).
shift
if ! command -v git >/dev/null 2>&1; then
	[ "$#$2" = 4plain ] || exit 91
	exit 0
fi
# A record came with the stream, where one move makes it ours: each program more is as long as
# the work of git.  A plain workspace has none.
take_record() {
	if [ "$kind" = plain ]; then
		mkdir -p "$rec/objects/info" "$rec/refs/heads" "$rec/info" && : >"$rec/plain"
	elif [ "$rec" = "$shadow" ] && [ ! -e "$HOME/.agentbox" ]; then
		mv "$at/.git/agentbox" "$HOME/.agentbox"
	else
		mkdir -p "${rec%/*}" && mv "$at/.git/agentbox/seed.git" "$rec" &&
			rmdir "$at/.git/agentbox"
	fi &&
		printf 'ref: refs/heads/seed\n' >"$rec/HEAD" &&
		printf '%s\n' '* -text -filter -ident -working-tree-encoding' \
			>"$rec/info/attributes" &&
		printf '%s\n' '[core]' 'repositoryformatversion = 0' 'bare = false' \
			'fsync = none' 'autocrlf = false' 'excludesFile = /dev/null' \
			'attributesFile = /dev/null' 'hooksPath = /dev/null' \
			'fsmonitor = false' 'untrackedCache = false' 'quotePath = true' \
			'protectNTFS = false' 'protectHFS = false' \
			'compression = 0' '[gc]' 'auto = 0' '[advice]' \
			'addEmbeddedRepo = false' >"$rec/config" ||
		fail "cannot make $rec in the box"
}

# The work tree of BASE, and an index of it: nothing of that came with the stream.
check_out() {
	case $state in commit*) ;; *) return 0 ;; esac
	(umask 022 && cd "$at" &&
		AGENTBOX_SEED=1 git read-tree --reset -u "$base" </dev/null >/dev/null)
}

# To git in the box, what is mounted there is ignored.
hide_mounts() {
	[ "$kind" != plain ] || return 0
	cd "$at" && file=$(git rev-parse --git-path info/exclude) && mkdir -p "${file%/*}" ||
		exit 90
	for mount in $mounts; do
		mounted "$mount" && name=$(pattern "$sub.") || continue
		printf '/%s\n' "${name%.}" >>"$file" || exit 90
	done
	cd "$dir" || exit 90
}

# Prove that the repository is whole, and put its files into its record: $tree, and $base_tree,
# which is what they are compared with.
process() {
	connected='' status='' tree=''
	new=
	case $state in
	clean:*) tree=${state#*:} state=clean ;;
	commit) new=1 state=clean ;;
	commit-raw) new=1 state=raw ;;
	esac
	if [ "$kind" != plain ]; then
		cd "$at" || exit 90
		missing=
		[ "$kind" != partial ] || missing=--missing=allow-promisor
		# All at once, the longest first: they only read.  The times were kept, but
		# neither the inodes nor the change times.
		git -c core.checkStat=minimal -c core.fsmonitor=false \
			-c core.excludesFile=/dev/null -c status.showStash=false \
			status --porcelain=v2 -z --branch --untracked-files=all --no-renames \
			--no-ahead-behind --ignore-submodules=none </dev/null &
		status=$!
		if [ "$base" != - ]; then
			git rev-list --objects --quiet $missing "$base" ${tree:+"$tree"} \
				</dev/null >/dev/null &
			connected=$!
		fi
		# When the status is that of the host, which is none, the work tree is the commit's.
		[ "$state$tree" != clean ] ||
			tree=$(git rev-parse --verify -q "$base^{tree}") || exit 90
		cd "$dir" || exit 90
	fi
	take_record
	[ "$base" = - ] || printf '%s\n' "$base" >"$rec/commit" ||
		fail "cannot write to $rec in the box"
	if [ -n "$new" ]; then
		cp -p "$at/.git/index" "$rec/index" || fail "cannot write to $rec in the box"
		# Of an old index git looks at every file.
		[ "$state" != raw ] || touch -t 197001020000 "$rec/index" || exit 90
	fi
	[ "$state" != assumed ] || rgit ls-files -z |
		rgit update-index -z --no-assume-unchanged --stdin || exit 90
	if [ "$state" != clean ]; then
		add_all -c core.checkStat=minimal >/dev/null || exit 90
		tree=$(rgit write-tree) || exit 90
	fi
	base_tree=$tree
	case $state$base in
	clean* | raw* | *-) ;;
	*) base_tree=$(rgit rev-parse --verify -q "$base^{tree}") || exit 90 ;;
	esac
	[ -z "$connected" ] || wait "$connected" || exit 90
	[ -z "$status" ] || wait "$status" || exit 90
}

# each FUNCTION: run it for each record, with its values.
each() {
	what=$1
	shift
	i=0
	while [ $# -ge 4 ]; do
		path=$1 kind=$2 base=$3 state=$4
		at=$dir${path:+/$path}
		rec=$shadow
		[ $i = 0 ] || rec=$shadow/nested/$i
		$what || exit 90
		i=$((i + 1))
		shift 4
	done
}

# The record of the workspace borrows the objects of the others.
name_record() {
	if [ "$rec" = "$shadow" ]; then
		take_record
		return
	fi
	take_record
	printf %s "$path" >"$rec/path" || fail "cannot write to $rec in the box"
	printf '%s\n' "$rec/objects" >>"$shadow/objects/info/alternates" ||
		fail "cannot write to $shadow in the box"
}

process_nested() {
	process
	if [ "$rec" = "$shadow" ]; then
		cp -p "$rec/index" "$shadow/all" 2>/dev/null
		GIT_INDEX_FILE=$shadow/base.index rgit read-tree "$base_tree" || exit 90
		return
	fi
	compose "$shadow/all" "$tree" || exit 90
	compose "$shadow/base.index" "$base_tree" || exit 90
}

each check_out "$@"
[ -z "$mounts" ] || each hide_mounts "$@"
[ ! -e "$shadow" ] || rm -rf "$shadow"
if [ $# = 4 ]; then
	each process "$@"
else
	each name_record "$@"
	take_record() { :; }
	each process_nested "$@"
	enter "$shadow"
	tree=$(GIT_INDEX_FILE=$shadow/all rgit write-tree) || exit 90
	base_tree=$(GIT_INDEX_FILE=$shadow/base.index rgit write-tree) || exit 90
	rm -f "$shadow/all" "$shadow/base.index"
	# As git itself lays submodules out.
	[ ! -f .gitmodules ] || git submodule --quiet absorbgitdirs >/dev/null 2>&1 </dev/null
fi
if [ "$base_tree" != "$tree" ]; then
	printf '%s\n' "$base_tree" >"$shadow/base" || fail "cannot write to $shadow in the box"
fi
[ -z "$tree" ] || printf 'tree %s\n' "$tree"
