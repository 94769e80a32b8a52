#!/bin/sh
# SPDX-License-Identifier: MIT
# Boxes go on from where a box is; their work is seen and comes back.
. "${0%/*}/functions.sh"

make_repo "$T/repo" >/dev/null
cd "$T/repo" || exit 99
providers=mock
if ab provider info local --json 2>/dev/null | grep -q 'has_snapshot_create.*true' &&
	ab doctor --provider local >/dev/null 2>&1; then
	providers="$providers local"
fi

snapshots()
{
	find "$AGENTBOX_HOME/providers/$1" -path '*/snapshots/*.json' | wc -l
}

for p in $providers; do
	box=box-$p
	ok "$p: a box" ab create --provider "$p" -n "$box" -e "MARK=a b'c" -y
	ab exec "$box" -- sh -c 'echo half >>a.txt; echo untracked >u.txt' </dev/null
	ok "$p: a fork" ab fork "$box" -n "fork-$p"
	like "$out" "'fork-$p' is running .*a fork of '$box'" "$p: says what it is"
	run ab exec "fork-$p" -- cat u.txt
	is "$out" untracked "$p: it has what the box has"
	run ab exec "fork-$p" -- sh -c 'echo "$MARK $AGENTBOX"'
	is "$out" "a b'c fork-$p" "$p: its environment too, and a name of its own"
	ab exec "fork-$p" -- sh -c 'echo fork >fork.txt' </dev/null
	ab exec "$box" -- sh -c 'echo box >box.txt' </dev/null
	no "$p: the box does not see what the fork does" ab exec "$box" -- test -e fork.txt
	no "$p: nor the other way round" ab exec "fork-$p" -- test -e box.txt
	ok "$p: the fork's changes" ab diff "fork-$p" --stat
	like "$out" 'a.txt' "$p: those of the box"
	like "$out" 'fork.txt' "$p: and its own"
	unlike "$out" 'box.txt' "$p: not what came later"
	cp -a "$T/repo" "$T/$p.before"
	ok "$p: they come back" ab download "fork-$p" -y
	is "$(tail -n 1 a.txt) $(cat u.txt fork.txt)" 'half untracked
fork' "$p: into the project"
	rm -rf "$T/repo"
	mv "$T/$p.before" "$T/repo"
	cd "$T/repo" || exit 99
	is "$(stat -c %a "$AGENTBOX_HOME"/boxes/*/env | sort -u)" 600 "$p: which nobody else reads"
	ok "$p: a fork of a fork" ab fork "fork-$p" --json
	like "$out" '"state":[[:space:]]*"running"' "$p: it runs"
	ok "$p: three at once" ab fork "$box" -n "many-$p" --count 3
	for i in 1 2 3; do
		is "$(ab exec "many-$p-$i" -- cat box.txt </dev/null)" box "$p: number $i"
	done
	ok "$p: a box that is stopped" ab stop "$box"
	ok "$p: is forked" ab fork "$box" -n "rest-$p" --stop
	ok "$p: it rests as before" ab status "$box" --json
	like "$out" '"state":[[:space:]]*"stopped"' "$p: stopped"
	ok "$p: and its fork runs" ab exec "rest-$p" -- test -e box.txt
	is "$(snapshots "$p")" 0 "$p: no snapshot is left"
	ok "$p: the box goes" ab destroy -y "$box"
	ok "$p: its forks stay" ab exec "many-$p-2" -- cat u.txt box.txt
done

one_line_error 2 'from 1 to 100' 'no number' ab fork rest-mock --count 0
one_line_error 3 'no box' 'no box' ab fork none
n=$(ab list -g --json | grep -c '"id"')
one_line_error 1 'taken' 'a name that is taken' ab fork rest-mock -n many-mock --count 3
is "$(ab list -g --json | grep -c '"id"')" "$n" 'all are made or none'
is "$(snapshots mock)" 0 'and no snapshot stays'

# A provider that needs the snapshot as long as there are boxes of it.
keeping()
{
	AGENTBOX_MOCK_FAULTS='snapshot_delete:fail=ESTATE' "$BUILD/tests/wrapper" agentbox "$@"
}
ok 'its snapshot stays for now' keeping fork rest-mock -n kept
is "$(snapshots mock)" 1 'it is there'
ok 'prune does not complain' keeping prune -y
ok 'the box goes' ab destroy -y kept
is "$(snapshots mock)" 0 'and so does the snapshot'
done_testing
