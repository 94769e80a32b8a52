# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2154
# Behind DIR: the TREE that the workspace began with, the largest file, base (the commits that it
# began with) or seed, diff, stat or list, and always or never.
from=$2
if [ "$4" = base ] && [ -f "$shadow/base" ]; then
	from=$(cat "$shadow/base") && from=$(rgit rev-parse --verify -q "$from^{tree}") ||
		fail 'the base in the record of what was sent is damaged'
fi
form=
case $5 in
stat) form=--stat ;;
list) form='--raw --numstat -z --no-abbrev' ;;
esac
[ ! -s "$notes" ] || printf 'left out\n' >&2
# shellcheck disable=SC2086
rgit diff --no-ext-diff --no-textconv -M -l1000 --color="$6" $form "$from" "$tree" || exit 90
[ "$5" != list ] || printf 'end\000'
