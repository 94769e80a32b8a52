# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154
# tests/cloud/functions.sh: an emulated cloud for a test, behind cli/functions.sh.
#
#	emulator_start e2b --no-network  in $T/emulated; its base URL is in $emulator_url; skip_all
#	                                 where there is none
#	emulator_stop                    what it printed is in $T/emulator.err; also at the end
#	emulator_ask GET log             the answer of what is below /_emulator, on stdout
#	emulator_ask POST faults '{"kind": "reset", "path": "/sandboxes/*", "count": 1}'
#	emulator_count POST '/v2/sandboxes'      requests so far of that method and path, where *
#	                                 stands for anything, the query left out
#	emulator_together POST '/v2/sandboxes'   the most of them that were under way at one time
#
# With AGENTBOX_TEST_OPENAPI=FILE every request of the test is checked at its end against that
# description of the service (more of them behind colons); tests/sdk/SERVICE/openapi.mjs says how.
#
# The program finds its files in the build directory, and nothing of it outlives the test.
emulator=
emulator_service=

# shellcheck source=../sdk/functions.sh
. "$SRC/tests/sdk/functions.sh"

emulator_start() # SERVICE [OPTION...]
{
	[ -x "$BUILD/tests/cloud/agentbox-cloud-emulator" ] ||
		skip_all 'configured without the cloud emulator'
	case " $* " in
	*' --light '*) ;;
	*)
		if ! is_root && ! unshare -Ur true 2>/dev/null; then
			skip_all 'neither root nor user namespaces'
		fi
		set -- "$@" --home "$T/emulated"
		;;
	esac
	emulator_service=$1
	if [ -n "${AGENTBOX_TEST_OPENAPI:-}" ]; then
		set -- "$@" --record "$T/emulator.record"
		tap_last=emulator_described
	fi
	: >"$T/emulator.out"
	"$BUILD/tests/wrapper" agentbox-cloud-emulator "$@" >"$T/emulator.out" \
		2>"$T/emulator.err" &
	emulator=$!
	atexit emulator_stop
	wait_for 30 test -s "$T/emulator.out"
	emulator_url=$(cat "$T/emulator.out")
	like "$emulator_url" '^http://127\.0\.0\.1:[0-9]+$' 'the emulator says where it is'
	# Nothing may go to the real one.
	[ -n "$emulator_url" ] || {
		diag "$(cat "$T/emulator.err")"
		done_testing
	}
}

emulator_stop()
{
	[ -n "$emulator" ] || return 0
	kill "$emulator" && wait "$emulator"
	set -- $?
	emulator=
	return "$1"
}

emulator_described()
{
	if sdk_packages "$emulator_service"; then
		run node "$sdk_dir/openapi.mjs" "$T/emulator.record" "$AGENTBOX_TEST_OPENAPI"
		is "$out" '' 'every request is one that the service describes'
		is "$status" 0 'and all of them were looked at'
	else
		fail 'every request is one that the service describes'
	fi
	diag "$err"
}

emulator_ask() # METHOD WHAT [JSON]
{
	perl -MIO::Socket::INET -e '
		my ($method, $url, $what, $body) = @ARGV;
		my ($at) = $url =~ m{//(.*)};
		my $s = IO::Socket::INET->new($at) or die "$at: $!\n";
		print $s "$method /_emulator/$what HTTP/1.1\r\nHost: $at\r\nConnection: close\r\n",
			"Content-Length: ", length($body // ""), "\r\n\r\n", $body // "";
		local $/;
		my ($head, $rest) = split /\r\n\r\n/, <$s>, 2;
		print $rest;
		$head =~ m{^HTTP/1.1 20} or die "$method $what: $rest\n";' \
		"$1" "$emulator_url" "$2" "${3-}"
}

# shellcheck disable=SC2016
emulator_requests='
	use JSON::PP;
	my ($method, $path) = map { my $p = quotemeta; $p =~ s/\\\*/.*/g; qr/^$p$/ } @ARGV;
	local $/;
	my @all = grep { (my $p = $_->{path}) =~ s/\?.*//s; $_->{method} =~ $method && $p =~ $path }
		@{decode_json(<STDIN>)->{requests}};'

emulator_count() # METHOD PATH
{
	# shellcheck disable=SC2016
	emulator_ask GET log | perl -e "$emulator_requests"'print scalar(@all), "\n"' "$1" "$2"
}

emulator_together() # METHOD PATH
{
	# shellcheck disable=SC2016
	emulator_ask GET log | perl -e "$emulator_requests"'
		my ($now, $most) = (0, 0);
		# What ends as another begins was not there together with it.
		for (sort { $a->[0] <=> $b->[0] || $a->[1] <=> $b->[1] }
			map { ([$_->{began_ms}, 1], [$_->{ended_ms} || 9e15, -1]) } @all) {
			$now += $_->[1];
			$most = $now if $now > $most;
		}
		print "$most\n"' "$1" "$2"
}
