#!/bin/sh
# SPDX-License-Identifier: MIT
# What a box may reach is what it was allowed to reach, whatever its root tries.
# The scripts in quotes run in the box, or as programs of their own.
# shellcheck disable=SC2016,SC2317
. "${0%/*}/net-functions.sh"

reach() # BOX HOST PORT WANT DESC
{
	is "$(net_get "$1" "$2" "$3" 2>&1)" "$4" "$who: $5"
}

udp() # BOX ADDRESS: what comes back from the echo port
{
	ab exec "$1" -n -- perl -MIO::Socket::INET -e '
		my $s = IO::Socket::INET->new(Proto => "udp", PeerAddr => $ARGV[0], PeerPort => 7);
		$SIG{ALRM} = sub { print "slow\n"; exit };
		alarm 5;
		my $b = "";
		my $ok = $s && $s->send("ping\n") && defined $s->recv($b, 100);
		print $ok ? $b : "denied\n";' "$2" 2>&1
}

# UDP to and fro, until there is an error: "refused" would be the answer of this machine.
flow() # BOX ADDRESS
{
	ab exec "$1" -n -- perl -MIO::Socket::INET -MErrno -e '
		my $s = IO::Socket::INET->new(Proto => "udp", PeerAddr => $ARGV[0], PeerPort => 7);
		$| = 1;
		alarm 30;
		for (;;) {
			my $b = "";
			my $ok = $s->send("ping\n") && defined $s->recv($b, 100);
			print $ok ? $b : $!{ECONNREFUSED} ? "refused\n" : "denied\n";
			last if !$ok;
			select(undef, undef, undef, 0.05);
		}' "$2"
}

# Everything that is never allowed.
closed() # BOX
{
	for a in 203.0.113.1 203.0.113.255 10.0.2.2 10.0.2.3 127.0.0.2 169.254.169.254 0.0.0.1 \
		224.0.0.1; do
		reach "$1" "$a" 8080 denied "$a: nobody answers"
	done
	is "$(udp "$1" 203.0.113.1)" denied "$who: nor by UDP"
	no "$who: nor by ping" ab exec "$1" -n -- ping -c 1 -W 2 203.0.113.1
	no "$who: nor over IPv6" ab exec "$1" -n -- perl -MSocket -e '
		my $to = pack_sockaddr_in6(80, inet_pton(AF_INET6, $ARGV[0]));
		socket(my $s, PF_INET6, SOCK_STREAM, 0) or exit 1;
		connect($s, $to) or exit 1;' fd00:113::2
}

# A box root that wants out.
hostile() # BOX
{
	for cmd in 'nft flush ruleset' 'nft delete table inet agentbox' 'ip link set tap0 down' \
		'ip route add 10.9.0.0/16 via 10.0.2.2' 'ip addr add 10.9.9.9/24 dev tap0' \
		'echo 1 >/proc/sys/net/ipv4/ip_forward' \
		'perl -MSocket -e "socket(my \$s, 17, SOCK_RAW, 0x300) or exit 1"' \
		'perl -MSocket -e "socket(my \$s, AF_INET, SOCK_RAW, 1) or exit 1"' \
		'perl -MSocket -e "socket(S, 2, 2, 0); setsockopt(S, 1, 36, 7) or exit 1"' \
		'unshare -r -n nft list table inet agentbox'; do
		no "$who: root of the box cannot: $cmd" \
			ab exec "$1" --user root -n -- sh -c "$cmd"
	done
}

everything()
{
	ok "$who: a box" ab create -w "$T/repo" -n all -y
	reach all 198.51.100.2 80 198.51.100.2 "an address is reached"
	reach all good.example 80 198.51.100.2 "a name too"
	is "$(udp all 198.51.100.2)" ping "$who: and UDP"
	ok "$who: and ping" ab exec all -n -- ping -c 1 -W 5 198.51.100.2
	closed all
	hostile all
	closed all
	ok "$who: a low port can be opened by anybody" ab exec all -n -- \
		perl -MIO::Socket::INET -e '
			exit !IO::Socket::INET->new(Listen => 1, LocalPort => 81)'
	# An address that this machine gets later is this machine as well.
	reach all 198.51.100.3 80 198.51.100.3 "somebody else's address is reached"
	flow all 198.51.100.3 >"$T/flow" 2>&1 &
	flow_pid=$!
	flows()
	{
		grep -q . "$T/flow"
	}
	ok "$who: and something flows there" wait_for 10 flows
	ip addr add 198.51.100.3/32 dev lo
	now_denied()
	{
		test "$(net_get all 198.51.100.3)" = denied
	}
	ok "$who: until it is this machine's" wait_for 10 now_denied
	wait "$flow_pid"
	is "$(sort -u "$T/flow" | tr '\n' ' ')" 'denied ping ' \
		"$who: and what flowed there does not reach this machine"
	ip addr del 198.51.100.3/32 dev lo
}

