#!/bin/sh
# SPDX-License-Identifier: MIT
# checkpoint create and prepare are killed after every write to the database; after the next prune
# the engine has nothing of it, and the same works when it is done again.
# shellcheck source=docker-functions.sh
. "${0%/*}/docker-functions.sh"

docker_engine
docker_root "$T/root.tar" || fail 'a root file system is made'
export AGENTBOX_PROVIDER=docker
make_repo "$T/repo" >/dev/null
cd "$T/repo" || exit 99
ab prepare --from "$T/root.tar" -n base >"$T/prepare.log" 2>&1 || diag "$(cat "$T/prepare.log")"
ok 'a box' ab create --image agentbox/prepared:base -n source -y
install=$(sed 's/[^0-9a-f-]//g' "$AGENTBOX_HOME/install")

# What the engine has of this install: "images containers volumes".
left()
{
	filters="%7B%22label%22%3A%5B%22agentbox.install%3D$install%22%5D%7D"
	for what in '/images/json?all=1&' '/containers/json?all=1&' '/volumes?'; do
		docker_api GET "/v1.41${what}filters=$filters" | grep -oE '"Created(At)?"' | wc -l
	done | tr '\n' ' '
}

# What nobody waits for may go on for a while.
nothing_left()
{
	ab prune -y >"$T/prune.out" 2>&1 || {
		bad="$bad $n(prune: $(head -n1 "$T/prune.out"))"
		return 0
	}
	[ "$(left)" = "$before" ]
}

# Killed after each of its writes, until there was none left to die after.
dies() # DESC UNDO CMD...
{
	desc=$1
	undo=$2
	shift 2
	before=$(left)
	n=1
	bad=
	while killed_at "$n" "$@"; do
		# It was whole already: then it can be removed.
		[ $((n % 2)) -eq 0 ] || $undo >/dev/null 2>&1
		wait_for 30 nothing_left || :
		$undo >/dev/null 2>&1
		[ "$(left)" = "$before" ] || bad="$bad $n($(left), not $before)"
		ab exec source -- true </dev/null >/dev/null 2>&1 || bad="$bad $n(source)"
		n=$((n + 1))
		[ "$n" -lt 40 ] || break
	done
	is "$bad" '' "$desc: killed after each of $((n - 1)) writes"
	is "$status" 0 "$desc: then it works"
	[ "$n" -gt 2 ] && pass "$desc: there were writes" || fail "$desc: there were writes ($n)"
	ok "$desc: and goes" $undo
	ok "$desc: prune" ab prune -y
	is "$(left)" "$before" "$desc: nothing is left"
}

dies checkpoint 'ab checkpoint rm victim -y' checkpoint create source --name victim
dies prepare 'ab image rm victim -y' prepare --from "$T/root.tar" -n victim
ok 'the box goes' ab destroy source -y
ok 'and its image' ab image rm base -y
is "$(left)" '0 0 0 ' 'nothing is left'
done_testing
