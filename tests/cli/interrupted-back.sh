#!/bin/sh
# SPDX-License-Identifier: MIT
# download, download --patch and cp are killed, interrupted and meet a full disk at each call that
# changes a file: files here are as they were or as they will be, nothing else lies about, and the
# same command then does all of it.
. "${0%/*}/functions.sh"
# shellcheck source=fault-functions.sh
. "${0%/*}/fault-functions.sh"

(cd "$repo" && seq 30000 >long && git add long && git commit -qm long) || exit 99
ok 'a box' ab create --provider mock -w "$repo" -n one -y
# The script runs in the box.
# shellcheck disable=SC2016
ok 'work in it' ab exec one -- sh -c '
	echo more >>a.txt && seq 40000 >long && chmod 644 run.sh && rm "star*[x]?" &&
	git mv b.txt moved.txt && mkdir -p made/deep && seq 20000 >made/deep/file &&
	ln -s ../a.txt made/link && ln -sf b link && printf n >"$(printf "n\\nl\\351")" &&
	rm link-to-dir && mkdir link-to-dir && echo l >link-to-dir/l && git add -A &&
	git commit -qm work && echo later >later'
id=$(box_id one)
manifest=$AGENTBOX_HOME/boxes/$id/manifest
cp -a "$repo" "$T/old"
cp -a "$manifest" "$T/old.manifest"
entries "$T/old" >"$T/old.list"
ok 'it comes back' ab download one -y
cp -a "$repo" "$T/new"
entries "$repo" >"$T/new.list"

reset()
{
	rm -rf "$repo" "$T/out" "$T/out.patch"
	cp -a "$T/old" "$repo"
	cp -a "$T/old.manifest" "$manifest"
	mkdir "$T/out"
}

# interrupted WHAT DIR OLD NEW CMD...: CMD makes of DIR, which is like the list OLD, one like NEW.
interrupted()
{
	what=$1 dir=$2 old=$3 new=$4
	shift 4
	for kind in kill int full; do
		reset
		"$prepare"
		count_moments "$@"
		bad='' n=0
		for at in $(chosen "$moments" "$max"); do
			reset
			"$prepare"
			n=$((n + 1))
			faulted "$at" "$kind" "$@"
			as_expected "$kind" || bad="$bad $at(exit $status: $(cat "$T/run.err"))"
			# Whatever comes next clears away.
			ab list -g >/dev/null 2>&1
			entries "$dir" >"$T/now"
			only_of "$T/now" "$old" "$new" || bad="$bad $at($(head -n 3 "$T/strange"))"
			ab "$@" >"$T/log" 2>&1 </dev/null ||
				bad="$bad $at(again: $(tail -n 1 "$T/log"))"
			entries "$dir" >"$T/now"
			cmp -s "$T/now" "$new" || bad="$bad $at(again: not equal)"
		done
		is "$bad" '' "$what: $kind at $n of $moments moments"
		[ "$moments" -gt 2 ] || fail "$what: there are moments"
	done
}

nothing()
{
	:
}

prepare=nothing
under=$repo
interrupted 'download' "$repo" "$T/old.list" "$T/new.list" download one -y
under=$AGENTBOX_HOME
interrupted 'download, its records' "$repo" "$T/old.list" "$T/new.list" download one -y

# A tree, anew and over what is there.
: >"$T/none.list"
mkdir "$T/box"
ok 'a copy' ab cp one:/workspace "$T/box"
entries "$T/box" >"$T/box.list"
under=$T/out
interrupted 'cp of a tree' "$T/out" "$T/none.list" "$T/box.list" cp one:/workspace "$T/out"
fill_out()
{
	cp -a "$T/old" "$T/out/workspace"
	rm -rf "$T/out/workspace/.git" "$T/out/workspace/link-to-dir"
}
reset
fill_out
# What the box has not stays.
ok 'a copy over another' ab cp one:/workspace "$T/out"
entries "$T/out" >"$T/over.list"
reset
fill_out
entries "$T/out" >"$T/filled.list"
prepare=fill_out
interrupted 'cp over a tree' "$T/out" "$T/filled.list" "$T/over.list" cp one:/workspace "$T/out"

# One file, and a patch, both over an older one.
one_file()
{
	echo old >"$T/out/file"
}
prepare=one_file
reset
one_file
entries "$T/out" >"$T/file.old"
ab cp one:long "$T/out/file"
entries "$T/out" >"$T/file.new"
interrupted 'cp of a file' "$T/out" "$T/file.old" "$T/file.new" cp one:long "$T/out/file"
reset
one_file
ab download one --patch "$T/out/file"
entries "$T/out" >"$T/file.new"
interrupted 'download --patch' "$T/out" "$T/file.old" "$T/file.new" \
	download one --patch "$T/out/file"

is "$(find "$AGENTBOX_HOME/landing" -type f 2>/dev/null)" '' 'no note is left'
diff -r "$T/old/.git" "$repo/.git" >"$T/log" 2>&1 && pass 'the repository is as it was' ||
	fail 'the repository is as it was'
done_testing
