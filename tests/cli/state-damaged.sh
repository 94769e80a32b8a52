#!/bin/sh
# SPDX-License-Identifier: MIT
# A damaged or missing file of a local box: the file is named, and the box can be brought to an end.
. "${0%/*}/functions.sh"

make_repo "$T/repo"
cd "$T/repo" || exit 99
ab doctor --provider local >/dev/null 2>&1 || skip_all 'no local boxes here'
boxes=$AGENTBOX_HOME/providers/local/store/boxes
freezes=
ab doctor --provider local 2>/dev/null | grep -q 'pausing by cgroup' && freezes=1

make_box()
{
	ab create -n "$1" --egress none -y >/dev/null 2>&1 || fail "box $1"
	dir=$boxes/$(ab status "$1" --json | grep -o '"sandbox_id":[[:space:]]*"[^"]*"' |
		cut -d'"' -f4)
}

damage() # KIND FILE
{
	case $1 in
	missing) rm -f "$2" ;;
	empty) : >"$2" ;;
	cut) head -c 20 "$2" >"$2.x" && cat "$2.x" >"$2" && rm "$2.x" ;;
	wrong) echo '{"id": 7, "pid": "x", "ports": 3, "layers": 5, "method": 1}' >"$2" ;;
	esac
}

# The pid of its first process, as the kernel knows it.
first_process()
{
	grep -l "$dir/live" /proc/[0-9]*/maps 2>/dev/null | cut -d/ -f3 | head -n 1
}

n=0
for kind in missing empty cut wrong; do
	n=$((n + 1))
	make_box "rec$n"
	kept=$(cat "$dir/box.json")
	damage "$kind" "$dir/box.json"
	run ab list -g
	is "$status" 0 "box.json $kind: list"
	like "$out" "rec$n .*unknown" 'its state is not known'
	like "$err" 'box.json: damaged or missing' 'the file is named'
	one_line_error 1 'box.json: damaged.*destroy --force' 'start' ab start "rec$n"
	one_line_error 125 'box.json: damaged.*destroy --force' 'exec' ab exec "rec$n" -- true
	ok 'prune' ab prune -y
	ok 'stop' ab stop "rec$n"
	is "$(first_process)" '' 'it has ended'
	printf '%s\n' "$kept" >"$dir/box.json"
	run ab exec "rec$n" -- cat a.txt
	is "$out" alpha 'with the file put back it works again'
	damage "$kind" "$dir/box.json"
	ok 'destroy --force' ab destroy --force -y "rec$n"
	is "$(ls "$boxes")" '' 'nothing is left'
done

for kind in missing empty cut wrong; do
	make_box run
	pid=$(first_process)
	damage "$kind" "$dir/run.json"
	run ab list -g
	like "$out" 'run .*running' "run.json $kind: it is still seen to run"
	like "$err" 'run.json: damaged or missing' 'the file is named'
	run ab exec run -- echo here
	is "$out" here 'exec'
	is "$(first_process)" "$pid" 'in the same box'
	ok 'stop' ab stop run
	is "$(first_process)" '' 'it has ended'
	ok 'start' ab start run
	run ab list -g
	is "$err" '' 'which puts things right'
	damage "$kind" "$dir/run.json"
	begin=$(date +%s)
	ok 'destroy of a running one' ab destroy -y run
	ok 'at once' test $(($(date +%s) - begin)) -lt 4
	is "$(ls "$boxes")" '' 'nothing is left'
done

# What counts is whether something goes on.
counts()
{
	before=$(ab_count)
	wait_for 5 counted
}
ab_count()
{
	cat "$(echo "$dir"/layers/upper/root/workspace/count 2>/dev/null)" 2>/dev/null | wc -l
}
counted()
{
	[ "$(ab_count)" -gt "$before" ]
}

