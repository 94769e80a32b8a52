# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2016,SC2317
# tests/cli/net-functions.sh: a whole internet for a test, in network namespaces of its own.
#
#	. "${0%/*}/net-functions.sh"     first thing, instead of functions.sh
#	net_world                        this machine is 203.0.113.1; out there are 198.51.100.2
#	                                 and .3, with the servers of net-world.pl; names come from
#	                                 203.0.113.2, which logs them in $T/dns.log
#	net_user                         from now on `ab` runs as an ordinary user with sub-ids
#	net_left, net_kill               pids of the helpers of this test's boxes; kill -9 them
#	net_get BOX HOST [PORT]          what HTTP says there, or "denied" or "slow"
#
# Packets are carried by $AGENTBOX_TEST_CARRIER (slirp4netns without it); with
# $AGENTBOX_TEST_USER_ONLY what is the same for root is left out.
#
# The test runs itself again in new mount and network namespaces: nothing of the machine's own
# network is used or changed, and no other test is disturbed.

if [ -z "${AGENTBOX_TEST_NET:-}" ]; then
	if [ "$(id -u)" != 0 ] || ! unshare -m -n true 2>/dev/null; then
		echo "1..0 # SKIP a box cannot have a network here: unshare"
		exit 0
	fi
	if ! (exec 3<>/dev/net/tun) 2>/dev/null; then
		echo "1..0 # SKIP a box cannot have a network here: /dev/net/tun"
		exit 0
	fi
	for tap_p in "${AGENTBOX_TEST_CARRIER:-slirp4netns}" nft ip; do
		if ! command -v "$tap_p" >/dev/null; then
			echo "1..0 # SKIP a box cannot have a network here: no $tap_p"
			exit 0
		fi
	done
	# Shared among themselves, as systemd makes all of a machine's mounts.
	AGENTBOX_TEST_NET=1 exec unshare -m -n sh -c 'mount --make-rshared / && exec "$@"' sh \
		"$0" "$@"
fi

# shellcheck source=functions.sh
. "${0%/*}/functions.sh"
if [ -n "${AGENTBOX_TEST_CARRIER:-}" ]; then
	AGENTBOX_LOCAL_NETWORK=$AGENTBOX_TEST_CARRIER
	export AGENTBOX_LOCAL_NETWORK
fi

# Holds a network namespace; its pid is $!.
net_hold()
{
	unshare -n sh -c 'echo >"$1"; exec sleep 3600' sh "$1" &
	wait_for 10 test -e "$1"
}

net_world()
{
	ip link set lo up
	# What carries packets sends pings as an ordinary process of its user.
	echo 0 2147483647 >/proc/sys/net/ipv4/ping_group_range
	net_hold "$T/world.up"
	net_world_pid=$!
	atexit kill "$net_world_pid"
	ip link add w0 type veth peer name w1 netns "$net_world_pid"
	ip addr add 203.0.113.1/24 dev w0
	ip -6 addr add fd00:113::1/64 dev w0 nodad
	ip link set w0 up
	nsenter -t "$net_world_pid" -n sh -ec '
		ip link set lo up
		ip addr add 203.0.113.2/24 dev w1
		ip -6 addr add fd00:113::2/64 dev w1 nodad
		ip addr add 198.51.100.2/32 dev lo
		ip addr add 198.51.100.3/32 dev lo
		ip addr add 169.254.169.254/32 dev lo
		ip link set w1 up'
	ip route add default via 203.0.113.2
	nsenter -t "$net_world_pid" -n perl "$SRC/tests/cli/net-world.pl" "$T/world.ready" \
		"$T/dns.log" 203.0.113.2 198.51.100.2 198.51.100.3 >"$T/world.err" 2>&1 &
	atexit kill $!
	wait_for 10 test -e "$T/world.ready" || diag "$(cat "$T/world.err")"
	: >"$T/dns.log"
	chmod 0666 "$T/dns.log"
	printf 'nameserver 203.0.113.2\n' >"$T/resolv.conf"
	mount --bind "$T/resolv.conf" "$(readlink -f /etc/resolv.conf)"
	# What this machine itself serves, which no box may reach.
	perl "$SRC/tests/cli/net-world.pl" "$T/host.ready" "$T/host-dns.log" 127.0.0.1 203.0.113.1 \
		>"$T/host.err" 2>&1 &
	atexit kill $!
	wait_for 10 test -e "$T/host.ready" || diag "$(cat "$T/host.err")"
}

net_user()
{
	printf 'root:100000:65536\n12345:200000:65536\n' >"$T/subid"
	mount --bind "$T/subid" /etc/subuid
	mount --bind "$T/subid" /etc/subgid
	printf 'tester:x:12345:12345::/:/bin/sh\n' | cat /etc/passwd - >"$T/passwd"
	mount --bind "$T/passwd" /etc/passwd
	mknod "$T/tun" c 10 200 && chmod 0666 "$T/tun" && mount --bind "$T/tun" /dev/net/tun
	chmod 0755 "$T"
	chown -R 12345:12345 "$T/user" "$T/repo"
	AGENTBOX_HOME=$T/home2
	mkdir -m 700 "$AGENTBOX_HOME"
	chown 12345:12345 "$AGENTBOX_HOME"
	ab()
	{
		setpriv --reuid 12345 --regid 12345 --clear-groups \
			"$BUILD/tests/wrapper" agentbox "$@"
	}
}

# The processes of this test's networks: they are in its mount namespace, and in nobody else's.
# What carries packets has one of its own, a sandbox, but the network namespace is the test's.
net_left()
{
	for d in /proc/[0-9]*; do
		case $(cat "$d/comm" 2>/dev/null) in
		agentbox-net)
			[ "$(readlink "$d/ns/mnt")" != "$(readlink /proc/self/ns/mnt)" ] ||
				echo "${d#/proc/}"
			;;
		slirp4netns | passt*)
			[ "$(readlink "$d/ns/net")" != "$(readlink /proc/self/ns/net)" ] ||
				echo "${d#/proc/}"
			;;
		esac
	done
}

net_kill()
{
	for net_pid in $(net_left); do
		[ "$(cat "/proc/$net_pid/comm" 2>/dev/null)" != agentbox-net ] || kill -9 "$net_pid"
	done
}

# The script runs in the box: quoted, so that its variables are its own.
net_get()
{
	ab exec "$1" -n -- perl -MIO::Socket::INET -e '
		$SIG{ALRM} = sub { print "slow\n"; exit };
		alarm 5;
		my $s = IO::Socket::INET->new(PeerAddr => $ARGV[0], PeerPort => $ARGV[1]);
		unless ($s) { print "denied\n"; exit }
		print $s "GET / HTTP/1.0\r\n\r\n";
		local $/;
		print((split /\r\n\r\n/, <$s> // "", 2)[1] // "nothing\n");' "$2" "${3:-80}"
}
