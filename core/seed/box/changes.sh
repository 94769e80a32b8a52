# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2154
# Behind DIR: the TREE that the workspace began with.
[ -z "$partial" ] || printf 'partial\n'
printf 'tree %s\n' "$tree"
rgit diff-tree -r -z --no-renames --raw --no-abbrev "$2" "$tree" || exit 90
printf 'end\000'
