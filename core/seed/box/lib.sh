# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2154,SC2089,SC2090
# Common to the scripts that run inside a box; $1 is the workspace.
LC_ALL=C GIT_OPTIONAL_LOCKS=0 GIT_TERMINAL_PROMPT=0 GIT_PAGER=cat
# zlib takes 268 KiB for each object, which glibc would give back each time.
MALLOC_TRIM_THRESHOLD_=67108864
export LC_ALL GIT_OPTIONAL_LOCKS GIT_TERMINAL_PROMPT GIT_PAGER MALLOC_TRIM_THRESHOLD_
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_OBJECT_DIRECTORY GIT_COMMON_DIR
unset GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_NAMESPACE GIT_EXTERNAL_DIFF
# Hooks and monitors in the box are for whoever works there.  This way all versions of git have.
GIT_CONFIG_PARAMETERS="'core.hooksPath=/dev/null' 'core.fsmonitor='"
export GIT_CONFIG_PARAMETERS
umask 077
cd "$1" || exit 90
dir=$PWD
fail() {
	printf '%s\n' "$1" >&2
	exit 90
}
[ -n "${HOME-}" ] || fail 'HOME is not set in the box'

# What is mounted below the workspace is not of the project: its paths there, as words: /proc writes
# blanks as \040, and so are those written that stand for more.  Few boxes have mounts.
mounts=
[ -z "${AGENTBOX_MOUNTS-}" ] || mounts=$(while read -r _ _ _ _ mount _; do
	case $mount in "$dir"/?*) printf '%s\n' "${mount#"$dir"/}" ;; esac
done 2>/dev/null </proc/self/mountinfo |
	sed -e 's/\*/\\052/g' -e 's/?/\\077/g' -e 's/\[/\\133/g')

# mounted MOUNT: $sub is what it is called in the work tree of the current record; false elsewhere.
mounted() {
	sub=$(printf '%b.' "$(printf %s "$1" | sed 's/\\/\\0/g')")
	sub=${sub%.}
	case $sub in
	"${path:+$path/}"?*) sub=${sub#"${path:+$path/}"} ;;
	*) return 1 ;;
	esac
}

# NUL-terminated names as lines.
lines() {
	tr '\n\000' '\001\n'
}

# pattern NAME: for what takes * and ? and the like for more than they are.
pattern() {
	printf %s "$1" | sed 's/[][*?\\ ]/\\&/g'
}

# The record of the workspace, and $shadow/nested/N for each repository in it.
shadow=$HOME/.agentbox/seed.git
rec=$shadow at=$dir path='' excludes=''

# enter RECORD: $rec is it, $at its work tree, $path where that is in the workspace.
enter() {
	rec=$1 path=
	if [ "$rec" != "$shadow" ]; then
		path=$(cat "$rec/path" && echo .) || exit 90
		path=${path%.}
	fi
	at=$dir${path:+/$path}
}

# at_end CODE: the end of a script that works with what the box began with, the tree $began_with:
# when that is not in the record any more, no second try goes otherwise.
at_end() {
	code=$1
	if [ "$code" = 90 ]; then
		enter "$shadow"
		(unset GIT_INDEX_FILE && rgit ls-tree -r -t "$began_with") >/dev/null 2>&1 ||
			code=94
	fi
	clear_up
	exit "$code"
}

# usable: there is a repository at the current directory, which git takes: $git_dir.  Where there
# is one that it does not take, $broken says why; no directory above it counts.
usable() {
	broken=
	[ -e .git ] || [ -L .git ] || return 1
	GIT_CEILING_DIRECTORIES=${PWD%/*}
	export GIT_CEILING_DIRECTORIES
	git_dir=$(git rev-parse --absolute-git-dir 2>/dev/null) || git_dir=
	if [ -z "$git_dir" ]; then
		broken=$(git rev-parse --git-dir 2>&1 | sed 's/^fatal: //' | tr '\n\t' '  ')
		broken=${broken:-no answer of git}
	elif [ "$(git config --get extensions.objectformat)" = sha256 ]; then
		broken='its ids are of sha256, which no repository of agentbox has'
	elif git rev-parse --verify -q HEAD >/dev/null &&
		! git cat-file -e 'HEAD^{commit}' 2>/dev/null; then
		broken='the commit of HEAD is missing'
	fi
	[ -z "$broken" ]
}

# A repository that is named by --git-dir is not asked who owns it (safe.directory).  $excludes: a
# file with more that is ignored.
rgit() {
	GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 \
	git ${excludes:+-c "core.excludesFile=$excludes"} --git-dir="$rec" --work-tree="$at" "$@"
}

# is_real PATH: a directory of the workspace, which no link leads to.
is_real() {
	[ "$(cd "$dir/$1" 2>/dev/null && pwd -P && echo .)" = "$(cd "$dir" && pwd -P)/$1
." ]
}

# scoped COMMAND...: git's COMMAND for the work tree of the current record, but for what lies in
# nested repositories, what is too large to come back ($large.N), and what is mounted there.
scoped() (
	cd "$at" || exit 1
	all=1
	for n in "$shadow"/nested/* ${large:+"$large".*}; do
		case $n in
		"$shadow"/nested/*) name=$n/path ;;
		*) name=$n ;;
		esac
		[ -f "$name" ] || continue
		sub=$(cat "$name" && echo .) || exit 1
		sub=${sub%.}
		case $sub in
		"${path:+$path/}"?*) ;;
		*) continue ;;
		esac
		[ "$name" = "$n" ] || is_real "$sub" || continue
		sub=${sub#"${path:+$path/}"}
		# What lies deeper belongs to the one that holds it.
		for other do
			case $other in ":(exclude,literal)"*) ;; *) continue ;; esac
			case $sub in "${other#:(exclude,literal)}"/*) continue 2 ;; esac
		done
		[ -z "$all" ] || set -- "$@" -- .
		all=
		set -- "$@" ":(exclude,literal)$sub"
	done
	for mount in $mounts; do
		mounted "$mount" || continue
		[ -z "$all" ] || set -- "$@" -- .
		all=
		set -- "$@" ":(exclude,literal)$sub"
	done
	rgit "$@" </dev/null
)

# add_all [OPTION...]: the work tree of the current record into its index.  OPTIONs are git's.
add_all() {
	if [ -n "${flood-}" ] && [ "$rec" = "$shadow" ]; then
		scoped "$@" add -u --ignore-errors
		return
	fi
	set -- "$@" add -A --ignore-errors
	[ ! -f "$rec/plain" ] || set -- "$@" -f
	scoped "$@"
}

# compose INDEX TREE: TREE into INDEX, of the workspace, where the current record belongs.
compose() (
	rec=$shadow at=$dir
	GIT_INDEX_FILE=$1
	export GIT_INDEX_FILE
	cd "$dir" &&
		rgit update-index --force-remove -- "$path" &&
		rgit read-tree --prefix="$path/" "$2"
)