nothing()
{
	ok "$who: a box without egress" ab create -w "$T/repo" -n none --egress none -y
	: >"$T/dns.log"
	reach none 198.51.100.2 80 denied "no address"
	reach none good.example 80 denied "no name"
	is "$(cat "$T/dns.log")" "" "$who: and no question leaves"
	is "$(ab exec none -n -- sh -c 'ls /sys/class/net 2>/dev/null || echo lo')" lo \
		"$who: there is no interface"
}

numbers()
{
	ok "$who: a box with an address" ab create -w "$T/repo" -n some --egress 198.51.100.2/32 -y
	: >"$T/dns.log"
	reach some 198.51.100.2 80 198.51.100.2 "that address is reached"
	reach some 198.51.100.3 80 denied "another is not"
	is "$(udp some 198.51.100.3)" denied "$who: by UDP neither"
	no "$who: nor by ping" ab exec some -n -- ping -c 1 -W 2 198.51.100.3
	reach some good.example 80 denied "names are not asked for"
	closed some
	is "$(cat "$T/dns.log")" "" "$who: and no question leaves"
}

ask() # BOX NAME TYPE PROTO: the code of the answer and its addresses
{
	ab exec "$1" -n -- perl -MIO::Socket::INET -e '
		my ($name, $type, $proto, $to) = @ARGV;
		$SIG{ALRM} = sub { print "slow\n"; exit };
		alarm 8;
		my $q = pack("n6", 7, 0x100, 1, 0, 0, 0) .
		    join("", map { chr(length) . $_ } split /\./, $name) . pack("Cnn", 0, $type, 1);
		my $s = IO::Socket::INET->new(Proto => $proto, PeerAddr => $to, PeerPort => 53);
		unless ($s) { print "denied\n"; exit }
		my $r;
		if ($proto eq "tcp") {
			print $s pack("n", length $q) . $q;
			$s->flush;
			sysread $s, my $n, 2;
			sysread $s, $r, unpack "n", $n;
		} elsif (!$s->send($q) || !defined $s->recv($r, 2000)) {
			print "denied\n";
			exit;
		}
		my ($id, $flags, undef, $n) = unpack "n4", $r;
		my @addr = map { join ".", unpack "C4", substr $r, -4 } 1 .. $n;
		print join(" ", $flags & 15, $n, @addr), "\n";
		' "$2" "$3" "$4" "${5:-10.0.2.3}" 2>&1
}

names()
{
	ok "$who: a box with names" ab create -w "$T/repo" -n names -y \
		--egress 'good.example,alias.example,*.deep.example'
	: >"$T/dns.log"
	reach names 198.51.100.2 80 denied "no address without its name"
	reach names good.example 80 198.51.100.2 "a name is reached"
	reach names 198.51.100.2 80 198.51.100.2 "and its address then"
	reach names alias.example 80 198.51.100.2 "another name for it too"
	reach names www.deep.example 80 198.51.100.2 "and one below"
	reach names 198.51.100.3 80 denied "not another address"
	reach names other.example 80 denied "not another name"
	for n in host loop link; do
		reach names "$n.deep.example" 80 denied "an allowed name leads nowhere near"
		is "$(ask names "$n.deep.example" 1 udp)" "0 0" "$who: such an address is not told"
	done
	is "$(ask names good.example 1 tcp)" "0 1 198.51.100.2" "$who: by TCP as well"
	is "$(ask names good.example 1 udp 198.51.100.9)" "0 1 198.51.100.2" \
		"$who: whichever name server is asked"
	is "$(ask names good.example 28 udp)" "0 0" "$who: no IPv6 address"
	: >"$T/dns.log"
	is "$(ask names secret.other.example 1 udp)" "3 0" "$who: a name not allowed does not exist"
	is "$(ask names secret.other.example 16 udp 203.0.113.2)" "3 0" "$who: nor its text"
	is "$(ask names secret.other.example 16 tcp 203.0.113.2)" "3 0" "$who: nor by TCP"
	is "$(ask names secret.good.example 1 udp)" "3 0" "$who: nor a name below an exact one"
	is "$(ask names good.example 16 udp)" "5 0" "$who: texts of an allowed name neither"
	is "$(cat "$T/dns.log")" "" "$who: none of these questions has left"
	closed names
	hostile names
}

mended() # BOX: the helper dies, the next command has the network back
{
	net_kill
	gone()
	{
		test -z "$(net_left)"
	}
	ok "$who: what carries packets does not outlive its helper" wait_for 10 gone
	reach "$1" 198.51.100.2 80 198.51.100.2 "the next command has the network back"
}

all_cases()
{
	everything
	nothing
	numbers
	names
	mended all
	for b in all none some names; do
		ok "$who: $b is destroyed" ab destroy "$b" -y
	done
	nobody()
	{
		test -z "$(net_left)"
	}
	ok "$who: nothing of it is left" wait_for 10 nobody
}

make_repo "$T/repo"
net_world
who=root
all_cases
who=user
net_user
all_cases
done_testing
