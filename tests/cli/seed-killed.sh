#!/bin/sh
# SPDX-License-Identifier: MIT
# Seeding that is cut short, by a kill, a full disk or a box that goes, leaves nothing that looks
# whole; the next try works, and prune clears the rest away.
. "${0%/*}/functions.sh"

# How many moments to die at.
moments=6
[ -z "${AGENTBOX_TEST_FULL-}" ] || moments=30
providers=mock
if ab doctor --provider local >/dev/null 2>&1; then
	providers="$providers local"
else
	skip 'the same with local boxes' -- 'none on this machine'
fi

# Enough of it for a kill to meet the middle.
repo=$T/repo
make_repo "$repo" >/dev/null
(cd "$repo" && mkdir big && i=0 && while [ "$i" -lt 150 ]; do
	head -c 40000 /dev/urandom >"big/$i" && i=$((i + 1))
done && git add . && git commit -q -m big && echo more >>big/1) || exit 99
make_dirty "$repo"
before=$(tree_sum "$repo")
status_here=$(git -C "$repo" --no-optional-locks status --porcelain=v2 -z | cksum)

litter()
{
	ab list -g --json | grep '"id"'
	for dir in "$AGENTBOX_HOME"/tmp "$AGENTBOX_HOME"/boxes "$AGENTBOX_HOME"/locks \
		"$AGENTBOX_HOME"/providers/*/boxes "$AGENTBOX_HOME"/providers/*/tmp \
		"$AGENTBOX_HOME"/providers/*/sandboxes; do
		[ -d "$dir" ] && find "$dir" -mindepth 1 -maxdepth 1
	done
	tap_left_over
}

nothing_left()
{
	[ -z "$(litter)" ] && return 0
	ab prune -y >"$T/prune.out" 2>&1
	[ -z "$(litter)" ]
}

# What list calls running has everything.
no_pretence()
{
	ab list -g --json >"$T/list.json" 2>"$T/list.err" || return 1
	grep -q '"state":[[:space:]]*"running"' "$T/list.json" || return 0
	[ "$(ab exec victim -- git status --porcelain=v2 -z </dev/null 2>&1 | cksum)" = \
		"$status_here" ]
}

errors() # FILE
{
	sed '/^agentbox: warning: /d' "$1" | grep -c '^agentbox: '
}

ms_now()
{
	date +%s%3N
}

for p in $providers; do
	began=$(ms_now)
	ok "$p: a box" ab create --provider "$p" -w "$repo" -n victim -y
	took=$(($(ms_now) - began))
	ab destroy victim -y >/dev/null 2>&1
	bad='' whole=0
	i=0
	while [ "$i" -lt "$moments" ]; do
		i=$((i + 1))
		# Spread over all of it, each time somewhere else.
		at=$((took * i / moments + $(od -An -N1 -tu1 /dev/urandom) % 20 - 10))
		[ "$at" -gt 0 ] || at=1
		timeout -s KILL "$((at / 1000)).$(printf %03d $((at % 1000)))" \
			"$BUILD/tests/wrapper" agentbox create --provider "$p" -w "$repo" \
			-n victim -y </dev/null >/dev/null 2>&1 && whole=$((whole + 1))
		no_pretence || bad="$bad $at(pretends: $(cat "$T/list.err"))"
		ab destroy victim -y --force >/dev/null 2>&1
		wait_for 10 nothing_left || bad="$bad $at($(litter | head -n 3 | tr '\n' ' '))"
	done
	is "$bad" '' "$p: killed at $moments moments of $took ms"
	diag "$whole of them were over before"
	ok "$p: the next try" ab create --provider "$p" -w "$repo" -n victim -y
	is "$(ab exec victim -- git status --porcelain=v2 -z </dev/null | cksum)" "$status_here" \
		"$p: is whole"
	ab destroy victim -y >/dev/null 2>&1

	# The box goes while it is filled.
	bad='' i=0
	while [ "$i" -lt 2 ]; do
		i=$((i + 1))
		ab create --provider "$p" -w "$repo" -n victim -y </dev/null >"$T/log" 2>&1 &
		pid=$!
		wait_for 5 sh -c 'ls "$1"/providers/*/boxes/* "$1"/providers/*/sandboxes/*' sh \
			"$AGENTBOX_HOME"
		case $i in
		1) ab stop victim >"$T/stop.log" 2>&1 </dev/null ;;
		*) ab destroy victim -y --force >"$T/stop.log" 2>&1 </dev/null ;;
		esac
		wait "$pid"
		c=$?
		[ "$c" -eq 0 ] || [ "$(errors "$T/log")" = 1 ] ||
			bad="$bad $i:$c($(head -n 3 "$T/log"))"
		[ "$c" -ne 0 ] || no_pretence || bad="$bad $i(pretends)"
		ab destroy victim -y --force >/dev/null 2>&1
		wait_for 10 nothing_left || bad="$bad $i($(litter | head -n 3 | tr '\n' ' '))"
	done
	is "$bad" '' "$p: stopped or destroyed in the middle"
done

# Full disks: of this side, where the pack is written, and of the box, which has the same disk.
if is_root && have unshare mount; then
	mkdir "$T/small" "$T/heavy"
	(cd "$T/heavy" && git init -q . && head -c 40000000 /dev/urandom >big && git add . &&
		git commit -q -m big && rm big && git commit -q -am less) || exit 99
	mkdir "$T/wide" && head -c 60000000 /dev/urandom >"$T/wide/big"
	cat >"$T/full.sh" <<'END'
mount -t tmpfs -o size=32m tmpfs "$1" || exit 99
AGENTBOX_HOME=$1/home
export AGENTBOX_HOME
ab()
{
	timeout 100 "$build/tests/wrapper" agentbox "$@" </dev/null
}
build=$2
errors()
{
	sed '/^agentbox: warning: /d' "$1" | grep -c '^agentbox: '
}
for p in $4; do
	for dir in "$5/heavy" "$5/wide"; do
		ab create --provider "$p" -n one -w "$dir" --egress none -y >/dev/null 2>"$5/err" &&
			exit 98
		cat "$5/err" >&2
		[ "$(errors "$5/err")" = 1 ] || exit 97
		# What a provider hands to tar is told by tar.
		[ "$p" != local ] || grep -q 'No space left' "$5/err" || exit 96
		[ "$(ab list -g --json)" = '[]' ] || exit 95
		ab prune -y >/dev/null || exit 94
		[ -z "$(find "$AGENTBOX_HOME/tmp" "$AGENTBOX_HOME/boxes" \
			"$AGENTBOX_HOME"/providers/*/boxes -mindepth 1 2>/dev/null)" ] || exit 93
	done
	ab create --provider "$p" -n one -w "$3" --egress none -y >/dev/null || exit 92
	ab exec one -- git status >/dev/null || exit 91
	ab destroy one -y >/dev/null || exit 90
done
END
	mkdir "$T/light"
	make_repo "$T/light" >/dev/null
	ok 'B058 a full disk: said, nothing is left, a smaller project works' unshare -m \
		sh "$T/full.sh" "$T/small" "$BUILD" "$T/light" "$providers" "$T"
fi
is "$(tree_sum "$repo")" "$before" 'the repository is as it was'
done_testing
