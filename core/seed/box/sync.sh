# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2154,SC2015
# Behind tree.sh: $tree is what the work tree is now.
[ -z "$partial" ] || fail "git does not take all files of the workspace: $partial"
cd "$dir" || exit 90

# By an index of our own.
here() {
	GIT_INDEX_FILE=$stage/index rgit "$@"
}
# info: records as git update-index --index-info takes them, but with lines.
info() {
	tr '\n\001' '\000\n' | here update-index -z --index-info
}
# start [TREE]: the index is TREE, or empty.
start() {
	rm -f "$stage/index"
	[ -z "$1" ] || here read-tree "$1"
}
finish() {
	here write-tree --missing-ok || exit 90
}
gone() {
	sed "s/^/0 $zero	/"
}

# The contents that came.
if [ -s "$stage/names" ]; then
	(cd "$stage" && rgit hash-object -w --no-filters --stdin-paths <names >got) || exit 90
	cmp -s "$stage/got" "$stage/ids" ||
		fail 'a file of the host changed while it was read: try again'
fi
: >>"$stage/names"

# What the host had when it last sent, and what it has now: only of the paths that differ.
start && here update-index -z --index-info <"$stage/old" && old=$(finish) &&
	start && here update-index -z --index-info <"$stage/new" && new=$(finish) || exit 90
base=$old
if [ "$how" = merged ]; then
	# What is committed there came with the merge.
	start && here update-index -z --index-info <"$stage/merged" && base=$(finish) || exit 90
fi

# Three ways; where both changed, the box's stays.
start "$tree" && here read-tree -i -m --aggressive "$base" "$tree" "$new" || exit 90
here ls-files -u -z | lines >"$stage/unmerged"
sed 's/^[^	]*	//' "$stage/unmerged" | sort -u >"$stage/conflicts"
if [ -s "$stage/conflicts" ]; then
	gone <"$stage/conflicts" | info &&
		sed -n 's/^\([0-7]* [0-9a-f]*\) 2	/\1 0	/p' "$stage/unmerged" | info ||
		exit 90
	# A file became a directory, or the reverse: git leaves what is new to us.
	sed -n 's/^[0-7]* [0-9a-f]* [12]	//p' "$stage/unmerged" | sort -u >"$stage/held"
	sed -n 's/^\([0-7]*\) \([0-9a-f]*\) 3	/\1,\2,/p' "$stage/unmerged" >"$stage/theirs"
	cp "$stage/held" "$stage/conflicts"
	while IFS= read -r entry; do
		! grep -q -x -F -e "${entry#*,*,}" "$stage/held" || continue
		real=$(printf '%s.' "$entry" | tr '\001' '\n')
		here update-index --add --cacheinfo "${real%.}" 2>/dev/null ||
			printf '%s\n' "${entry#*,*,}" >>"$stage/conflicts"
	done <"$stage/theirs"
fi
final=$(finish)
rgit diff-tree -r -z --no-renames --name-only "$tree" "$final" >"$stage/taken" || exit 90

# It would be written into what somebody else has.
for mount in $mounts; do
	mounted "$mount" || continue
	[ -z "$(rgit diff-tree -r --name-only "$tree" "$final" -- ":(literal)$sub")" ] ||
		fail "the project has '$sub' now, where something is mounted in the box"
done

# only TREE: what of it is no conflict, one a line.
only() {
	start "$1" && gone <"$stage/conflicts" | info || exit 90
	rgit ls-tree -r -z "$(finish)" | lines
}

# The work tree; what was written to meanwhile makes git refuse before it begins.
if [ "$mode" = "do" ] && [ "$tree" != "$final" ]; then
	if [ -f "$shadow/all.$$" ]; then
		cp "$shadow/all.$$" "$stage/index" || exit 90
		here update-index -q --refresh >/dev/null 2>&1
	else
		cp -p "$shadow/index" "$stage/index" || exit 90
	fi
	begin_writing rgit "$tree" "$final"
	(umask 022 && here read-tree -m -u "$tree" "$final") || exit 90
	end_writing
fi

# The index of the box follows: what is staged stays.
if [ "$how" = forward ] && [ "$mode" = "do" ]; then
	from=${x:-$(git hash-object -w -t tree /dev/null)} || exit 90
	if advance "$from" "$head" || advance "$from" "$head" -i; then
		move_branch "${x:-$zero}" "$head"
	else
		how=left why='what is staged in the box is in the way'
	fi
fi

# What download and diff compare with: as if it had been sent so.
only "$old" | sed 's/^[^	]*	//' | gone >"$stage/less"
only "$new" >"$stage/more"
start "$seed" && info <"$stage/less" && info <"$stage/more" || exit 90
began=$(finish)
base_tree() {
	case $how in
	same | forward | merged)
		[ "$state" != raw ] || return 0
		start "$head^{tree}" || exit 90
		n=0
		while n=$((n + 1)) && [ -d "$shadow/nested/$n" ]; do
			enter "$shadow/nested/$n"
			[ -f "$rec/commit" ] || continue
			compose "$stage/index" "$(cat "$rec/commit")^{tree}" || exit 90
		done
		enter "$shadow"
		finish
		;;
	*)
		cat "$shadow/base" 2>/dev/null || printf '%s\n' "$seed"
		;;
	esac
}
if [ "$mode" = "do" ]; then
	base=$(base_tree) || exit 90
	if [ -z "$base" ] || [ "$base" = "$began" ]; then
		rm -f "$shadow/base"
	else
		printf '%s\n' "$base" >"$stage/base" && mv -f "$stage/base" "$shadow/base" ||
			exit 90
	fi
fi

# say KIND: each line of stdin.
say() {
	sed "s/^/$1=/" | tr '\n\001' '\000\n'
}
lines <"$stage/taken" | say taken
say conflict <"$stage/conflicts"
lines <"$stage/unmerged.commits" | say unmerged
printf 'branch=%s\000why=%s\000tree=%s\000end=\000' "$how" "$why" "$began"
