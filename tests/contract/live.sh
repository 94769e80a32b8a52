#!/bin/sh
# SPDX-License-Identifier: MIT
# agentbox-provider-check --live runs suites, adds up what they say, and shows what failed.
. "${0%/*}/../cli/functions.sh"

mkdir "$T/suites"
cat >"$T/suites/exec.sh" <<'END'
echo "# for $1 small=$AGENTBOX_CONTRACT_SMALL"
echo 'ok 1 - one'
echo 'not ok 2 - two'
echo '# got: this'
echo 'ok 3 - three # SKIP not here'
echo '1..3'
END
echo 'echo "1..0 # SKIP not offered by $1"' >"$T/suites/url.sh"
echo 'echo "ok 1 - begun"; exit 3' >"$T/suites/tty.sh"
AGENTBOX_CONTRACT_DIR=$T/suites
export AGENTBOX_CONTRACT_DIR
live()
{
	"$BUILD/tests/wrapper" agentbox-provider-check --live "$@"
}

code 1 'a failure is the exit code' live anywhere --small exec url
like "$out" '^suite +passed +failed +skipped +seconds$' 'a table'
like "$out" '^exec +1 +1 +1 +[0-9.]+$' 'with what a suite said'
like "$out" '^url +- +- +- +-$' 'and with what is not offered'
like "$out" '^exec: two$' 'the point that failed'
like "$out" '^    got: this$' 'and why'
code 1 'a suite that dies' live anywhere tty
like "$out" '^tty: the suite ended early \(exit code 3\)$' 'has failed'
code 0 'nothing offered is no failure' live anywhere url
code 1 'as JSON' live anywhere --json exec
printf '%s' "$out" | perl -MJSON::PP -e '
	$d = decode_json(join "", <>);
	exit !($d->{failed} == 1 && $d->{suites}[0]{failures}[0]{point} eq "two")' &&
	pass 'the same' || fail 'the same'
code 1 'a suite that is not there' live anywhere egress
code 2 'no suite of ours' live anywhere nonsense
code 2 'no provider' live
code 1 'a file that is no plugin' live "$T/suites/exec.sh" exec
done_testing
