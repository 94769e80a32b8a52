# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2154
# Behind DIR: the TREE that the workspace began with, the largest file, and patterns as in
# .gitignore of what comes though it is ignored.
seed=$2
shift 3
if [ $# != 0 ]; then
	GIT_INDEX_FILE=$shadow/$tmp.more
	export GIT_INDEX_FILE
	rgit read-tree "$tree" || exit 90
	for glob do
		# No repository is apart here, whoever keeps its record.
		(shadow=$shadow/none && scoped ls-files -z -o -i --exclude="$glob") |
			rgit update-index --add -z --stdin 2>/dev/null || exit 90
	done
	tree=$(rgit write-tree) || exit 90
fi
printf 'tree %s\n' "$tree"
rgit diff-tree -r -z --no-renames --raw --no-abbrev "$seed" "$tree" || exit 90
cat "$notes" || exit 90
printf 'end\000'
