#!/bin/sh
# SPDX-License-Identifier: MIT
# checkpoint create and fork are killed after every write to the database; after the next prune
# nothing is left but what is whole, and the names are free.
. "${0%/*}/functions.sh"

providers=mock
if ab provider info local --json 2>/dev/null | grep -q 'has_snapshot_create.*true' &&
	ab doctor --provider local >/dev/null 2>&1; then
	providers="$providers local"
fi
make_repo "$T/repo" >/dev/null
cd "$T/repo" || exit 99

snapshots() # PROVIDER
{
	find "$AGENTBOX_HOME/providers/$1" -path '*/snapshots/*.json' 2>/dev/null | wc -l
}

checkpoints()
{
	ab checkpoint ls --json | grep -c '"name"'
}

for p in $providers; do
	ok "$p: a box" ab create --provider "$p" -n source -y
	n=1
	bad=
	while killed_at "$n" checkpoint create source --name victim; do
		# Whole, or gone: the next one tells, without a prune in every second round.
		[ $((n % 2)) -eq 0 ] || ab prune -y >"$T/prune.out" 2>&1 ||
			bad="$bad $n(prune: $(head -n1 "$T/prune.out"))"
		if [ "$(checkpoints)" -eq 1 ]; then
			ab checkpoint rm victim >/dev/null 2>&1 || bad="$bad $n(rm)"
		fi
		ab prune -y >/dev/null 2>&1
		[ "$(snapshots "$p")" -eq 0 ] || bad="$bad $n($(snapshots "$p") snapshots)"
		n=$((n + 1))
		[ "$n" -lt 50 ] || break
	done
	is "$bad" '' "$p: checkpoint create killed after each of $((n - 1)) writes"
	is "$status" 0 "$p: then the name works"
	[ "$n" -gt 2 ] && pass "$p: there were rows" || fail "$p: there were rows ($n)"
	is "$(snapshots "$p") $(checkpoints)" '1 1' "$p: one snapshot, one manifest"
	ok "$p: it is removed" ab checkpoint rm victim

	n=1
	bad=
	while killed_at "$n" fork source -n victim; do
		ab prune -y >"$T/prune.out" 2>&1 || bad="$bad $n(prune: $(head -n1 "$T/prune.out"))"
		if ab exec victim -- git status >/dev/null 2>&1; then
			ab destroy victim -y >/dev/null 2>&1 || bad="$bad $n(destroy)"
		fi
		ab list -g --json | grep -q '"victim"' && bad="$bad $n(box)"
		[ "$(snapshots "$p")" -eq 0 ] || bad="$bad $n($(snapshots "$p") snapshots)"
		ab exec source -- true </dev/null >/dev/null 2>&1 || bad="$bad $n(source)"
		n=$((n + 1))
		[ "$n" -lt 100 ] || break
	done
	is "$bad" '' "$p: fork killed after each of $((n - 1)) writes"
	is "$status" 0 "$p: then the name works"
	[ "$n" -gt 5 ] && pass "$p: there were rows to die after" ||
		fail "$p: there were rows to die after ($n)"
	ok "$p: the fork works" ab exec victim -- git status
	ab destroy -y victim source >/dev/null 2>&1
done
done_testing
