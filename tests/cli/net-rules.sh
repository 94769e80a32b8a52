#!/bin/sh
# SPDX-License-Identifier: MIT
# The rules that a box gets are these, as nft lists what the kernel has.
. "${0%/*}/net-functions.sh"

# The table of the only box there is; what differs from run to run has a name instead.
rules()
{
	for rules_pid in $(net_left); do
		[ "$(cat "/proc/$rules_pid/comm")" = agentbox-net ] || continue
		nsenter -t "$rules_pid" -n nft list table inet agentbox | sed -E \
			-e 's/ct mark (set )?0x[0-9a-f]+/ct mark \1GENERATION/' \
			-e 's/meta mark 0x[0-9a-f]+/meta mark MARK/' \
			-e 's/(dport |to :)[0-9]{4,}/\1PORT/' \
			-e 's/timeout [^ ]* expires [^ ,]+/for a while/'
	done
}

part() # KIND NAME: a set or chain, without its first and last line
{
	rules | sed -n "/^	$1 $2 {/,/^	}/p" | sed -e '1d' -e '$d' -e 's/^		//'
}

elements() # SET
{
	part set "$1" | tr -s '\n\t ' ' ' | sed -n 's/.*elements = { *\([^}]*\) }.*/\1/p'
}

begins='type filter hook output priority filter; policy drop;
oifname "lo" accept'
goes_on='ip daddr @host goto no
ct state established,related ct mark GENERATION accept
meta nfproto ipv6 goto no
oifname != "tap0" drop'
redirects='type nat hook output priority -100; policy accept;
oifname "lo" return'
lookups='ip daddr @link_allowed goto ok
ip daddr @never goto no
ip daddr @denied goto no'

# What only slirp4netns passes on.
tcp() # LINE
{
	[ "${AGENTBOX_TEST_CARRIER:-slirp4netns}" != slirp4netns ] || printf '\n%s' "$1"
}

# The same for every box.
always()
{
	is "$(part chain ok)" 'ct mark set GENERATION accept' 'what is allowed is marked'
	is "$(part chain no)" 'meta l4proto tcp ct state established reject with tcp reset
reject with icmpx admin-prohibited' 'what is not fails at once'
	is "$(part chain input)" 'type filter hook input priority filter; policy drop;
iifname "lo" accept
meta nfproto ipv4 ct state established,related accept' 'nothing comes in'
	is "$(part chain forward)" 'type filter hook forward priority filter; policy drop;' \
		'nothing goes through'
	is "$(elements host)" '127.0.0.0/8, 203.0.113.1, 203.0.113.255' "the host's addresses"
	is "$(elements never)" '0.0.0.0/8, 10.0.2.0/24, 127.0.0.0/8, 169.254.0.0/16, 224.0.0.0/3' \
		'what is never reached'
}

everything()
{
	is "$(part chain output)" "$begins
$goes_on
ip daddr 10.0.2.3 udp dport 53 goto ok$(tcp 'ip daddr 10.0.2.3 tcp dport 53 goto ok')
$lookups
goto ok" 'all: what leaves'
	is "$(part chain names)" "$redirects" 'all: no redirects'
}

numbers()
{
	ok 'a list of numbers' ab egress one \
		1.2.3.0/24,1.2.4.0/25,1.2.3.7,169.254.169.254,10.0.0.0/8
	is "$(part chain output)" "$begins
$goes_on
udp dport 53 goto no
tcp dport 53 goto no
$lookups
ip daddr @allowed goto ok
ip daddr @named goto ok
goto no" 'numbers: what leaves'
	is "$(part chain names)" "$redirects" 'numbers: no redirects'
	is "$(elements allowed)" '1.2.3.0-1.2.4.127, 10.0.0.0/8, 169.254.169.254' \
		'ranges that touch or overlap become one'
	is "$(elements link_allowed)" 169.254.169.254 'link-local ones are a set of their own'
}

names()
{
	ok 'a list of names' ab egress one good.example
	is "$(part chain output)" "$begins
ip daddr 127.0.0.1 udp dport PORT accept
meta mark MARK ip daddr 10.0.2.3 udp dport 53 accept
ip daddr 127.0.0.1 tcp dport PORT accept$(tcp \
	'meta mark MARK ip daddr 10.0.2.3 tcp dport 53 accept')
$goes_on
udp dport 53 goto no
tcp dport 53 goto no
$lookups
ip daddr @allowed goto ok
ip daddr @named goto ok
goto no" 'names: what leaves'
	is "$(part chain names)" "$redirects
meta mark MARK return
meta nfproto ipv4 udp dport 53 redirect to :PORT
meta nfproto ipv4 tcp dport 53 redirect to :PORT" 'names: questions go to us'
	is "$(elements allowed)$(elements named)" '' 'names: nothing is open yet'
	is "$(net_get one good.example)" 198.51.100.2 'a name is reached'
	is "$(elements named)" '198.51.100.2 for a while' 'and its address is known for a while'
	is "$(net_get one good.example)" 198.51.100.2 'it is reached again'
	is "$(elements named)" '198.51.100.2 for a while' 'and is there once'
}

# An address that the host gets is closed without anything else being touched.
new_address()
{
	ip addr add 198.51.100.77/32 dev lo
	closed()
	{
		[ "$(elements host)" = \
			'127.0.0.0/8, 198.51.100.77, 203.0.113.1, 203.0.113.255' ]
	}
	ok 'a new address of the host is closed' wait_for 10 closed
	is "$(elements named)" '198.51.100.2 for a while' 'what was learned is known still'
	ip addr del 198.51.100.77/32 dev lo
}

# Another network where the host uses the usual one.
elsewhere()
{
	ip route add 10.0.2.0/24 via 203.0.113.2
	net_kill
	ok 'all again, with the usual network in use' ab egress one all
	is "$(net_get one good.example)" 198.51.100.2 'a name is reached'
	is "$(part chain names)" "$redirects
ip daddr 10.0.2.3 udp dport 53 dnat ip to 10.90.2.3$(tcp \
	'ip daddr 10.0.2.3 tcp dport 53 dnat ip to 10.90.2.3')" \
		'the resolver is found at its usual address'
}

make_repo "$T/repo"
net_world
mounts=$(cut -d' ' -f 4- /proc/self/mountinfo)
ok 'a box' ab create -w "$T/repo" -n one -y
ok 'whose network is up' ab exec one -n -- true
is "$(cut -d' ' -f 4- /proc/self/mountinfo)" "$mounts" "none of the machine's mounts has gone"
always
everything
numbers
names
new_address
elsewhere

is "$(elements never)" '0.0.0.0/8, 10.90.2.0/24, 127.0.0.0/8, 169.254.0.0/16, 224.0.0.0/3' \
	'its own network is never elsewhere'
ok 'destroyed' ab destroy one -y
done_testing
