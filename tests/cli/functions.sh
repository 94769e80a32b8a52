# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034
# tests/cli/functions.sh: what every shell test stands on.  POSIX sh, speaks TAP.
#
#	#!/bin/sh
#	# SPDX-License-Identifier: MIT
#	# What this test proves, in one line.
#	. "${0%/*}/functions.sh"
#
#	make_repo "$T/repo"
#	ok "a box is made" ab create -w "$T/repo" -n one -y
#	code 7 "exec returns the command's code" ab exec one -- sh -c 'exit 7'
#	run ab exec one -- cat ./a.txt
#	is "$out" "alpha" "a file is there"
#	done_testing
#
# A test is an executable file named in tests/cli/Makefile.am.  By hand:
#	AGENTBOX_TEST_BUILDDIR=/path/to/build tests/cli/x.sh
#
# Given to the test
#	$T               a scratch directory of its own, removed at the end
#	$AGENTBOX_HOME   $T/home, so no test sees another's boxes; $HOME is $T/user
#	$SRC, $BUILD     the source and the build tree
#	git              reads no configuration but $HOME/.gitconfig (name, email, branch main)
#
# Running things
#	ab ARG...        the agentbox of the build tree, with its providers
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
#	box_id NAME               the id of a box by name
#	make_repo DIR             a git repository, two commits, with odd names, modes and links
#	make_dirty DIR            staged, unstaged, deleted, renamed, untracked and ignored files
#	tree_sum DIR              a sum over names, types, modes, owners, links, contents of a tree;
#	                          .git is included, the stat cache (.git/index) is taken as entries
#	atexit CMD...             run at the end, last one first, before $T is removed
#
# The end
#	done_testing     destroys the boxes of this home, checks that no row, process or mount is
#	                 left (one more test point when a home was made), prints the plan.
# When a test dies before that, the trap cleans up as well and the missing plan is the failure.

set -u
LC_ALL=C.UTF-8
export LC_ALL
unset CDPATH GREP_OPTIONS GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE 2>/dev/null || :

SRC=${AGENTBOX_TEST_SRCDIR:-$(cd "${0%/*}/../.." && pwd -P)} || exit 99
BUILD=${AGENTBOX_TEST_BUILDDIR:?is not set: the directory that configure was run in}
tap_n=0
tap_failed=0
tap_finished=
tap_atexit=
status=0 out='' err=''

T=$(mktemp -d "${TMPDIR:-/tmp}/abx-test.XXXXXX") || exit 99
T=$(cd "$T" && pwd -P) || exit 99
# No variable of the caller configures the agentbox under test.
for tap_var in $(env | sed -n 's/^\(AGENTBOX_[A-Z0-9_]*\)=.*/\1/p'); do
	case $tap_var in
	AGENTBOX_TEST_* | AGENTBOX_PROVIDER_PATH | AGENTBOX_LIBEXEC_PATH) ;;
	*) unset "$tap_var" ;;
	esac
done
AGENTBOX_HOME=$T/home
HOME=$T/user
GIT_CONFIG_NOSYSTEM=1
GIT_AUTHOR_DATE='2024-01-01T12:00:00+0000'
GIT_COMMITTER_DATE=$GIT_AUTHOR_DATE
GIT_TERMINAL_PROMPT=0
NO_COLOR=1
export AGENTBOX_HOME HOME GIT_CONFIG_NOSYSTEM GIT_AUTHOR_DATE GIT_COMMITTER_DATE \
	GIT_TERMINAL_PROMPT NO_COLOR
unset GIT_CONFIG_GLOBAL XDG_CONFIG_HOME XDG_STATE_HOME XDG_DATA_HOME 2>/dev/null || :
mkdir "$HOME" || exit 99
cat >"$HOME/.gitconfig" <<'END'
[user]
	name = Ada Example
	email = ada@example.org
[init]
	defaultBranch = main
[gc]
	auto = 0
END

diag()
{
	printf '%s\n' "$*" | sed 's/^/# /'
}

