# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2154
# Common to the scripts that run inside a box; $1 is the workspace.
LC_ALL=C GIT_OPTIONAL_LOCKS=0 GIT_TERMINAL_PROMPT=0 GIT_PAGER=cat
# zlib takes 268 KiB for each object, which glibc would give back each time.
MALLOC_TRIM_THRESHOLD_=67108864
export LC_ALL GIT_OPTIONAL_LOCKS GIT_TERMINAL_PROMPT GIT_PAGER MALLOC_TRIM_THRESHOLD_
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_OBJECT_DIRECTORY GIT_COMMON_DIR
unset GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_NAMESPACE GIT_EXTERNAL_DIFF
umask 077
cd "$1" || exit 90
dir=$PWD
fail() {
	printf '%s\n' "$1" >&2
	exit 90
}
[ -n "${HOME-}" ] || fail 'HOME is not set in the box'

# What is mounted below the workspace is not of the project: its paths there, one a line, as
# /proc writes them, where the box has mounts at all.
mounts=
[ -z "${AGENTBOX_MOUNTS-}" ] || while read -r _ _ _ _ mount _; do
	case $mount in
	"$dir"/?*) mounts="$mounts${mount#"$dir"/}
" ;;
	esac
done 2>/dev/null </proc/self/mountinfo

# mount_name MOUNT: as it is called, and a dot.
mount_name() {
	printf '%b.' "$(printf %s "$1" | sed 's/\\/\\0/g')"
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
	while IFS= read -r mount && [ -n "$mount" ]; do
		sub=$(mount_name "$mount")
		sub=${sub%.}
		case $sub in
		"${path:+$path/}"?*) ;;
		*) continue ;;
		esac
		[ -z "$all" ] || set -- "$@" -- .
		all=
		set -- "$@" ":(exclude,literal)${sub#"${path:+$path/}"}"
	done <<-END
		$mounts
	END
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
