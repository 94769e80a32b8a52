#!/bin/sh
# SPDX-License-Identifier: MIT
# A port of a box is a loopback port of this machine, and bytes pass it untouched.
# The scripts in quotes run in the box, or as programs of their own.
# shellcheck disable=SC2016,SC2317
. "${0%/*}/net-functions.sh"

drive() # OPERATION SANDBOX ARG...
{
	if [ "$who" = root ]; then
		AGENTBOX_TEST_BUILDDIR="$BUILD" "$BUILD/tests/unit/local-drive" \
			"$AGENTBOX_HOME/providers/local" "$@"
	else
		AGENTBOX_TEST_BUILDDIR="$BUILD" setpriv --reuid 12345 --regid 12345 --clear-groups \
			"$BUILD/tests/unit/local-drive" "$AGENTBOX_HOME/providers/local" "$@"
	fi
}

sandbox() # NAME
{
	ab status "$1" --json | grep -o '"sandbox_id":[[:space:]]*"[^"]*"' | cut -d'"' -f4
}

# A server in the box: says which peer it sees and echoes, each direction on its own.  After the
# line "upgrade" it speaks first; at the end of input it says "end" and closes.
serve() # BOX ADDRESS PORT
{
	ab exec "$1" -d -- perl -MIO::Socket::IP -e '
		$SIG{CHLD} = "IGNORE";
		my $l = IO::Socket::IP->new(LocalHost => $ARGV[0], LocalPort => $ARGV[1],
			Listen => 50, ReuseAddr => 1, GetAddrInfoFlags => 0) or die;
		while (my $c = $l->accept) {
			if (fork == 0) {
				$c->autoflush(1);
				my $first = "";
				my $byte;
				$first .= $byte while $first !~ /\n$/ && sysread $c, $byte, 1;
				print $c "pushed\n" if $first eq "upgrade\n";
				print $c $first;
				while (sysread $c, my $b, 65536) { print $c $b }
				print $c "end\n";
				exit;
			}
			close $c;
		}' "$2" "$3" >/dev/null
}

# A client here: sends its input, half-closes, prints what comes back to its end.
talk() # PORT
{
	perl -MIO::Socket::INET -e '
		$SIG{ALRM} = sub { print "slow\n"; exit };
		alarm 20;
		my $s = IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => $ARGV[0]);
		unless ($s) { print "refused\n"; exit }
		if (fork == 0) {
			while (sysread STDIN, my $b, 65536) { print $s $b }
			$s->flush;
			shutdown $s, 1;
			exit;
		}
		while (sysread $s, my $b, 65536) { print $b }' "$1"
}

port_of() # URL
{
	printf '%s\n' "${1##*:}"
}

answers()
{
	test "$(echo hi | talk "$1")" = "$(printf 'hi\nend')"
}

forwarded() # BOX
{
	id=$(sandbox "$1")
	for listen in 127.0.0.1:3001 ::1:3002 0.0.0.0:3003 127.0.0.1:81; do
		serve "$1" "${listen%:*}" "${listen##*:}"
		url=$(drive url "$id" "${listen##*:}")
		like "$url" '^http://127\.0\.0\.1:[0-9]+$' "$who: a port of the box has a url"
		ok "$who: a server on $listen is reached there" \
			wait_for 10 answers "$(port_of "$url")"
	done
	p=$(port_of "$(drive url "$id" 3001)")
	is "$(printf 'upgrade\nmore\n' | talk "$p")" "$(printf 'pushed\nupgrade\nmore\nend')" \
		"$who: the server may speak first, and input may end before output"
	head -c 30000000 /dev/urandom >"$T/big"
	{ echo big; cat "$T/big"; } >"$T/sent"
	talk "$p" <"$T/sent" >"$T/got"
	{ cat "$T/sent"; echo end; } >"$T/wanted"
	same "$T/wanted" "$T/got" "$who: 30 MB there and back, byte for byte"
	is "$(port_of "$(drive url "$id" 3001)")" "$p" "$who: asked again, the same port"
	no "$who: nobody else's address leads there" perl -MIO::Socket::INET -e '
		exit !IO::Socket::INET->new(PeerAddr => "203.0.113.1", PeerPort => $ARGV[0])' "$p"
	is "$(echo hi | talk "$(port_of "$(drive url "$id" 3999)")")" "" \
		"$who: where nobody listens, the connection ends"
}

