#!/bin/sh
# SPDX-License-Identifier: MIT
# The engine is killed in the middle of a create, a command, a copy, a checkpoint and a prepare, and
# comes back: what was under way ends with one line that says why, the box can be used again, and
# nothing is left that prune does not find.
# shellcheck source=docker-functions.sh
. "${0%/*}/docker-functions.sh"

docker_engine
[ -n "$docker_can_start" ] || skip_all 'no Docker engine that may be killed'
docker_root "$T/root.tar" || fail 'a root file system is made'
export AGENTBOX_PROVIDER=docker
ab prepare --from "$T/root.tar" -n killed >"$T/prepare.log" 2>&1 || diag "$(cat "$T/prepare.log")"
mkdir "$T/repo"
make_repo "$T/repo" >/dev/null
cd "$T/repo" || exit 99
head -c 30000000 /dev/urandom >"$T/file"
docker_breaks "$T/breaks"

engine_has() # BOX
{
	docker_api GET '/containers/json?all=1' | grep -o "/agentbox-$1-" | wc -l
}

# A command that the engine died in: it succeeds all the same, or there is one line of error.
dies() # KIND SKIP DESC CMD...
{
	whole_again
	docker_victim >"$breaks/victim"
	victim=$(cat "$breaks/victim")
	[ -n "$victim" ] || fail "$3: there is an engine to kill"
	break_at "$1" kill "$2"
	dies_desc=$3
	shift 3
	begun=$(date +%s%3N)
	run "$@"
	took=$(($(date +%s%3N) - begun))
	diag "$dies_desc: $status after $took ms: $err"
	[ ! -s "$breaks/faults" ] && ! kill -0 "$victim" 2>/dev/null &&
		pass "$dies_desc: the engine was killed" || fail "$dies_desc: the engine was killed"
	lines=$(printf '%s\n' "$err" | grep '^agentbox: ' | grep -vc 'warning: ')
	[ "$status" -eq 0 ] || [ "$lines" -eq 1 ] &&
		pass "$dies_desc: done, or one line" || {
		fail "$dies_desc: done, or one line"
		tap_show_run "$@"
	}
	[ "$took" -le 60000 ] && pass "$dies_desc: in time" || fail "$dies_desc: in time: $took ms"
	whole_again
	wait_for 60 docker_answers || fail "$dies_desc: the engine comes back"
}

image=agentbox/prepared:killed
for at in 'create 0' 'start 0' 'exec-start 1'; do
	# shellcheck disable=SC2086 # two words
	dies $at "create, killed at $at" ab create --image "$image" -n made -y
	[ "$status" -ne 0 ] || ok "create, killed at $at: a box" ab exec made -n -- git status
	! ab status made >/dev/null 2>&1 || ok "create, killed at $at: it goes" ab destroy made -y
	ok "create, killed at $at: prune" ab prune -y
	is "$(engine_has made)" 0 "create, killed at $at: nothing is left"
done

nothing_left() # DESC
{
	ok "$1: prune" ab prune -y
	is "$(engine_has fixed) $(docker_api GET /images/json | grep -c agentbox/removed) $(
		docker_api GET /volumes | grep -c '"Name"')" '0 0 0' "$1: nothing is left"
}

# A read-only workspace takes an image and a second container.
for at in 'commit 0' 'create 1' 'delete 1'; do
	# shellcheck disable=SC2086
	dies $at "read-only, killed at $at" ab create --image "$image" --readonly -n fixed -y
	if [ "$status" -eq 0 ]; then
		no "read-only, killed at $at: a box" ab exec fixed -n -- touch new
		ok "read-only, killed at $at: it goes" ab destroy fixed -y
	fi
	nothing_left "read-only, killed at $at"
done
# agentbox itself, before the second container and after it is the box.
asked_twice()
{
	[ "$(asked "$1 ")" -eq 2 ]
}
for at in create delete; do
	whole_again
	break_at "$at" silent 1 0
	(exec "$BUILD/tests/wrapper" agentbox create --image "$image" --readonly -n fixed -y) \
		>"$T/fixed" 2>&1 </dev/null &
	killed=$!
	wait_for 30 asked_twice "$at" || fail "read-only, agentbox killed at $at: it got there"
	kill -KILL "$killed"
	wait "$killed" 2>/dev/null
	whole_again
	nothing_left "read-only, agentbox killed at $at"
done

ok 'the same name works' ab create --image "$image" -n one -y
works()
{
	ok "$1: the box is started again" ab start one
	run ab exec one -n -- cat a.txt
	is "$out" alpha "$1: its files are there"
}
dies exec-start 0 'exec' ab exec one -n -- sh -c 'echo begun; sleep 100'
works 'exec'
dies exec-start 0 'cp in' ab cp "$T/file" one:/tmp/file
works 'cp in'
run ab exec one -n -- cat /tmp/file
[ "$status" -ne 0 ] || cmp "$T/run.out" "$T/file" && pass 'cp in: half a file is none' ||
	fail 'cp in: half a file is none'
ok 'then it goes in' ab cp "$T/file" one:/tmp/file
dies exec-start 0 'cp out' ab cp one:/tmp/file "$T/out"
works 'cp out'
[ ! -e "$T/out" ] || cmp "$T/out" "$T/file" && pass 'cp out: half a file is none' ||
	fail 'cp out: half a file is none'
dies commit 0 'checkpoint' ab checkpoint create one --name c
works 'checkpoint'
[ "$status" -ne 0 ] || ab checkpoint rm c -y >/dev/null 2>&1
ok 'checkpoint: prune' ab prune -y
is "$(docker_api GET /images/json | grep -c 'agentbox/snapshot')" 0 'checkpoint: nothing is left'
ok 'then it is taken' ab checkpoint create one --name c
ok 'and goes' ab checkpoint rm c -y
images_of() # NAME
{
	docker_api GET /images/json | grep -c "agentbox/prepared:$1\""
}
dies import 0 'prepare' ab prepare --from "$T/root.tar" -n other
[ "$status" -ne 0 ] || ab image rm other -y >/dev/null 2>&1
ok 'prepare: prune' ab prune -y
is "$(images_of other)" 0 'prepare: nothing is left'
ok 'then it is made' ab prepare --from "$T/root.tar" -n other
is "$(images_of other)" 1 'and there'
ok 'and goes, too' ab image rm other -y
ok 'destroy' ab destroy one -y
is "$(engine_has one)" 0 'nothing is left of it'
ab image rm killed -y >/dev/null 2>&1
done_testing
