#!/bin/sh
# SPDX-License-Identifier: MIT
# A key of E2B: login asks the service, and nothing but secrets.env ever holds it.
. "${0%/*}/e2b-functions.sh"

e2b_emulator
key=e2b_$(printf '%040d' 8150)
tail=${key#e2b_000000000000}
unset E2B_API_KEY
cd "$T" || exit 99
make_repo "$T/repo"

run ab create --provider e2b -w "$T/repo" -n one -y
is "$status" 4 'nothing without a key'
like "$err" 'agentbox e2b login' 'how to get in is said'

login() # FILE
{
	ab -v e2b login --token-stdin <"$1"
}

# Every command line of the machine, as long as it goes on.
perl -e 'my ($what, $to, $stop) = @ARGV;
	my $rounds = 0;
	until (-e $stop) {
		for my $f (glob "/proc/[0-9]*/cmdline") {
			next if $f eq "/proc/$$/cmdline";
			open my $h, "<", $f or next;
			local $/;
			my $line = <$h> // next;
			next unless index($line, $what) >= 0;
			open my $o, ">>", $to or die;
			$line =~ tr/\0/ /;
			print $o "$line\n";
		}
		$rounds++;
		open my $o, ">", "$to.rounds" or die;
		print $o $rounds;
		close $o;
	}' "$tail" "$T/argv" "$T/stop" &
watcher=$!
wait_for 30 test -s "$T/argv.rounds"

umask 077
printf '%s' "$key" >"$T/key"
run login "$T/key"
is "$status" 0 'a key'
like "$out" "^logged in at e2b as $e2b \.\.\.8150\$" 'with the account'
printf '%s%s' "$out" "$err" >"$T/said"
ok 'doctor takes it' ab doctor --provider e2b
run ab -v create --provider e2b -w "$T/repo" -n one -y
is "$status" 0 'a box'
printf '%s%s' "$out" "$err" >>"$T/said"
run ab -v exec one -- env
is "$status" 0 'a command in it'
printf '%s%s' "$out" "$err" >>"$T/said"
run ab -v list -g --json
printf '%s%s' "$out" "$err" >>"$T/said"

# Odd answers.  The text of one echoes the key.
e2b_order '{"path": "/v2/sandboxes", "kind": "status", "status": 401}'
run login "$T/key"
is "$status" 4 'refused'
printf '%s%s' "$out" "$err" >>"$T/said"
e2b_mend
e2b_order '{"path": "/v2/sandboxes", "kind": "reset", "count": 1000}'
run login "$T/key"
like "$out" 'stored, not verified' 'cut off: kept, and said'
printf '%s%s' "$out" "$err" >>"$T/said"
e2b_mend

# A variable of a proxy is no way out for what is meant for this machine.
http_proxy=http://127.0.0.1:9 https_proxy=http://127.0.0.1:9
export http_proxy https_proxy
run login "$T/key"
unset http_proxy https_proxy
like "$out" '^logged in' 'loopback goes through no proxy'
E2B_API_URL=http://192.0.2.1:3000
run login "$T/key"
is "$status" 1 'a key does not travel in clear text'
like "$err" 'clear text.*https://' 'which is said'
E2B_API_URL=$e2b
printf 'e2b_nothing-of-the-kind' >"$T/bad"
run login "$T/bad"
is "$status" 4 'what is no key is refused'

ok 'the box goes' ab destroy one -y
: >"$T/stop"
wait "$watcher"
no 'it was in no command line' test -e "$T/argv"
is "$(find "$AGENTBOX_HOME" -type f ! -name secrets.env \
	-exec grep -laF "$tail" {} +)" '' 'in no file but one'
ok 'which has it' grep -qF "$key" "$AGENTBOX_HOME/secrets.env"
no 'it was never said' grep -aqF "$tail" "$T/said"
done_testing