for kind in missing empty cut wrong; do
	make_box paused
	ab exec paused -d -- sh -c 'while echo x >>/workspace/count; do sleep 0.05; done' \
		>/dev/null 2>&1
	ok "paused $kind: it counts" counts
	ok 'pause' ab pause paused
	damage "$kind" "$dir/paused"
	if [ "$freezes" ]; then
		run ab list -g
		like "$out" 'paused .*paused' 'its state is still seen'
	fi
	ok 'resume' ab resume paused
	ok 'it goes on' counts
	is "$(ls "$dir/paused" 2>/dev/null)" '' 'the file is gone'
	ab pause paused >/dev/null 2>&1
	damage "$kind" "$dir/paused"
	ok 'a paused one: stop' ab stop paused
	ok 'start' ab start paused
	run ab exec paused -- cat a.txt
	is "$out" alpha 'exec'
	ab pause paused >/dev/null 2>&1
	damage "$kind" "$dir/paused"
	ok 'destroy' ab destroy -y paused
done

make_box chain
ab exec chain -- sh -c 'echo kept >kept' >/dev/null 2>&1
ab stop chain >/dev/null 2>&1
ok 'a layer of its own' ab checkpoint create chain -n c1
kept=$(cat "$dir/chain.json")
for kind in empty cut wrong; do
	damage "$kind" "$dir/chain.json"
	one_line_error 1 'chain.json: damaged.*put it back' "chain.json $kind: start" \
		ab start chain
	run ab list -g
	like "$out" 'chain .*stopped' 'list'
	ok 'stop' ab stop chain
	ok 'prune' ab prune -y
	printf '%s\n' "$kept" >"$dir/chain.json"
	run ab exec chain -- cat kept
	is "$out" kept 'with the file put back it works again'
	ab stop chain >/dev/null 2>&1
done
damage cut "$dir/chain.json"
ok 'destroy --force' ab destroy --force -y chain
ok 'its checkpoint goes too' ab checkpoint rm c1 -y

for kind in empty cut wrong; do
	make_box net
	echo '{"egress": "host", "ports": {}}' >"$dir/net.json"
	damage "$kind" "$dir/net.json"
	one_line_error 125 'net.json: damaged' "net.json $kind: exec" ab exec net -- true
	ok 'stop' ab stop net
	rm "$dir/net.json"
	ok 'without it the network is as it was made' ab exec net -- true
	echo '{"egress": "host", "ports": {}}' >"$dir/net.json"
	damage "$kind" "$dir/net.json"
	ok 'destroy --force' ab destroy --force -y net
done

if is_root && have unshare mount; then
	mkdir "$T/small"
	cat >"$T/full.sh" <<'END'
mount -t tmpfs -o size=48m tmpfs "$1" || exit 99
AGENTBOX_HOME=$1/home
export AGENTBOX_HOME
ab()
{
	timeout 60 "$build/tests/wrapper" agentbox "$@" </dev/null
}
build=$2
ab create -n one -w "$3" --egress none -y >/dev/null 2>&1 || exit 98
ab create -n two -w "$3" --egress none -y >/dev/null 2>&1 || exit 97
ab stop two >/dev/null || exit 96
ab exec one -- sh -c 'cat /dev/zero >big; head -c 1 /dev/zero >more; ! test -s more' \
	2>/dev/null || exit 95
ab exec two -- true || exit 94
ab stop one >/dev/null || exit 93
ab start one >/dev/null || exit 92
ab exec one -- test -s big || exit 91
ab stop one >/dev/null || exit 90
ab destroy -y two >/dev/null || exit 89
ab destroy -y one >/dev/null || exit 88
[ "$(ab list -g --json)" = '[]' ] || exit 87
[ -z "$(ls "$AGENTBOX_HOME/providers/local/store/tmp")" ] || exit 86
END
	ok 'a full disk: boxes stop, start, work and go' \
		unshare -m sh "$T/full.sh" "$T/small" "$BUILD" "$T/repo"
fi
done_testing
