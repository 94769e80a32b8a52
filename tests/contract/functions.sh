# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034
# tests/contract/functions.sh: what the contract suites stand on.
#
#	#!/bin/sh
#	# SPDX-License-Identifier: MIT
#	# What this suite proves, in one line.
#	. "${0%/*}/functions.sh"
#
#	new_box one || give_up 'a box is made'
#	code 7 'the code of a command' in_box one sh -c 'exit 7'
#	suite_done
#
# A suite is run as SUITE.sh [PROVIDER] (local without it), in the tree or installed; one line
# each is said in TAP.  agentbox-provider-check --live runs them all and prints a table.
#
#	AGENTBOX_CONTRACT_CREATE   more arguments of create, separated by blanks
#	AGENTBOX_CONTRACT_HOME     the AGENTBOX_HOME to use; without it an empty one, and HOME too
#	AGENTBOX_CONTRACT_SMALL=1  less data and fewer processes
#	AGENTBOX_CONTRACT_TOOL     agentbox-contract-tool
#	AGENTBOX_CONTRACT_PEER     ADDR:PORT of a TCP server outside of the machine (egress)
#	AGENTBOX_CONTRACT_PARTS    which parts of the suite of seeding, separated by blanks
#	AGENTBOX_CONTRACT_ENV      variables that each command has there, as the provider's manual
#	                           says, separated by blanks (exec)
#	AGENTBOX_CONTRACT_KEEP=1   leave the boxes there, to look at
#
# Given to the suite, besides what tap.sh says
#	$P                  the provider
#	$TOOL               agentbox-contract-tool, here (tool.h is its manual)
#	$TAG                a word of this run: no process of another one has it
#	agentbox, ab        the program under test
#	b NAME              the name that NAME has in the install: no other box is ever touched
#	new_box NAME ARG... make it, over $T/project; ab_create is the same without the name
#	in_box NAME WORD... exec in it
#	here_in_box NAME ID... exec with options: here_in_box NAME --user root -- id
#	put_tool NAME       the tool into the box; it is then $BOX_TOOL there
#	offers OP           true when the provider has the operation itself
#	capable CAP         true when it says CAP of itself
#	size FULL SMALL     one of the two
#	running NAME WORD   how many processes in the box have WORD in their command line
#	none_running, some_running NAME WORD
#	give_up DESC        fail this point and end: nothing else can be judged
#	not_offered         the whole suite is about what the provider does not offer
#	suite_done          destroy the boxes of this run, look that nothing is left, end

# In the tree, the programs and providers that were just built.
if [ -z "${AGENTBOX_CONTRACT_TOOL-}" ] && [ -n "${AGENTBOX_TEST_BUILDDIR-}" ]; then
	exec "$AGENTBOX_TEST_BUILDDIR/tests/wrapper" /bin/sh "$0" "$@"
fi
TOOL=${AGENTBOX_CONTRACT_TOOL:?is not set: the path of agentbox-contract-tool}

# shellcheck source=tap.sh
. "${0%/*}/tap.sh"

