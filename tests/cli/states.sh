#!/bin/sh
# SPDX-License-Identifier: MIT
# A box that does not run, whatever it is asked: it runs again and that is said, or one line says
# what it is, by its name, and what to do.
. "${0%/*}/functions.sh"

make_repo "$T/repo" >/dev/null
cd "$T/repo" || exit 99
providers=mock
if ab doctor --provider local >/dev/null 2>&1; then
	providers="$providers local"
fi

# Behind the back of agentbox: the mock keeps it in a file, a local box has a first process.
stop_behind()
{
	case $1 in
	mock)
		sed -i 's/"state":[^,]*,/"state": 6,/' \
			"$AGENTBOX_HOME"/providers/mock/sandboxes/*.json
		;;
	local)
		for file in "$AGENTBOX_HOME"/providers/local/store/boxes/*/run.json; do
			pid=$(sed 's/.*"pid": *\([0-9]*\).*/\1/' "$file")
			kill -9 "$pid" && wait_for 10 has_ended "$pid" || return 1
		done
		;;
	esac
}

has_ended()
{
	! kill -0 "$1" 2>/dev/null
}

# COMMAND... is done, and its only line on stderr is that box $box was $1.
says_was()
{
	was=$1 back=$2
	shift 2
	run ab "$@"
	is "$status" 0 "$p: $was: $*"
	is "$err" "agentbox: box 'box' was $was, and is running now (agentbox $back box)" 'is said'
	like "$(ab status box)" '^state +running$' 'and true'
}

for p in $providers; do
	ok "$p: a box" ab create --provider "$p" -n box -y
	case $p in
	local) ok 'a detached command' ab exec -d box -- echo said ;;
	esac
	for command in 'exec box -- true' 'shell box -- true' 'files box .' 'cp box:a.txt copy' \
		'cp a.txt box:copy' 'cp box:a.txt -' 'diff box' 'download box -y' 'url box 80' \
		'logs box --json'; do
		# Of one whose addresses are known beforehand nothing is started; see below.
		case "$p $command" in 'mock logs box --json' | 'mock url box 80') continue ;; esac
		ok "$p: stopped" ab stop box
		# shellcheck disable=SC2086 # words
		says_was stopped stop $command
	done
	if [ "$p" = mock ]; then
		ok "$p: stopped" ab stop box
		run ab url box 80
		like "$out$err" '^https://80-[^ ]*$' 'its url is said, and nothing else'
		is "$(ab status box | sed -n 's/^state  *//p')" stopped 'and nothing was started'
	fi
	ok "$p: it runs" ab start box
	ok "$p: paused" ab pause box
	says_was paused pause files box .
	[ "$p" = mock ] || {
		ok "$p: paused" ab pause box
		says_was paused pause url box 80
	}
	run ab exec box -- true
	is "$err" '' "$p: nothing is said of a box that runs"

	ok "$p: stopped" ab stop box
	one_line_error 1 "^agentbox: box 'box' is stopped \(agentbox start box\)$" \
		"$p: there is nothing to pause" ab pause box
	is "$(ab status box | sed -n 's/^state  *//p')" stopped 'and nothing was started'
	ok "$p: it runs" ab start box
	ok "$p: stopped by somebody else" stop_behind "$p"
	says_was stopped stop diff box
	ok "$p: stopped by somebody else" stop_behind "$p"
	one_line_error 1 "^agentbox: box 'box' is stopped \(agentbox start box\)$" \
		"$p: what was read of a stream is not read again" sh -c \
		'echo new | "$0" agentbox cp - box:new' "$BUILD/tests/wrapper"

	ab destroy box -y >/dev/null
	ok "$p: boxes to lose" ab create --provider "$p" -n lost --count 17 -y --egress none
	stop_behind "$p"
	ok "$p: gone" rm -rf "$AGENTBOX_HOME/providers/$p"
	n=0
	for command in 'files @ .' 'cp @:a.txt copy' 'cp a.txt @:copy' 'diff @' 'download @ -y' \
		'url @ 80' 'logs @' 'stats @' 'top @ -1' 'egress @ none' 'start @' 'stop @' \
		'pause @' 'resume @' 'fork @ -n other' 'checkpoint create @ --name point'; do
		n=$((n + 1))
		command=$(echo "$command" | sed "s/@/lost-$n/")
		# shellcheck disable=SC2086 # words
		one_line_error 3 "^agentbox: box 'lost-$n' is gone: .*\(agentbox destroy lost-$n " \
			"gone: $command" ab $command
	done
	one_line_error 125 "^agentbox: box 'lost-17' is gone: " "$p: gone: exec" \
		ab exec lost-17 -- true
	ok "$p: their records go" ab destroy --all -y
done
done_testing