ab()
{
	"$BUILD/tests/wrapper" agentbox "$@"
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

box_id()
{
	ab status "$1" --json | grep -o '"id":[[:space:]]*"[^"]*"' | head -n 1 | cut -d'"' -f4
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

# Every name here has bitten somebody: blanks, quotes, a newline, a tab, a leading dash, glob
# and pathspec characters, a backslash, UTF-8, a byte that is no UTF-8.
make_repo()
(
	mkdir -p "$1" && cd "$1" || exit 1
	git init -q . || exit 1
	mkdir -p src/deep/er 'dir with blanks' .hidden || exit 1
	printf 'alpha\n' >a.txt
	printf 'int main(void)\n{\n\treturn 0;\n}\n' >src/main.c
	printf 'deep\n' >src/deep/er/file
	printf 'blank\n' >'dir with blanks/a file'
	printf 'quotes\n' >"it's \"quoted\""
	printf 'newline\n' >'new
line'
	printf 'tab\n' >"$(printf 'a\tb')"
	printf 'dash\n' >./-rf
	printf 'glob\n' >'star*[x]?'
	printf 'colon\n' >':(top)x'
	printf 'back\n' >'back\slash'
	printf 'utf8\n' >'grün-日本'
	printf 'latin1\n' >"$(printf 'latin\351')"
	printf 'hidden\n' >.hidden/.file
	: >empty
	head -c 70000 /dev/zero | tr '\0' '\001' >binary.bin
	printf '\000\001\r\n\377' >>binary.bin
	printf '#!/bin/sh\necho run\n' >run.sh
	chmod 755 run.sh
	ln -s a.txt link
	ln -s src/deep link-to-dir
	ln -s nowhere/at/all dangling
	printf '*.ignored\n' >.gitignore
	git add -A && git commit -qm 'First' || exit 1
	printf 'beta\n' >b.txt
	printf 'to be deleted\n' >doomed.txt
	printf 'to be renamed, long enough to be seen as such\n' >old-name.txt
	git add -A && git commit -qm 'Second' || exit 1
)

make_dirty()
(
	cd "$1" || exit 1
	printf 'staged\n' >staged.txt
	git add staged.txt || exit 1
	printf 'alpha, changed\n' >a.txt
	printf 'beta, staged\n' >b.txt
	git add b.txt || exit 1
	printf 'beta, staged, then changed again\n' >b.txt
	rm doomed.txt
	git mv old-name.txt 'new name.txt' || exit 1
	printf 'untracked\n' >'un tracked'
	mkdir -p untracked-dir
	printf 'inside\n' >untracked-dir/file
	printf 'ignored\n' >x.ignored
	chmod 755 src/main.c
)

tree_sum()
(
	cd "$1" || exit 1
	{
		find . -path ./.git/index -prune -o -printf '%p\001%y %m %U %G %l\0' |
			sort -z | tr '\0' '\n'
		find . -path ./.git/index -prune -o -type f -print0 | sort -z |
			xargs -0 -r sha256sum --
		[ ! -e .git ] || git --no-optional-locks ls-files -s -z | tr '\0' '\n'
	} | sha256sum | cut -d' ' -f1
)

# What still belongs to this home: boxes, processes that name it, mounts of it in any namespace
# that can be read.
tap_left_over()
{
	ab list -g --json 2>/dev/null | grep -F '"id"'
	grep -lF "$AGENTBOX_HOME" /proc/[0-9]*/mountinfo 2>/dev/null
	for tap_file in /proc/[0-9]*/cmdline; do
		tr '\0' ' ' 2>/dev/null <"$tap_file" | grep -F "$AGENTBOX_HOME" |
			sed "s,^,$tap_file: ,"
	done 2>/dev/null
	return 0
}

tap_nothing_left()
{
	[ -z "$(tap_left_over)" ]
}

tap_destroy_all()
{
	[ -e "$AGENTBOX_HOME" ] || return 0
	ab destroy --all -y --force </dev/null >"$T/destroy.log" 2>&1 &&
		ab prune -y </dev/null >>"$T/destroy.log" 2>&1
}

tap_end()
{
	trap - EXIT
	trap '' HUP INT TERM
	eval "$tap_atexit"
	[ -n "$tap_finished" ] || tap_destroy_all || :
	cd / || :
	chmod -R u+rwX "$T" 2>/dev/null
	rm -rf "$T"
}

done_testing()
{
	if [ -e "$AGENTBOX_HOME" ]; then
		tap_destroy_all || sed 's/^/# /' "$T/destroy.log"
		if wait_for 5 tap_nothing_left; then
			pass 'nothing is left of this home'
		else
			fail 'nothing is left of this home'
			diag "$(tap_left_over)"
		fi
	fi
	printf '1..%d\n' "$tap_n"
	tap_finished=1
	[ "$tap_failed" -eq 0 ]
	exit
}

trap tap_end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
