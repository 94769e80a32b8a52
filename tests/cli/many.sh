#!/bin/sh
# SPDX-License-Identifier: MIT
# 50 creates at once make 50 working boxes; 50 destroys at once leave nothing.
. "${0%/*}/functions.sh"

count=50
providers=mock
if ab doctor --provider local >/dev/null 2>&1; then
	providers="$providers local"
else
	skip 'the same with local boxes' -- 'none on this machine'
fi
mkdir "$T/repo"
make_repo "$T/repo" >/dev/null
before=$(tree_sum "$T/repo")

for p in $providers; do
	mkdir "$T/$p"
	i=0
	while [ "$i" -lt "$count" ]; do
		ab create --provider "$p" -w "$T/repo" -y --json >"$T/$p/$i.json" \
			2>"$T/$p/$i.err" </dev/null &
		i=$((i + 1))
	done
	wait
	# What a box of this machine lacks is said of each, and no complaint.
	is "$(grep -hv ' has no sudo and cannot install packages ' "$T/$p"/*.err | head -n 3)" '' \
		"$p: no create complains"
	for key in name index branch sandbox_id; do
		n=$(grep -h "\"$key\":" "$T/$p"/*.json | sort -u | wc -l)
		is "$n" "$count" "$p: $count different values of $key"
	done
	names=$(sed -n 's/^\t"name":\t"\(.*\)",$/\1/p' "$T/$p"/*.json)
	for name in $names; do
		ab exec "$name" -- git log -1 --format=%s >"$T/$p/$name.log" 2>&1 </dev/null &
	done
	wait
	is "$(cat "$T/$p"/*.log | sort | uniq -c | awk '{print $1, $2}')" "$count Second" \
		"$p: each of them works"
	for name in $names; do
		ab destroy "$name" -y >/dev/null 2>"$T/$p/$name.gone" </dev/null &
	done
	wait
	is "$(cat "$T/$p"/*.gone | head -n 3)" '' "$p: no destroy complains"
	is "$(ab list -g --json)" '[]' "$p: no box is left"
done
is "$(tree_sum "$T/repo")" "$before" 'the repository is as it was'
done_testing
