# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034
# tests/contract/tap.sh: a shell test that speaks TAP.  POSIX sh; sourced by the functions.sh
# of the folder that a test is in, and installed with the contract suites.
#
# Given to the test
#	$T               a scratch directory of its own; whoever sources this removes it
#
# Running things
#	run CMD...       run CMD with no input; set $status, $out, $err (trailing newlines cut),
#	                 bytes as they came in $T/run.out and $T/run.err; returns 0 always
#
# One test point each; what the command said is shown when the point fails
#	ok DESC CMD...            CMD succeeds
#	no DESC CMD...            CMD fails (anything but 0)
#	code N DESC CMD...        CMD exits with N
#	is GOT WANT DESC          two strings are equal
#	like STRING ERE DESC      a line of STRING matches the extended regular expression
#	unlike STRING ERE DESC    no line does
#	same FILE1 FILE2 DESC     two files are equal, byte for byte
#	one_line_error N ERE DESC CMD...   CMD exits with N, prints nothing on stdout and one line
#	                          on stderr, "agentbox: ...", which matches ERE
#	pass DESC / fail DESC     said by the test itself
#	skip DESC -- REASON       one point that cannot be judged here
#	skip_all REASON           the whole test cannot run here (ends it)
# A skip counts as a failure in CI unless tests/skips lists it with its reason.
#
# Helpers
#	wait_for SECONDS CMD...   poll until CMD succeeds, at most so long; never a bare sleep
#	diag TEXT                 a comment in the log
#	have PROGRAM...           true when all are installed
#	is_root                   true for uid 0
#	atexit CMD...             run by tap_run_atexit, last one first

set -u
LC_ALL=C.UTF-8
export LC_ALL
unset CDPATH GREP_OPTIONS GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE 2>/dev/null || :
tap_n=0
tap_failed=0
tap_finished=
tap_atexit=
tap_last= # a function that tests once more before the plan
status=0 out='' err=''
T=$(mktemp -d "${TMPDIR:-/tmp}/abx-test.XXXXXX") || exit 99
T=$(cd "$T" && pwd -P) || exit 99

diag()
{
	printf '%s\n' "$*" | sed 's/^/# /'
}

run()
{
	status=0
	"$@" >"$T/run.out" 2>"$T/run.err" </dev/null || status=$?
	# Command substitution drops NUL bytes with a warning of some shells: not ours to show.
	out=$(cat "$T/run.out") 2>/dev/null
	err=$(cat "$T/run.err") 2>/dev/null
	return 0
}

tap_point() # RESULT DESC
{
	tap_n=$((tap_n + 1))
	# TAP reads # as the start of a directive.
	printf '%s %d - %s\n' "$1" "$tap_n" "$(printf '%s' "$2" | tr '\n#' '  ')"
}

pass()
{
	tap_point ok "$1"
}

fail()
{
	tap_failed=$((tap_failed + 1))
	tap_point 'not ok' "$1"
}

tap_show_run() # CMD...
{
	diag "command: $*"
	diag "exit status: $status"
	head -c 4000 "$T/run.out" | sed 's/^/# stdout: /'
	head -c 4000 "$T/run.err" | sed 's/^/# stderr: /'
}

ok()
{
	tap_desc=$1
	shift
	run "$@"
	if [ "$status" -eq 0 ]; then
		pass "$tap_desc"
		return 0
	fi
	fail "$tap_desc"
	tap_show_run "$@"
	return 1
}

no()
{
	tap_desc=$1
	shift
	run "$@"
	if [ "$status" -ne 0 ]; then
		pass "$tap_desc"
		return 0
	fi
	fail "$tap_desc"
	tap_show_run "$@"
	return 1
}

code()
{
	tap_want=$1
	tap_desc=$2
	shift 2
	run "$@"
	if [ "$status" -eq "$tap_want" ]; then
		pass "$tap_desc"
		return 0
	fi
	fail "$tap_desc"
	diag "wanted exit status: $tap_want"
	tap_show_run "$@"
	return 1
}

is()
{
	if [ "$1" = "$2" ]; then
		pass "$3"
		return 0
	fi
	fail "$3"
	diag "got:    $1"
	diag "wanted: $2"
	return 1
}

like()
{
	if printf '%s\n' "$1" | grep -Eq -e "$2"; then
		pass "$3"
		return 0
	fi
	fail "$3"
	diag "text:    $1"
	diag "pattern: $2"
	return 1
}

unlike()
{
	if ! printf '%s\n' "$1" | grep -Eq -e "$2"; then
		pass "$3"
		return 0
	fi
	fail "$3"
	diag "text:    $1"
	diag "must not match: $2"
	return 1
}

same()
{
	if cmp -s "$1" "$2"; then
		pass "$3"
		return 0
	fi
	fail "$3"
	diag "$(cmp "$1" "$2" 2>&1)"
	return 1
}

one_line_error()
{
	tap_want=$1
	tap_ere=$2
	tap_desc=$3
	shift 3
	run "$@"
	if [ "$status" -eq "$tap_want" ] && [ ! -s "$T/run.out" ] &&
		[ "$(wc -l <"$T/run.err")" -eq 1 ] &&
		printf '%s\n' "$err" | grep -q '^agentbox: ' &&
		printf '%s\n' "$err" | grep -Eq -e "$tap_ere"; then
		pass "$tap_desc"
		return 0
	fi
	fail "$tap_desc"
	diag "wanted: exit status $tap_want, one line on stderr that matches $tap_ere"
	tap_show_run "$@"
	return 1
}

skip()
{
	tap_n=$((tap_n + 1))
	printf 'ok %d - %s # SKIP %s\n' "$tap_n" "$1" "$3"
}

skip_all()
{
	printf '1..0 # SKIP %s\n' "$*"
	tap_finished=1
	exit 0
}

wait_for()
{
	tap_until=$(($(date +%s) + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$(date +%s)" -lt "$tap_until" ] || return 1
		sleep 0.05
	done
}

have()
{
	for tap_prog in "$@"; do
		command -v "$tap_prog" >/dev/null 2>&1 || return 1
	done
}

is_root()
{
	[ "$(id -u)" -eq 0 ]
}

atexit()
{
	# Quoted word by word, so that it runs later as it was given.
	tap_cmd=
	for tap_arg in "$@"; do
		tap_cmd="$tap_cmd '$(printf '%s' "$tap_arg" | sed "s/'/'\\\\''/g")'"
	done
	tap_atexit="$tap_cmd
$tap_atexit"
}

tap_run_atexit()
{
	eval "$tap_atexit"
}

tap_remove_scratch()
{
	cd / || :
	chmod -R u+rwX "$T" 2>/dev/null
	rm -rf "$T"
}

tap_plan()
{
	[ -z "$tap_last" ] || "$tap_last"
	printf '1..%d\n' "$tap_n"
	tap_finished=1
	[ "$tap_failed" -eq 0 ]
	exit
}
