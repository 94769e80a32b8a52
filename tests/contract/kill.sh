#!/bin/sh
# SPDX-License-Identifier: MIT
# Whichever process of agentbox is killed at whatever moment, the next command manages the box.
. "${0%/*}/functions.sh"

word=4$(printf %s "$TAG" | tr a-f 1-6)

children() # PID
{
	cat "/proc/$1/task"/*/children 2>/dev/null || ps -o pid= --ppid "$1" 2>/dev/null
}

# What belongs to this home and is neither a command under way nor this test: it holds a file
# there, or is a child of such a one.
keepers()
{
	for p in /proc/[0-9]*; do
		case $(cat "$p/comm" 2>/dev/null) in agentbox-*) ;; *) continue ;; esac
		find "$p/fd" -lname "$AGENTBOX_HOME/*" 2>/dev/null | grep -q . || continue
		echo "${p#/proc/} $(cat "$p/comm" 2>/dev/null)"
		for c in $(children "${p#/proc/}"); do
			case $(cat "/proc/$c/comm" 2>/dev/null) in
			slirp4netns | passt*) echo "$c $(cat "/proc/$c/comm")" ;;
			esac
		done
	done 2>/dev/null
	# The first process of a box holds nothing of the home; its record names it.
	find "$AGENTBOX_HOME" -name run.json -exec sed -n 's/.*"pid": *\([0-9]*\).*/\1/p' {} + \
		2>/dev/null | while read -r p; do
		[ "$(cat "/proc/$p/comm" 2>/dev/null)" != agentbox-init ] || echo "$p agentbox-init"
	done
}

leftovers()
{
	keepers
	grep -lF "$AGENTBOX_HOME" /proc/[0-9]*/mountinfo 2>/dev/null
	find /sys/fs/cgroup -depth -name "*$1*" 2>/dev/null
	find "$AGENTBOX_HOME" -name "*$1*" ! -name '*.lock' ! -path '*/locks/*' ! -path '*/logs/*' \
		2>/dev/null
}

none_left()
{
	[ -z "$(leftovers "$1")" ]
}

known_state() # NAME
{
	run ab status "$(b "$1")" --json
	[ "$status" -eq 0 ] && printf '%s\n' "$out" |
		grep -Eq '"state":[[:space:]]*"(running|stopped|paused)"'
}

manages() # NAME DESC
{
	known_state "$1" && pass "$2: its state is known" || {
		fail "$2: its state is known"
		tap_show_run ab status
	}
	ok "$2: exec works" in_box "$1" cat /workspace/file
	is "$out" hello "$2: its files are there"
}

goes() # NAME DESC
{
	sandbox=$(ab status "$(b "$1")" --json |
		sed -n 's/.*"sandbox_id":[[:space:]]*"\(.*\)".*/\1/p')
	ok "$2: destroy" ab destroy "$(b "$1")" -y
	[ -n "${AGENTBOX_CONTRACT_HOME-}" ] || {
		wait_for 10 none_left "$sandbox" && pass "$2: nothing is left" || {
			fail "$2: nothing is left"
			diag "$(leftovers "$sandbox")"
		}
	}
}

start_command() # NAME; sets $client
{
	"$TOOL" sigdfl agentbox exec "$(b "$1")" -- sh -c "setsid sleep $word & sleep $word" \
		</dev/null >/dev/null 2>&1 &
	client=$!
	wait_for 20 some_running "$1" "$word" || fail 'a command runs'
}

# A command and what stands behind it.
new_box one || give_up 'a box is made'
for victim in client helper supervisor; do
	start_command one
	case $victim in
	client) pids=$client ;;
	helper) pids=$(children "$client") ;;
	*) pids=$(for p in $(children "$client"); do children "$p"; done) ;;
	esac
	# A client of an engine elsewhere has nobody here to help it.
	[ -n "$pids" ] || {
		diag "$victim: there is none here"
		kill -KILL "$client"
		wait "$client" 2>/dev/null
		continue
	}
	# shellcheck disable=SC2086
	kill -KILL $pids
	# The command of a helper that is gone may go on: the client then waits for it.
	[ "$victim" != helper ] || ok "$victim: others run" in_box one true
	[ "$victim" != helper ] || kill -TERM "$client"
	wait "$client" 2>/dev/null
	c=$?
	[ "$c" -ne 0 ] && pass "$victim: the command fails" || fail "$victim: the command fails"
	# Nobody else knows what a supervisor supervised; the box has it until it stops.
	[ "$victim" = supervisor ] || {
		# As in exec.sh.
		wait_for 30 none_running one "$word" && pass "$victim: its tree goes" ||
			fail "$victim: its tree goes"
	}
	manages one "$victim"
	ab stop "$(b one)" </dev/null >/dev/null 2>&1
