#!/bin/sh
# SPDX-License-Identifier: MIT
# What carries packets is started by the first packet, which is not lost, and mended when it ends.
# shellcheck disable=SC2317
. "${0%/*}/net-functions.sh"

carriers() # pids of those of this test's boxes
{
	for p in $(net_left); do
		[ "$(cat "/proc/$p/comm" 2>/dev/null)" != slirp4netns ] || echo "$p"
	done
}

waiting() # pids of those that will become one
{
	for p in $(net_left); do
		case $(cat "/proc/$p/comm" 2>/dev/null) in
		agentbox-net)
			[ "$(sed -n 's/^PPid:\t//p' "/proc/$p/status")" = 1 ] || echo "$p"
			;;
		esac
	done
}

reach() # DESC
{
	is "$(net_get box good.example 2>"$T/err")" 198.51.100.2 "$who: $1"
}

no_carrier()
{
	[ -z "$(carriers)" ]
}

none_waiting()
{
	[ -z "$(waiting)" ]
}

nobody()
{
	[ -z "$(net_left)" ]
}

story()
{
	ok "$who: a box" ab create -w "$1" -n box -y
	ok "$who: whose command says nothing" ab exec box -n -- true
	is "$(carriers)" '' "$who: nothing carries packets"
	is "$(ab exec box -n -- cat /sys/class/net/tap0/carrier)" 1 \
		"$who: though there is a network"
	# A name server is asked again after five seconds, and net_get waits for no more.
	reach 'the first question is answered'
	is "$(carriers | wc -l)" 1 "$who: by one process"
	is "$(find "$AGENTBOX_HOME" -name frames.sock)" '' "$who: whose socket has no name"
	kill -9 "$(carriers)"
	ok "$who: when it is killed" wait_for 10 no_carrier
	ok "$who: the next command" ab exec box -n -- true
	reach 'mends it'
	ok "$who: stop" ab stop box
	is "$(carriers)" '' "$who: leaves none"
	ok "$who: start" ab start box
	ok "$who: and a command" ab exec box -n -- true
	is "$(waiting | wc -l)" 1 "$who: one waits"
	kill -9 "$(waiting)"
	ok "$who: killed while it waits" wait_for 10 none_waiting
	ok "$who: the next command again" ab exec box -n -- true
	reach 'mends it as well'
	ok "$who: destroy" ab destroy box -y
	ok "$who: nothing is left" wait_for 10 nobody
}

net_world
make_repo "$T/repo"
who=root
story "$T/repo"
who=user
mkdir "$T/user"
cp -r "$T/repo" "$T/user/repo"
net_user
story "$T/user/repo"
done_testing
