# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034
# tests/cli/functions.sh: what every shell test stands on.  POSIX sh, speaks TAP.  Points, skips,
# running and waiting are in tests/contract/tap.sh, whose head is their manual; here is what a test
# of the built tree needs besides.
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
# Helpers
#	ab ARG...                 the agentbox of the build tree, with its providers
#	killed_at N CMD...        agentbox CMD dies after its N-th write to the database; else false
#	memory_limit KIB          so much; for a build with sanitizers, which take their own, more
#	box_id NAME               the id of a box by name
#	make_repo DIR             a git repository, two commits, with odd names, modes and links
#	make_dirty DIR            staged, unstaged, deleted, renamed, untracked and ignored files
#	tree_sum DIR              a sum over names, types, modes, owners, links, contents of a tree;
#	                          .git is included, the stat cache (.git/index) is taken as entries
#	with_local NAME...        $providers: those, and local where it works on this machine
#	atexit CMD...             run at the end, last one first, before $T is removed
#
# The end
#	done_testing     destroys the boxes of this home, checks that no row, process or mount is
#	                 left (one more test point when a home was made), prints the plan.
# When a test dies before that, the trap cleans up as well and the missing plan is the failure.

# shellcheck source=../contract/tap.sh
. "${0%/*}/../contract/tap.sh"

SRC=${AGENTBOX_TEST_SRCDIR:-$(cd "${0%/*}/../.." && pwd -P)} || exit 99
BUILD=${AGENTBOX_TEST_BUILDDIR:?is not set: the directory that configure was run in}
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
# Not everybody may give a box a network everywhere.
if ! (exec 3<>/dev/net/tun) 2>/dev/null; then
	AGENTBOX_EGRESS=none
	export AGENTBOX_EGRESS
fi
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

ab()
{
	"$BUILD/tests/wrapper" agentbox "$@"
}

with_local()
{
	providers=$*
	if ab doctor --provider local >/dev/null 2>&1; then
		providers="$providers local"
	fi
}

killed_at() # N CMD...
{
	n=$1
	shift
	status=0
	KILL_AT_WRITE=$n LD_PRELOAD=$BUILD/tests/preload/.libs/kill-at-write.so \
		"$BUILD/tests/wrapper" agentbox "$@" \
		</dev/null >"$T/run.out" 2>"$T/run.err" || status=$?
	[ "$status" -eq 137 ]
}

memory_limit() # KiB
{
	if grep -q -e '-fsanitize' "$BUILD/config.status"; then
		echo 10000000
	else
		echo "$1"
	fi
}

box_id()
{
	ab status "$1" --json | grep -o '"id":[[:space:]]*"[^"]*"' | head -n 1 | cut -d'"' -f4
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
	tap_run_atexit
	[ -n "$tap_finished" ] || tap_destroy_all || :
	tap_remove_scratch
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
	tap_plan
}

trap tap_end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