done
goes one 'after that'

# What stays beside a box.
if [ -z "${AGENTBOX_CONTRACT_HOME-}" ]; then
	new_box two || give_up 'a box is made'
	in_box two true </dev/null
	names=$(keepers | cut -d' ' -f2 | sort -u)
	for victim in $names; do
		start_command two
		for pid in $(keepers | sed -n "s/ $victim\$//p"); do
			kill -KILL "$pid"
		done
		run ab list -g --json
		is "$status" 0 "$victim: list"
		manages two "$victim"
		kill -KILL "$client" 2>/dev/null
		wait "$client" 2>/dev/null
		in_box two sh -c 'echo kept >kept' </dev/null
		ok "$victim: stop" ab stop "$(b two)"
		is "$(in_box two cat kept </dev/null)" kept "$victim: and start"
	done
	goes two 'whatever was killed'
fi

# Any command at any moment.
number() # MAX
{
	echo $(($(od -An -N2 -tu2 /dev/urandom) % $1))
}

one_of() # WORD...
{
	shift "$(number $#)"
	echo "$1"
}

commands='stop start exec cp-in cp-out destroy create'
! offers pause || commands="$commands pause resume"
! offers snapshot_create || commands="$commands fork checkpoint"
words_of() # COMMAND; sets $words as lines
{
	case $1 in
	exec) printf '%s\n' exec "$(b three)" -- sh -c "sleep $word & wait" ;;
	cp-in) printf '%s\n' cp "$T/data" "$(b three):data" ;;
	cp-out) printf '%s\n' cp "$(b three):data" "$T/out" ;;
	create)
		printf '%s\n' create --provider "$P" -w "$T/project" -y -n "$(b three)"
		printf '%s\n' ${AGENTBOX_CONTRACT_CREATE-}
		;;
	fork) printf '%s\n' fork "$(b three)" -n "$(b "fork-$i")" ;;
	checkpoint) printf '%s\n' checkpoint create "$(b three)" --name "ct-$TAG-$i" ;;
	destroy) printf '%s\n' destroy "$(b three)" -y ;;
	*) printf '%s\n' "$1" "$(b three)" ;;
	esac
}

"$TOOL" bytes 20000000 >"$T/data"
n=$(size 120 24)
i=0 done_to='' bad=
while [ "$i" -lt "$n" ]; do
	i=$((i + 1))
	ab status "$(b three)" >/dev/null 2>&1 </dev/null || {
		ab prune -y >/dev/null 2>&1 </dev/null
		new_box three || break
		ab cp "$T/data" "$(b three):data" </dev/null >/dev/null 2>&1
	}
	# shellcheck disable=SC2086
	what=$(one_of $commands)
	[ "$what" != create ] || ab destroy "$(b three)" -y >/dev/null 2>&1 </dev/null
	words_of "$what" >"$T/words"
	tr '\n' '\0' <"$T/words" | xargs -0 "$TOOL" sigdfl agentbox </dev/null >/dev/null 2>&1 &
	shell=$!
	k=$(number 60)
	while [ "$k" -gt 0 ]; do
		k=$((k - 1))
		kill -0 "$shell" 2>/dev/null || break
		od -An -N1 /dev/urandom >/dev/null
	done
	client=$(children "$shell" | cut -d' ' -f1)
	victim=$client
	# Now and then a helper of it, and then itself.
	[ -z "$client" ] || [ "$(number 3)" -ne 0 ] || victim="$(children "$client") $client"
	# shellcheck disable=SC2086
	kill -KILL $victim 2>/dev/null
	wait "$shell" 2>/dev/null
	done_to="$done_to $what"
	run ab list -g --json
	[ "$status" -eq 0 ] || bad="$bad list after $what: $err"
	run in_box three cat /workspace/file
	case $status:$out in
	0:hello) continue ;;
	esac
	# Of a create or a destroy nothing may be left; then it is to be cleared.
	first=$err
	case $what in
	create | destroy)
		run ab prune -y
		[ "$status" -eq 0 ] || bad="$bad prune after $what: $err"
		run ab status "$(b three)"
		[ "$status" -eq 3 ] && continue
		run ab destroy "$(b three)" -y
		[ "$status" -eq 0 ] && continue
		;;
	esac
	bad="$bad exec after $what: $first $err
"
done
is "$bad" '' "$n commands killed at any moment"
diag "killed:$done_to"
run ab checkpoint ls --all
printf '%s\n' "$out" | grep -o "ct-$TAG-[0-9]*" | while read -r name; do
	ab checkpoint rm "$name" -y </dev/null
done >/dev/null 2>&1
ok 'prune' ab prune -y
suite_done