P=${1:-local}
TAG=$(od -An -N4 -tx4 /dev/urandom | tr -d ' ')
BOX_TOOL=/tmp/abx-tool-$TAG
boxes=
case ${P##*/} in
"$P") name_of_provider=$P ;;
*) name_of_provider=${P##*/agentbox-} name_of_provider=${name_of_provider%.so} ;;
esac
if [ -n "${AGENTBOX_CONTRACT_HOME-}" ]; then
	AGENTBOX_HOME=$AGENTBOX_CONTRACT_HOME
else
	AGENTBOX_HOME=$T/home
	HOME=$T/user
	mkdir "$HOME"
	unset XDG_CONFIG_HOME XDG_STATE_HOME XDG_DATA_HOME 2>/dev/null || :
fi
GIT_CONFIG_NOSYSTEM=1
GIT_CONFIG_GLOBAL=/dev/null
GIT_AUTHOR_NAME='Ada Example'
GIT_AUTHOR_EMAIL=ada@example.org
GIT_COMMITTER_NAME=$GIT_AUTHOR_NAME
GIT_COMMITTER_EMAIL=$GIT_AUTHOR_EMAIL
GIT_TERMINAL_PROMPT=0
NO_COLOR=1
export AGENTBOX_HOME HOME GIT_CONFIG_NOSYSTEM GIT_CONFIG_GLOBAL GIT_AUTHOR_NAME \
	GIT_AUTHOR_EMAIL GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL GIT_TERMINAL_PROMPT NO_COLOR
mkdir "$T/project"
printf 'hello\n' >"$T/project/file"

ab()
{
	agentbox "$@"
}

b()
{
	printf 'ct-%s-%s' "$TAG" "$1"
}

size()
{
	[ -n "${AGENTBOX_CONTRACT_SMALL-}" ] && echo "$2" || echo "$1"
}

ab_create()
{
	# shellcheck disable=SC2086
	ab create --provider "$P" -w "$T/project" -y ${AGENTBOX_CONTRACT_CREATE-} "$@"
}

new_box()
{
	suite_name=$1
	shift
	boxes="$boxes $suite_name"
	run ab_create -n "$(b "$suite_name")" "$@"
	[ "$status" -eq 0 ] || tap_show_run ab_create "$@"
	return "$status"
}

in_box()
{
	suite_name=$(b "$1")
	shift
	ab exec "$suite_name" -- "$@"
}

here_in_box()
{
	suite_name=$(b "$1")
	shift
	ab exec "$suite_name" "$@"
}

put_tool()
{
	ab cp "$TOOL" "$(b "$1"):$BOX_TOOL" </dev/null >"$T/cp.log" 2>&1 &&
		in_box "$1" "$BOX_TOOL" bytes 1 </dev/null >/dev/null 2>>"$T/cp.log"
}

suite_info()
{
	[ -e "$T/info" ] || ab provider info "$P" --json >"$T/info" 2>/dev/null
	grep -q "$1" "$T/info"
}

offers()
{
	suite_info "\"has_$1\":[[:space:]]*true"
}

capable()
{
	suite_info "\"caps\":[[:space:]]*\\[[^]]*\"$1\""
}

# What is in the command line of whoever asks does not count: the word is told apart.
running()
{
	in_box "$1" sh -c 'n=0
		for f in /proc/[0-9]*/cmdline; do
			tr "\0" " " 2>/dev/null <"$f" | grep -q -e "$1[$2]" && n=$((n + 1))
		done
		echo $n' count "${2%?}" "${2#"${2%?}"}" </dev/null
}

none_running()
{
	[ "$(running "$@")" = 0 ]
}

some_running()
{
	case $(running "$@") in
	0 | '') return 1 ;;
	esac
}

give_up()
{
	fail "$1"
	suite_done
}

not_offered()
{
	skip_all "not offered by $name_of_provider"
}

suite_left_over()
{
	ab list -g --json 2>/dev/null | grep -F "ct-$TAG-"
	[ -z "${AGENTBOX_CONTRACT_HOME-}" ] || return 0
	grep -lF "$AGENTBOX_HOME" /proc/[0-9]*/mountinfo 2>/dev/null
	for suite_file in /proc/[0-9]*/cmdline; do
		tr '\0' ' ' 2>/dev/null <"$suite_file" | grep -F "$AGENTBOX_HOME" |
			sed "s,^,$suite_file: ,"
	done 2>/dev/null
	return 0
}

suite_nothing_left()
{
	[ -z "$(suite_left_over)" ]
}

# Only boxes of this run, in an install of its own everything.
suite_destroy()
{
	[ -e "$AGENTBOX_HOME" ] && [ -z "${AGENTBOX_CONTRACT_KEEP-}" ] || return 0
	if [ -z "${AGENTBOX_CONTRACT_HOME-}" ]; then
		ab destroy --all -y --force && ab prune -y
		return
	fi
	for suite_name in $boxes; do
		! ab status "$(b "$suite_name")" >/dev/null 2>&1 ||
			ab destroy "$(b "$suite_name")" -y --force
	done
}

suite_end()
{
	trap - EXIT
	trap '' HUP INT TERM
	tap_run_atexit
	[ -n "$tap_finished" ] || suite_destroy </dev/null >/dev/null 2>&1
	[ -n "${AGENTBOX_CONTRACT_KEEP-}" ] || tap_remove_scratch
}

suite_done()
{
	if [ -e "$AGENTBOX_HOME" ]; then
		suite_destroy </dev/null >"$T/destroy.log" 2>&1 || diag "$(cat "$T/destroy.log")"
		if [ -n "${AGENTBOX_CONTRACT_KEEP-}" ]; then
			diag "kept: AGENTBOX_HOME=$AGENTBOX_HOME"
		elif wait_for 10 suite_nothing_left; then
			pass 'nothing is left of this run'
		else
			fail 'nothing is left of this run'
			diag "$(suite_left_over)"
		fi
	fi
	tap_plan
}

trap suite_end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

have agentbox || give_up 'agentbox is on PATH'
run ab doctor --provider "$P"
[ "$status" -eq 0 ] || [ -n "${AGENTBOX_CONTRACT_HOME-}" ] || case $P in
local) skip_all 'no local boxes on this machine' ;;
esac
