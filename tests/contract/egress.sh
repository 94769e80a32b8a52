#!/bin/sh
# SPDX-License-Identifier: MIT
# Where a box may connect to is what was asked for, and this machine is never among it.
. "${0%/*}/functions.sh"

# A server on each address that this machine has.
listen() # ADDR
{
	"$TOOL" serve -o "$T/port.$1" "$1" 0 "secret of the host" </dev/null >/dev/null 2>&1 &
	eval "listener_$(echo "$1" | tr . _)=\$!"
	atexit kill "$!"
	wait_for 10 test -s "$T/port.$1"
}

addresses=$(ip -4 -o addr show 2>/dev/null | sed -n 's/.* inet \([0-9.]*\).*/\1/p' | sort -u)
: "${addresses:=127.0.0.1}"
for a in $addresses; do
	listen "$a" || diag "nothing listens on $a"
done
is "$("$TOOL" get "http://127.0.0.1:$(cat "$T/port.127.0.0.1")/hello")" 'secret of the host' \
	'this machine has a server'

run ab_create -n "$(b none)" --egress none
boxes="$boxes none"
case $status:$err in
0:*) pass 'a box without a network' ;;
*"not supported"* | *cannot*) not_offered ;;
*)
	tap_show_run ab_create --egress none
	give_up 'a box without a network'
	;;
esac
put_tool none || give_up 'the tool runs in the box'

reaches() # NAME ADDR PORT
{
	in_box "$1" "$BOX_TOOL" connect "$2" "$3" 3 </dev/null
}

host_is_hidden() # NAME
{
	for a in $addresses; do
		[ -s "$T/port.$a" ] || continue
		no "$1: this machine is not reached at $a" \
			reaches "$1" "$a" "$(cat "$T/port.$a")"
		unlike "$out" secret "$1: nor read"
	done
	gateways=$(in_box "$1" \
		sh -c 'while read -r a b c d; do echo "$b $c"; done </proc/net/route' \
		</dev/null 2>/dev/null | sed -n 's/^00000000 \(........\)$/\1/p' | sort -u)
	for g in $gateways; do
		g=$(echo "$g" | sed 's/\(..\)\(..\)\(..\)\(..\)/0x\4 0x\3 0x\2 0x\1/')
		# shellcheck disable=SC2086
		g=$(printf '%d.%d.%d.%d' $g)
		no "$1: nor through its gateway" \
			reaches "$1" "$g" "$(cat "$T/port.127.0.0.1")"
	done
	for a in 10.0.2.2 10.0.2.3 169.254.169.254 ::1 ::ffff:127.0.0.1 0.0.0.0; do
		no "$1: nor at $a" reaches "$1" "$a" "$(cat "$T/port.127.0.0.1")"
		unlike "$out" secret "$1: nor read there"
	done
}

host_is_hidden none
no 'none: no address outside' reaches none 192.0.2.1 80
no 'none: nor a real one' reaches none 1.1.1.1 443
no 'none: nor over IPv6' reaches none 2606:4700:4700::1111 443
no 'none: no name is looked up' in_box none "$BOX_TOOL" dns example.org
no 'none: nor at a server outside' in_box none "$BOX_TOOL" dns example.org 8.8.8.8
no 'none: nor by the library' in_box none getent ahostsv4 example.org
ok 'none: itself is reached' in_box none sh -c "$BOX_TOOL serve 127.0.0.1 8125 </dev/null \
	>/dev/null 2>&1 & i=0; until $BOX_TOOL connect 127.0.0.1 8125; do
		i=\$((i + 1)); [ \$i -lt 50 ] || exit 1; sleep 0.1; done"
ok 'none: exec works' in_box none true
ok 'none: stop' ab stop "$(b none)"
no 'none: it stays so after a start' reaches none 1.1.1.1 443
ok 'none: destroy' ab destroy "$(b none)" -y

# Everything but this machine.
run ab_create -n "$(b all)" --egress all
boxes="$boxes all" made=$status
if [ "$made" -ne 0 ]; then
	like "$err" '^agentbox: .*\(.*\)$' 'without a way out the reason and a remedy are said'
else
	put_tool all || fail 'the tool runs in the box'
	# Where that cannot be kept from a box it is at least said, and by nobody but such.
	if capable host_reached; then
		run ab doctor --provider "$P"
		like "$out" 'reach.*machine' 'all: that this machine is reached too is said'
	else
		host_is_hidden all
	fi
fi
peer=${AGENTBOX_CONTRACT_PEER-}
if [ -z "$peer" ]; then
	diag 'AGENTBOX_CONTRACT_PEER is not set: nothing outside is known to be there'
elif [ "$made" -eq 0 ]; then
	addr=${peer%:*} port=${peer##*:}
	ok 'all: the peer is reached' reaches all "$addr" "$port"
	new_box only --egress "$addr/32" && put_tool only || fail 'a box with one address'
	ok 'CIDR: it is reached' reaches only "$addr" "$port"
	no 'CIDR: another one is not' reaches only 1.1.1.1 443
	host_is_hidden only
	new_box other --egress 203.0.113.0/24 && put_tool other || fail 'a box with another network'
	no 'CIDR: the peer is not in it' reaches other "$addr" "$port"
	new_box names --egress nothing.example && put_tool names || fail 'a box with one name'
	no 'DOMAIN: the peer is not it' reaches names "$addr" "$port"
	no 'DOMAIN: no other name is looked up' in_box names "$BOX_TOOL" dns example.org
	host_is_hidden names
fi
# What cannot be enforced is refused, never ignored.
for list in 203.0.113.0/24 nothing.example; do
	run ab_create -n "$(b list)" --egress "$list"
	boxes="$boxes list"
	if [ "$status" -ne 0 ]; then
		like "$err" '^agentbox: .*\(.*\)$' "$list: the reason and a remedy are said"
	else
		put_tool list || fail 'the tool runs in the box'
		no "$list: what is not in it is not reached" reaches list 1.1.1.1 443
	fi
	ab destroy "$(b list)" -y >/dev/null 2>&1 </dev/null
done
for bad in 10.0.0.1/8 nonsense/99 all,none '*' 'a b' 300.1.1.1/8; do
	run ab_create -n "$(b bad)" --egress "$bad"
	[ "$status" -ne 0 ] && pass "refused: $bad" || fail "refused: $bad"
done
suite_done
