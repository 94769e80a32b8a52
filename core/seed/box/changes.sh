# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2154
# Behind DIR: the TREE that the workspace began with, the largest file, and patterns as in
# .gitignore of what comes though it is ignored.  stdin: what came back before, as records of git
# update-index --index-info.
from=$2
shift 3
more=$shadow/$tmp.more brought=$shadow/$tmp.brought
cat >"$brought" || fail "cannot write to $shadow in the box"
# git "$@", by an index of our own.
mine() {
	GIT_INDEX_FILE=$more rgit "$@"
}
# Lines as NUL-terminated names.
names() {
	tr '\n\001' '\000\n'
}

if [ $# != 0 ]; then
	mine read-tree "$tree" || exit 90
	for glob do
		# No repository is apart here, whoever keeps its record.
		(shadow=$shadow/none && GIT_INDEX_FILE=$more && export GIT_INDEX_FILE &&
			scoped ls-files -z -o -i --exclude="$glob") |
			mine update-index --add -z --stdin 2>/dev/null || exit 90
	done
	tree=$(mine write-tree) || exit 90
fi

# Of what came before and is not in the tree: what is only ignored is not gone.
still_ignored() {
	mine read-tree "$tree" && mine ls-files -z | lines | sort >"$more.tree" &&
		lines <"$brought" | sed 's/^[^	]*	//' | sort | comm -23 - "$more.tree" \
			>"$more.gone" || exit 90
	[ -s "$more.gone" ] || return 0
	[ -f "$rec/plain" ] || names <"$more.gone" |
		rgit check-ignore -z --no-index --stdin 2>/dev/null | lines
	while IFS= read -r name; do
		path=$(printf '%s.' "$name" | tr '\001' '\n')
		path=${path%.}
		case $path in */*) is_real "${path%/*}" || continue ;; esac
		[ ! -L "$path" ] && { [ -d "$path" ] || [ ! -e "$path" ]; } || printf '%s\n' "$name"
	done <"$more.gone"
}

# This machine has what it began with, and then what came.
if [ -s "$brought" ]; then
	still_ignored | sed "s/^/0 $(printf '%040d' 0)	/" | names >"$more.ignored" || exit 90
	mine read-tree "$from" && mine update-index -z --index-info <"$brought" &&
		mine update-index -z --index-info <"$more.ignored" &&
		from=$(mine write-tree --missing-ok) || exit 90
fi
printf 'tree %s\n' "$tree"
rgit diff-tree -r -z --no-renames --raw --no-abbrev "$from" "$tree" || exit 90
cat "$notes" || exit 90
printf 'end\000'
