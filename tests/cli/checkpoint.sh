#!/bin/sh
# SPDX-License-Identifier: MIT
# The state of a box is kept under a name, outlives it, and becomes boxes whose work comes back.
. "${0%/*}/functions.sh"

make_repo "$T/repo" >/dev/null
mkdir "$T/other"
printf 'x\n' >"$T/other/x"
cd "$T/repo" || exit 99
providers=mock
if ab provider info local --json 2>/dev/null | grep -q 'has_snapshot_create.*true' &&
	ab doctor --provider local >/dev/null 2>&1; then
	providers="$providers local"
fi

json() # KEY: its text in the JSON document in $out
{
	printf '%s\n' "$out" | sed -n "s/^[[:space:]]*\"$1\":[[:space:]]*\"\\(.*\\)\",*\$/\\1/p" |
		head -n 1
}

for p in $providers; do
	box=box-$p
	ok "$p: a box" ab create --provider "$p" -n "$box" -y
	ab exec "$box" -- sh -c 'echo half >>a.txt; echo new >new.txt; git commit -qam half' \
		</dev/null
	ok "$p: a checkpoint" ab checkpoint create "$box" --name half --json
	is "$(json name)" half "$p: by name"
	is "$(json box_name)" "$box" "$p: of the box"
	is "$(json branch)" "agentbox/$box" "$p: with its branch"
	like "$out" '"size_bytes":[[:space:]]*(null|[1-9])' "$p: with its size, if that is known"
	like "$(json created_at)" '^20..-..-..T..:..:..Z$' "$p: with its time"
	manifest=$(find "$AGENTBOX_HOME/cloud-checkpoints/$p" -name manifest.json)
	is "${manifest##*/half/}" manifest.json "$p: a file says so"
	one_line_error 1 'there is one' "$p: the name is taken" \
		ab checkpoint create "$box" --name half
	one_line_error 2 'name' "$p: a name is like a box's" ab checkpoint create "$box" --name A/b
	ok "$p: the box goes on" ab exec "$box" -- sh -c 'echo later >later.txt'
	ok "$p: the list" ab checkpoint ls
	like "$out" "^half +$p +$box " "$p: has it"
	cd "$T/other" || exit 99
	ok "$p: elsewhere" ab checkpoint ls
	cd "$T/repo" || exit 99
	like "$out" '^no checkpoints of this project$' "$p: it is not in the list"
	ok "$p: the box goes" ab destroy -y "$box"
	ok "$p: a new one comes from it, wherever it is" \
		ab create --snapshot half -n "again-$p" --setup 'echo up >up.txt' -y
	like "$out" "from 'half'" "$p: that is said"
	run ab exec "again-$p" -- cat new.txt up.txt
	is "$out" 'new
up' "$p: it has what the first had, and the setup script ran"
	no "$p: but nothing later" ab exec "again-$p" -- test -e later.txt
	is "$(ab exec "again-$p" -- git log -1 --format=%s </dev/null)" half "$p: its commits too"
	ok "$p: status" ab status "again-$p" --json
	is "$(json checkpoint)" half "$p: says where it comes from"
	is "$(json branch)" "agentbox/$box" "$p: and its branch"
	ok "$p: what changed since the project" ab diff "again-$p" --stat
	like "$out" 'a.txt' "$p: is what changed in both"
	like "$out" 'up.txt' "$p: and in the new one"
	cp -a "$T/repo" "$T/$p.before"
	ok "$p: it comes back" ab download "again-$p" -y
	is "$(tail -n 1 a.txt) $(cat new.txt)" 'half new' "$p: into the project"
	rm -rf "$T/repo"
	mv "$T/$p.before" "$T/repo"
	cd "$T/repo" || exit 99
	ok "$p: also with the box there" ab checkpoint create "again-$p" --name second --stop
	ok "$p: a checkpoint goes" ab checkpoint rm half
	one_line_error 3 "no checkpoint 'half'" "$p: once" ab checkpoint rm half --provider "$p"
	one_line_error 3 "no checkpoint 'half'" "$p: nothing starts from it" \
		ab create --provider "$p" --snapshot half -y
	ok "$p: the box of it stays" ab exec "again-$p" -- cat new.txt
	ok "$p: the other one goes" ab checkpoint rm second --provider "$p"
	ab destroy -y "again-$p" >/dev/null 2>&1
done

# What the first was given comes along, without its environment; options win.
ok 'a box that is given little' ab create --provider mock -n little --egress none --memory 512M \
	-e TOKEN=planted-secret -y