restarted() # BOX
{
	id=$(sandbox "$1")
	p=$(port_of "$(drive url "$id" 3001)")
	ok "$who: it stops" ab stop "$1"
	is "$(echo hi | talk "$p")" refused "$who: a stopped box has no open port"
	ab start "$1" >/dev/null
	serve "$1" 127.0.0.1 3001
	ok "$who: after a start the port is open again" wait_for 10 answers "$p"
	net_kill
	ok "$who: a helper that was killed" test -z "$(echo hi | talk "$p" | grep hi)"
	ab exec "$1" -n -- true
	ok "$who: comes back with the next command, and its ports" wait_for 10 answers "$p"
	ok "$who: it stops" ab stop "$1"
	perl -MIO::Socket::INET -e '
		my $l = IO::Socket::INET->new(LocalAddr => "127.0.0.1", LocalPort => $ARGV[0],
			Listen => 1, ReuseAddr => 1) or die "$!\n";
		open my $f, ">", $ARGV[1];
		sleep 60' "$p" "$T/taken.$who.$1" &
	taken=$!
	wait_for 10 test -e "$T/taken.$who.$1"
	ab start "$1" >/dev/null
	serve "$1" 127.0.0.1 3001
	q=$(port_of "$(drive url "$id" 3001)")
	no "$who: a port that somebody took is not waited for" test "$p" = "$q"
	ok "$who: another one serves" wait_for 10 answers "$q"
	kill "$taken"
}

changed() # BOX, which may reach everything
{
	id=$(sandbox "$1")
	is "$(net_get "$1" 198.51.100.3)" 198.51.100.3 "$who: open at first"
	ok "$who: narrower while it runs" drive egress "$id" good.example
	is "$(net_get "$1" 198.51.100.3)" denied "$who: what is not on the list is closed"
	is "$(net_get "$1" good.example)" 198.51.100.2 "$who: what is on it is open"
	ok "$who: it stops" ab stop "$1"
	ab start "$1" >/dev/null
	is "$(net_get "$1" 198.51.100.3)" denied "$who: and stays so after a start"
	is "$(net_get "$1" good.example)" 198.51.100.2 "$who: with its names"
	ok "$who: nothing at all" drive egress "$id" none
	is "$(net_get "$1" good.example)" denied "$who: is nothing"
	ok "$who: everything again" drive egress "$id" all
	is "$(net_get "$1" 198.51.100.3)" 198.51.100.3 "$who: is everything"
	no "$who: nonsense is refused" drive egress "$id" 'a b'
	is "$(net_get "$1" 198.51.100.3)" 198.51.100.3 "$who: and changes nothing"
}

cut_off() # BOX: a connection that the new rules would not allow ends
{
	id=$(sandbox "$1")
	mkfifo "$T/held.$who"
	chmod 0666 "$T/held.$who"
	ab exec "$1" -n -- perl -MIO::Socket::INET -e '
		$| = 1;
		my $s = IO::Socket::INET->new(PeerAddr => "198.51.100.3", PeerPort => 7) or die;
		for (1 .. 2000) {
			syswrite($s, "x") && sysread($s, my $b, 1) or last;
			print "up\n" if $_ == 1;
			select undef, undef, undef, .01;
		}
		print "cut\n"' >"$T/held.$who" 2>&1 &
	exec 4<"$T/held.$who"
	read -r line <&4
	is "$line" up "$who: a connection"
	drive egress "$id" 198.51.100.2
	read -r line <&4
	is "$line" cut "$who: ends when the rules no longer allow it"
	exec 4<&-
	drive egress "$id" all
}

host_mode()
{
	like "$(ab create -w "$T/repo" -n hosted --egress host -y 2>&1)" \
		"shares this machine's network" "$who: a box in the host's network, and it is said"
	is "$(net_get hosted 203.0.113.1)" 203.0.113.1 "$who: reaches the host"
	is "$(net_get hosted good.example)" 198.51.100.2 "$who: and what the host reaches"
	is "$(drive url "$(sandbox hosted)" 8080)" http://127.0.0.1:8080 "$who: its url is the port"
	no "$who: it cannot change it" ab exec hosted --user root -n -- ip link set lo down
	no "$who: and keeps it" drive egress "$(sandbox hosted)" none
	ok "$who: destroyed" ab destroy hosted -y
}

all_cases()
{
	ok "$who: a box" ab create -w "$T/repo" -n one -y
	forwarded one
	restarted one
	changed one
	cut_off one
	ok "$who: a box without egress" ab create -w "$T/repo" -n two --egress none -y
	forwarded two
	restarted two
	ok "$who: gets it later" drive egress "$(sandbox two)" 198.51.100.2
	is "$(net_get two 198.51.100.2)" 198.51.100.2 "$who: and has it"
	is "$(net_get two 198.51.100.3)" denied "$who: no more than that"
	ok "$who: a box with a port" ab create -w "$T/repo" -n three --port 4444 -y
	serve three 127.0.0.1 4444
	ok "$who: has it from the start" wait_for 10 answers 4444
	host_mode
	for b in one two three; do
		ok "$who: $b is destroyed" ab destroy "$b" -y
	done
}

make_repo "$T/repo"
net_world
who=root
[ -n "${AGENTBOX_TEST_USER_ONLY:-}" ] || all_cases
who=user
net_user
all_cases
done_testing
