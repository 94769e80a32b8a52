# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2154,SC2034
# The current tree of the workspace, in $tree; by indexes of this process's own, so that two of
# these at once do not meet, which become the next one's starting point.  What is not in it though
# it is no ignored file is named in $notes: "large PATH", "special PATH", "many PATH" of a
# directory with too many new files (of the root only what has been sent is looked at), or
# "left PREFIX" with paths and an empty one, each with a NUL behind it.
command -v git >/dev/null 2>&1 || exit 91
[ -d "$shadow" ] || exit 93
tmp=index.$$ partial='' flood=''
# Of whom no limit was said: that of download.
max=${max-17179869184}
flooded=$shadow/$tmp.flood
notes=$shadow/$tmp.notes large=$shadow/$tmp.large special=$shadow/$tmp.special
clear_up() {
	for n in "$shadow" "$shadow"/nested/*; do
		rm -f "$n/$tmp" "$n/$tmp".*
		# Of a git that was killed, or had no room; where there is none, no program looks.
		for f in "$n"/objects/tmp_* "$n"/objects/*/tmp_*; do
			[ ! -e "$f" ] || find "$f" -mmin +10 -exec rm -f {} + 2>/dev/null
		done
	done
	rm -f "$shadow/all.$$"*
	[ -z "${stage-}" ] || rm -rf "$stage"
}
began_with=$2
trap 'at_end $?' EXIT
# What those that were killed have left.
for n in "$shadow"/index.[0-9]* "$shadow"/all.[0-9]* "$shadow"/nested/*/index.[0-9]*; do
	pid=${n##*/index.} && pid=${pid##*/all.}
	[ ! -e "$n" ] || kill -0 "${pid%%.*}" 2>/dev/null || rm -f "$n"
done
trap 'exit 90' HUP INT TERM

# Directories with a tenth of what may come, or more, beside those of them that are such directories
# themselves, one a line.  stdin: paths of the workspace, "./" first.
heavy() {
	awk -F/ -v least="$((most / 10 + 1))" '
		$1 == "." {
			dir = "."
			n[dir]++
			for (i = 2; i < NF && i < 40; i++) {
				up[dir "/" $i] = dir
				dir = dir "/" $i
				n[dir]++
			}
		}
		END {
			for (d in n)
				if (n[d] >= least && d in up)
					of[up[d]] += n[d]
			for (d in n)
				if (n[d] - of[d] >= least)
					print d
		}'
}

# Does a record of its own keep it?
is_nested() {
	for r in "$shadow"/nested/*; do
		[ -f "$r/path" ] || continue
		r=$(cat "$r/path" && echo .)
		case $1/ in "${r%.}"/*) return 0 ;; esac
	done
	return 1
}

# Of many files, the first ones tell.
mostly_ignored() {
	find "$1" -name .git -prune -o ! -type d -print | head -n 1000 >"$flooded.some"
	n_ignored=$(rgit check-ignore --no-index --stdin <"$flooded.some" 2>/dev/null | wc -l)
	[ $((2 * n_ignored)) -ge "$(wc -l <"$flooded.some")" ]
}

# Git would take as long for millions of files as it takes to write them, and each would be a line
# of the list.  What is ignored or has been sent is none of them.
find_flood() {
	[ -n "${most-}" ] || return 0
	[ "$(find . -name .git -prune -o -print | head -n "$((most + 1))" | wc -l)" -gt "$most" ] ||
		return 0
	find . -name .git -prune -o -print | heavy >"$flooded.all" || : >"$flooded.all"
	n=0
	while IFS= read -r d; do
		[ "$d" != . ] && [ -d "$d" ] || continue
		[ -f "$rec/plain" ] || ! mostly_ignored "$d" || continue
		sent=$(rgit ls-files -- ":(literal)${d#./}" | wc -l)
		all=$(find "$d" -name .git -prune -o -print | wc -l)
		[ $((2 * sent)) -lt "$all" ] || continue
		d=${d#./}
		n=$((n + 1))
		printf 'many %s\000' "$d" >>"$flooded.notes"
		if [ -f "$rec/plain" ] || is_nested "$d"; then
			printf %s "$d" >"$large.many.$n"
		else
			printf '%s\n' "$d" | sed -e 's/[][\\*?]/\\&/g' -e 's,.*,/&/,' >>"$flooded"
		fi
	done <"$flooded.all"
	[ ! -f "$flooded" ] || excludes=$flooded
	opt=--exclude-standard
	[ ! -f "$rec/plain" ] || opt=
	[ "$(scoped ls-files -o $opt | head -n "$((most + 1))" | wc -l)" -gt "$most" ] || return 0
	flood=1
	printf 'many .\000' >>"$flooded.notes"
}

# Git would read a file to its end, however long it is, and says nothing of what is no file.
# Each path in a file of its own: a name can have any byte.
find_odd() {
	[ -n "${max-}" ] || return 0
	set --
	for mount in $mounts; do
		mounted "$mount" && name=$(pattern "$sub.") || continue
		set -- "$@" -path "./${name%.}" -prune -o
	done
	find . -name .git -prune -o "$@" \
		\( -type f -size +"${max}c" -o ! -type f ! -type d ! -type l \) -exec sh -c '
		n=$(cat "$2.n" 2>/dev/null || echo 0) large=$1 special=$2
		shift 2
		for f do
			n=$((n + 1))
			[ $n -le 1000 ] || break
			to=$special
			[ ! -f "$f" ] || to=$large
			printf %s "${f#./}" >"$to.$n"
		done
		echo $n >"$special.n"' sh "$large" "$special" {} + 2>/dev/null
	[ "$(cat "$special.n" 2>/dev/null || echo 0)" -le 1000 ] ||
		fail 'more than 1000 files are too large or no files at all'
	rm -f "$special.n"
}

# Those of them that belong to the current record and are not ignored.
note_odd() (
	cd "$at" || exit 1
	for n in "$large".* "$special".*; do
		[ -f "$n" ] || continue
		f=$(cat "$n" && echo .)
		f=${f%.}
		case $n in "$large".many.*) continue ;; esac
		case $f in
		"${path:+$path/}"?*) f=${f#"${path:+$path/}"} ;;
		*) continue ;;
		esac
		case $n in
		"$large".*)
			found=$(rgit ls-files -o -m $std -z -- ":(literal)$f" | tr -d '\000')
			[ "$found" = "$f" ] || continue
			printf 'large %s\000' "${path:+$path/}$f"
			;;
		*)
			[ -n "$std" ] && rgit check-ignore -q -- "$f" 2>/dev/null && continue
			printf 'special %s\000' "${path:+$path/}$f"
			;;
		esac
	done >>"$notes"
)

# Repositories in the index of the current record, one a line, in git's quotes.
repositories() {
	rgit ls-files -s | sed -n 's/^160000 [0-9a-f]* 0	//p'
}

# place MODE: an entry below each repository of $rec/$tmp.tried, or none (0).
place() {
	sed -e 1d -e 's/"$/\/.agentbox"/;t' -e 's/$/\/.agentbox/' "$rec/$tmp.tried" |
		sed "s/^/$1 $empty	/" | rgit update-index --index-info || exit 90
}

# Those that nobody sent are directories like others: git walks into one when the index has
# something below it.  One without a commit is what it could not add.
open_repositories() {
	empty=
	while :; do
		{
			repositories | grep -vxF -f "$rec/$tmp.links"
			[ -n "$whole" ] || scoped ls-files -o $std |
				sed -n 's/\/\("\{0,1\}\)$/\1/p'
		} | grep -vxF -f "$rec/$tmp.tried" >"$rec/$tmp.new"
		[ -s "$rec/$tmp.new" ] || break
		cat "$rec/$tmp.new" >>"$rec/$tmp.tried"
		[ -n "$empty" ] || empty=$(rgit hash-object -w --stdin </dev/null) || exit 90
		sed "s/^/0 $empty	/" "$rec/$tmp.new" | rgit update-index --index-info ||
			exit 90
		place 100644
		add_whole
		# What it found no file in is not there any more, and there may be more in it.
		[ -n "$whole" ] || place 100644
	done
	[ -z "$empty" ] || place 0
}

add_whole() {
	whole=1
	said=$(add_all 2>&1 >/dev/null) || whole=
	[ -n "$whole" ] || case $said in
	*'No space left on device'* | *'Disk quota exceeded'*)
		printf '%s\n' "$said" >&2
		fail "cannot write to $rec in the box"
		;;
	esac
}

take() {
	GIT_INDEX_FILE=$rec/$tmp std=--exclude-standard
	export GIT_INDEX_FILE
	[ ! -f "$rec/plain" ] || std=
	[ ! -f "$rec/index" ] || cp -p "$rec/index" "$rec/$tmp" ||
		fail "cannot write to $rec in the box"
	# No path is like this one; some versions of grep take no empty list.
	{ echo // && repositories; } >"$rec/$tmp.links" && echo // >"$rec/$tmp.tried" || exit 90
	add_whole
	open_repositories
	tree=$(rgit write-tree) || {
		printf '%s\n' "$said" >&2
		exit 90
	}
	note_odd
	if [ -z "$whole" ]; then
		partial=$(printf '%s\n' "${said:-add failed}" | head -n 1)
		{
			printf 'left %s\000' "$path" && scoped ls-files -z -o -m $std &&
				printf '\000'
		} >>"$notes" || exit 90
	fi
	unset GIT_INDEX_FILE
}

find_flood
find_odd
: >"$notes" || fail "cannot write to $shadow in the box"
[ ! -f "$flooded.notes" ] || cat "$flooded.notes" >>"$notes"
take
if [ -d "$shadow/nested" ]; then
	cp -p "$rec/$tmp" "$shadow/all.$$" || fail "cannot write to $shadow in the box"
	# A nested repository comes behind the one that holds it.
	n=0
	while n=$((n + 1)) && [ -d "$shadow/nested/$n" ]; do
		enter "$shadow/nested/$n"
		is_real "$path" || continue
		take
		compose "$shadow/all.$$" "$tree" || exit 90
	done
	enter "$shadow"
	tree=$(GIT_INDEX_FILE=$shadow/all.$$ rgit write-tree) || exit 90
fi
if [ -z "$partial" ]; then
	for n in "$shadow" "$shadow"/nested/*; do
		[ ! -f "$n/$tmp" ] || mv -f "$n/$tmp" "$n/index"
	done
fi
