#!/bin/sh
# SPDX-License-Identifier: MIT
# create and destroy are killed after every write to the database, and at arbitrary moments;
# after the next prune nothing is left and the name is free again.
. "${0%/*}/functions.sh"

# shellcheck source=../contract/docker-play.sh
. "${0%/*}/../contract/docker-play.sh"

providers=mock
# shellcheck disable=SC2154 # set by the harness that knows what this machine can do
if ab doctor --provider local >/dev/null 2>&1; then
	providers="$providers local"
else
	skip 'the same with local boxes' -- 'none on this machine'
fi
if docker_is_built && docker_root "$T/root.tar"; then
	providers="$providers docker"
	docker_play "$T/root"
	AGENTBOX_DOCKER_IMAGE=played
	export AGENTBOX_DOCKER_IMAGE
fi

mkdir "$T/repo"
make_repo "$T/repo" >/dev/null
make_dirty "$T/repo"
before=$(tree_sum "$T/repo")

# What a home that holds no box may still hold: the database, the provider's cache.
litter()
{
	ab list -g --json | grep '"id"'
	for dir in "$AGENTBOX_HOME"/tmp "$AGENTBOX_HOME"/boxes "$AGENTBOX_HOME"/locks \
		"$AGENTBOX_HOME"/providers/*/boxes "$AGENTBOX_HOME"/providers/*/tmp \
		"$AGENTBOX_HOME"/providers/*/sandboxes; do
		[ -d "$dir" ] && find "$dir" -mindepth 1 -maxdepth 1
	done
	[ -z "${AGENTBOX_DOCKER_IMAGE-}" ] ||
		docker_api GET '/containers/json?all=1' | grep -o '"/agentbox-[^"]*'
	find "$AGENTBOX_HOME"/providers/docker/env -type f 2>/dev/null
	tap_left_over
}

# A child of the dead one that has not become git yet has its locks for another moment: then
# prune leaves the box to it, and has to be asked again.
nothing_left()
{
	[ -z "$(litter)" ] && return 0
	ab prune -y >"$T/prune.out" 2>&1
	[ -z "$(litter)" ]
}

# Killed after the last row, the box is whole: then it works, and goes like any other.
whole_or_nothing()
{
	if ab exec victim -- git status >/dev/null 2>&1; then
		ab destroy victim -y >/dev/null 2>&1
	fi
	wait_for 5 nothing_left
}

for p in $providers; do
	n=1
	bad=
	while killed_at "$n" create --provider "$p" -w "$T/repo" -n victim -y; do
		ab prune -y >"$T/prune.out" 2>&1 || bad="$bad $n(prune: $(head -n1 "$T/prune.out"))"
		whole_or_nothing || bad="$bad $n($(litter | head -n 3 | tr '\n' ' '))"
		n=$((n + 1))
		[ "$n" -lt 100 ] || break
	done
	is "$bad" '' "$p: create killed after each of $((n - 1)) writes leaves nothing behind"
	is "$status" 0 "$p: then the same name works"
	[ "$status" -eq 0 ] || tap_show_run create
	[ "$n" -gt 5 ] && pass "$p: there were rows to die after" ||
		fail "$p: there were rows to die after ($n)"

	n=1
	bad=
	while killed_at "$n" destroy victim -y; do
		ab prune -y >"$T/prune.out" 2>&1 || bad="$bad $n(prune: $(head -n1 "$T/prune.out"))"
		wait_for 5 nothing_left || bad="$bad $n($(litter | head -n 3 | tr '\n' ' '))"
		ab create --provider "$p" -w "$T/repo" -n victim -y >/dev/null 2>"$T/err" ||
			bad="$bad $n($(cat "$T/err"))"
		n=$((n + 1))
		[ "$n" -lt 100 ] || break
	done
	is "$bad" '' "$p: destroy killed after each of $((n - 1)) writes leaves nothing behind"
	is "$status" 0 "$p: a destroy that lives succeeds"

	bad=
	for ms in 1 2 3 4 5 6 8 10 12 15 18 22 26 30 35 40 50 60 80 120; do
		after=0.$(printf '%03d' "$ms")
		timeout -s KILL "$after" "$BUILD/tests/wrapper" agentbox create \
			--provider "$p" -w "$T/repo" -n victim -y </dev/null >/dev/null 2>&1
		ab destroy victim -y --force >/dev/null 2>&1
		ab prune -y >"$T/prune.out" 2>&1 ||
			bad="$bad $ms(prune: $(head -n1 "$T/prune.out"))"
		wait_for 5 nothing_left || bad="$bad $ms($(litter | head -n 3 | tr '\n' ' '))"
	done
	is "$bad" '' "$p: create killed at 20 moments leaves nothing behind"
done
is "$(tree_sum "$T/repo")" "$before" 'the repository is as it was'
done_testing
