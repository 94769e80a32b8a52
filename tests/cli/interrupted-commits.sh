#!/bin/sh
# SPDX-License-Identifier: MIT
# fetch, sync and create are killed, interrupted and meet a full disk at each call that changes a
# file: the repository here is whole, and the same command then does all of it.
. "${0%/*}/functions.sh"
# shellcheck source=fault-functions.sh
. "${0%/*}/fault-functions.sh"

ok 'a box' ab create --provider mock -w "$repo" -n one -y
id=$(box_id one)

# ---- fetch ----

# The script runs in the box.
# shellcheck disable=SC2016
ok 'commits in it' ab exec one -- sh -c '
	git add -A && git commit -qm all && i=0 && while [ $i -lt 5 ]; do
		i=$((i + 1)) && seq $i 2000 >f$i && git add f$i && git commit -qm "$i" || exit 1
	done'
want=$(ab exec one -n -- git rev-parse HEAD)
cp -a "$repo" "$T/old"
# The work tree, the index, HEAD, the settings.
but_for_refs()
(
	cd "$repo" && find . -path ./.git/objects -prune -o -path ./.git/refs -prune -o -type f \
		-print0 | sort -z | xargs -0 sha256sum -- | sha256sum
)
rest=$(but_for_refs)

# What is not the ref or an object is as it was; git finds nothing wrong, and nothing lies about.
repo_is_whole()
{
	[ "$(but_for_refs)" = "$rest" ] || echo 'more than a ref changed'
	git -C "$repo" fsck 2>&1 | grep -v '^dangling\|^notice'
	git -C "$repo" count-objects -v | grep '^garbage: [1-9]'
	find "$repo/.git" -name '*.lock' -o -name 'tmp_*' -o -name '.agentbox*'
}

for under in "$repo" "$AGENTBOX_HOME"; do
	for kind in kill int full; do
		rm -rf "$repo" && cp -a "$T/old" "$repo"
		rm -f "$AGENTBOX_HOME/boxes/$id/fetched"
		count_moments fetch one
		bad='' n=0
		for at in $(chosen "$moments" "$max"); do
			rm -rf "$repo" && cp -a "$T/old" "$repo"
			rm -f "$AGENTBOX_HOME/boxes/$id/fetched"
			n=$((n + 1))
			faulted "$at" "$kind" fetch one
			as_expected "$kind" || bad="$bad $at(exit $status: $(cat "$T/run.err"))"
			ab list -g >/dev/null 2>&1
			# Git ends by itself what it began.
			wait_for 10 sh -c "[ -z \"\$(find \"$repo/.git\" -name '*.lock')\" ]"
			odd=$(repo_is_whole)
			[ -z "$odd" ] || bad="$bad $at($odd)"
			ref=$(git -C "$repo" rev-parse -q --verify refs/heads/agentbox/one)
			case $ref in '' | "$want") ;; *) bad="$bad $at(ref $ref)" ;; esac
			ab fetch one >"$T/log" 2>&1 </dev/null ||
				bad="$bad $at(again: $(cat "$T/log"))"
			ref=$(git -C "$repo" rev-parse -q --verify refs/heads/agentbox/one)
			[ "$ref" = "$want" ] || bad="$bad $at(again: ref $ref)"
			odd=$(repo_is_whole)
			[ -z "$odd" ] || bad="$bad $at(again: $odd)"
		done
		is "$bad" '' "fetch, below ${under##*/}: $kind at $n of $moments moments"
		[ "$moments" -gt 2 ] || fail "fetch: there are moments"
	done
done
ab destroy one -y >/dev/null 2>&1
rm -rf "$repo" && cp -a "$T/old" "$repo"

# ---- sync, and create ----

# made: a box of what is here, and then newer things here.
made()
{
	ab destroy two -y --force >/dev/null 2>&1
	rm -rf "$repo" && cp -a "$T/old" "$repo"
	ab create --provider mock -w "$repo" -n two -y >/dev/null 2>&1 </dev/null || return
	(cd "$repo" && seq 50000 >big && echo x >>src/main.c && rm run.sh && git add -A &&
		git commit -qm newer && echo edit >>a.txt && mkdir -p n/e/w && seq 9 >n/e/w/f)
}

box_is_here() # what differs, but for .git
{
	rm -rf "$T/box"
	ab cp two:/workspace "$T/box" >/dev/null 2>"$T/err" || cat "$T/err"
	rm -f "$T/box/x.ignored"
	entries "$T/box" >"$T/box.list"
	rm -f "$repo/x.ignored"
	entries "$repo" >"$T/here.list"
	diff "$T/here.list" "$T/box.list"
	[ "$(ab exec two -n -- git rev-parse refs/remotes/host/main)" = \
		"$(git -C "$repo" rev-parse HEAD)" ] || echo 'the commits are not there'
	ab exec two -n -- git fsck 2>&1 | grep -v '^dangling\|^notice'
	ab exec two -n -- git log --format=%s -1
}

under=$AGENTBOX_HOME
for kind in kill int full; do
	made || fail 'a box'
	before=$(tree_sum "$repo")
	count_moments sync two
	bad='' n=0
	for at in $(chosen "$moments" "$max"); do
		made || fail 'a box'
		n=$((n + 1))
		faulted "$at" "$kind" sync two
		as_expected "$kind" || bad="$bad $at(exit $status: $(cat "$T/run.err"))"
		ab sync two >"$T/log" 2>&1 </dev/null || bad="$bad $at(again: $(cat "$T/log"))"
		odd=$(box_is_here)
		[ "$odd" = newer ] || bad="$bad $at(again: $odd)"
		run ab download two --dry-run
		[ "$out" = 'nothing changed' ] || bad="$bad $at($out)"
	done
	is "$bad" '' "sync: $kind at $n of $moments moments"
done

for kind in kill int full; do
	ab destroy two -y --force >/dev/null 2>&1
	before=$(tree_sum "$repo")
	count_moments create --provider mock -w "$repo" -n two -y
	bad='' n=0
	for at in $(chosen "$moments" "$max"); do
		ab destroy two -y --force >/dev/null 2>&1
		n=$((n + 1))
		faulted "$at" "$kind" create --provider mock -w "$repo" -n two -y
		as_expected "$kind" || bad="$bad $at(exit $status: $(cat "$T/run.err"))"
		[ "$status" -eq 0 ] || ab create --provider mock -w "$repo" -n two -y \
			>"$T/log" 2>&1 </dev/null || bad="$bad $at(again: $(cat "$T/log"))"
		[ "$(ab exec two -n -- git status --porcelain=v2 -z | cksum)" = \
			"$(git -C "$repo" status --porcelain=v2 -z | cksum)" ] ||
			bad="$bad $at(it differs)"
	done
	is "$bad" '' "create: $kind at $n of $moments moments"
	is "$(tree_sum "$repo")" "$before" 'the repository is as it was'
done
done_testing