ok 'its checkpoint' ab checkpoint create little --name little
ok 'the box goes' ab destroy -y little
ok 'one more of it' ab create --provider mock --snapshot little -n more --pids 50 -y
ok 'its spec' ab status more --json
like "$out" '"egress":[[:space:]]*"none"' 'has the same network'
like "$out" '"memory_bytes":[[:space:]]*536870912' 'the same limit'
like "$out" '"pids":[[:space:]]*50' 'and that of the option'
run ab exec more -- sh -c 'echo "${TOKEN-unset}"'
is "$out" unset 'no environment'
no 'and no secret is kept' grep -r planted-secret "$AGENTBOX_HOME/cloud-checkpoints"
no 'nor with the box' grep -r planted-secret "$AGENTBOX_HOME/boxes"
ok 'one with another network' ab create --provider mock --snapshot little -n open --egress all -y
ok 'its spec' ab status open --json
like "$out" '"egress":[[:space:]]*"all"' 'is what was asked for'
ab destroy -y more open >/dev/null 2>&1
ok 'the checkpoint goes' ab checkpoint rm little --provider mock

one_line_error 3 'no box' 'a checkpoint of no box' ab checkpoint create none --name x
one_line_error 2 'needs --name' 'a checkpoint without a name' ab checkpoint create
one_line_error 2 'say create' 'nothing to do' ab checkpoint
ok 'a box of a provider without snapshots' ab create --provider mockbare -n bare -y
before=$(find "$AGENTBOX_HOME/cloud-checkpoints")
one_line_error 1 "provider 'mockbare': cannot take snapshots" 'cannot have a checkpoint' \
	ab checkpoint create bare --name x
one_line_error 1 "provider 'mockbare': cannot take snapshots" 'nor be forked' ab fork bare
one_line_error 1 "provider 'mockbare': cannot start from snapshots" 'nor come from one' \
	ab create --provider mockbare --snapshot x
is "$(find "$AGENTBOX_HOME/cloud-checkpoints")" "$before" 'nothing was made'
ab destroy -y bare >/dev/null 2>&1

# Two at once with one name.
ok 'a box' ab create --provider mock -n twice -y
for i in 1 2 3 4; do
	"$BUILD/tests/wrapper" agentbox checkpoint create twice --name one </dev/null \
		>"$T/at-once.$i" 2>&1 &
done
wait
is "$(cat "$T"/at-once.* | grep -c '^checkpoint')" 1 'of four at once one wins'
is "$(cat "$T"/at-once.* | grep -Ec '^agentbox: .*(there is one|busy)')" 3 'the others are told' ||
	diag "$(cat "$T"/at-once.*)"
is "$(find "$AGENTBOX_HOME/providers/mock/snapshots" -name 'snap-*.json' | wc -l)" 1 \
	'there is one snapshot'

# A failure cleans up.
faulty()
{
	AGENTBOX_MOCK_FAULTS=$1 "$BUILD/tests/wrapper" agentbox checkpoint create twice --name two
}
no 'a snapshot that fails' faulty 'snapshot_create:fail=EQUOTA'
no 'and one whose answer is lost, with its list' \
	faulty 'snapshot_create:lose;snapshot_list:fail=EPERM'
ab prune -y >/dev/null 2>&1
is "$(find "$AGENTBOX_HOME/providers/mock/snapshots" -name 'snap-*.json' | wc -l)" 1 \
	'leave nothing after a prune'
ok 'the name is free' ab checkpoint create twice --name two

# What is damaged is set aside, and its snapshot is nobody's prey.
manifest=$(find "$AGENTBOX_HOME/cloud-checkpoints" -path '*/two/manifest.json')
printf '{"version":1,' >"$manifest"
ok 'a damaged manifest' ab checkpoint ls
like "$err" 'kept as' 'is set aside'
unlike "$out" '^two ' 'is not in the list'
like "$out" '^one ' 'the others are'
one_line_error 1 "checkpoint 'two': its manifest was damaged" 'nothing starts from it' \
	ab create --provider mock --snapshot two
no 'its name is not free' ab checkpoint create twice --name two
ab prune -y >/dev/null 2>&1
is "$(find "$AGENTBOX_HOME/providers/mock/snapshots" -name 'snap-*.json' | wc -l)" 2 \
	'its snapshot is kept'
ok 'it is removed' ab checkpoint rm two --provider mock
is "$(find "$AGENTBOX_HOME/providers/mock/snapshots" -name 'snap-*.json' | wc -l)" 1 \
	'with its snapshot, and no other'
manifest=$(find "$AGENTBOX_HOME/cloud-checkpoints" -name manifest.json)
printf '{"version":99,"name":"one"}' >"$manifest"
ok 'one of a newer program' ab checkpoint ls
like "$err" 'newer agentbox' 'is left alone, and that is said'
done_testing
