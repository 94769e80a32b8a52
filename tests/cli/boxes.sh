#!/bin/sh
# SPDX-License-Identifier: MIT
# The life of boxes and their records: list, status, start, stop, destroy, forget, recover;
# which box is meant; two homes never meet.
. "${0%/*}/functions.sh"

mkdir "$T/one" "$T/two"
printf '1\n' >"$T/one/file"
printf '2\n' >"$T/two/file"
with_local mock

state_of()
{
	ab status "$1" --json | sed -n 's/^\t"state":\t"\(.*\)",$/\1/p'
}

for p in $providers; do
	cd "$T/one" || exit 99
	one_line_error 3 'no box' "$p: nothing there" ab status
	ok "$p: create" ab create --provider "$p" -n alpha -y
	one_line_error 1 "'alpha'" "$p: a name is taken once" ab create --provider "$p" -n alpha -y
	ok "$p: the only box needs no name" ab exec -- true
	ok "$p: a second" ab create --provider "$p" -n beta -y
	one_line_error 125 'alpha, beta' "$p: then it does" ab exec -- true
	run ab exec 2 -- cat file
	is "$out" 1 "$p: by index"
	ok "$p: by prefix" ab status bet
	id=$(box_id beta)
	ok "$p: by id" ab status "$id"
	one_line_error 3 'no box' "$p: by index that is not there" ab status 3
	cd "$T/two" || exit 99
	ok "$p: from elsewhere by name" ab status alpha
	run ab list
	like "$out" 'no boxes' "$p: the other project has none"
	run ab list -g --json
	is "$(printf '%s\n' "$out" | grep -c '"id"')" 2 "$p: the install has both"
	ok "$p: index starts again" ab create --provider "$p" -n gamma -y
	is "$(ab status gamma --json | grep '"index"' | tr -dc 0-9)" 1 "$p: at 1"
	is "$(state_of gamma)" running "$p: it runs"
	ok "$p: stop" ab stop gamma
	is "$(state_of gamma)" stopped "$p: it is stopped"
	ok "$p: stop again" ab stop gamma
	ok "$p: start" ab start gamma
	is "$(state_of gamma)" running "$p: it runs again"
	ok "$p: start again" ab start gamma
	run ab exec gamma -- cat file
	is "$out" 2 "$p: its files are there"

	one_line_error 2 'nobody is there' "$p: destroy asks first" ab destroy gamma
	ok "$p: forget" ab forget gamma -y
	one_line_error 3 'no box' "$p: it is forgotten" ab status gamma
	ok "$p: recover" ab recover
	run ab exec gamma -- cat file
	is "$out" 2 "$p: it is back, with its files"
	ok "$p: forgotten again" ab forget gamma -y
	run ab prune --dry-run
	like "$out" 'gamma' "$p: prune sees it"
	ok "$p: prune" ab prune -y
	run ab recover
	like "$out" 'nothing' "$p: nothing is left to recover"

	# Another home does not see, use or remove any of it.
	other=$T/other-$p
	run env AGENTBOX_HOME="$other" "$BUILD/tests/wrapper" agentbox list -g --json
	is "$out" '[]' "$p: another home has no boxes"
	ok "$p: its prune" env AGENTBOX_HOME="$other" "$BUILD/tests/wrapper" agentbox prune -y
	ok "$p: its recover" env AGENTBOX_HOME="$other" "$BUILD/tests/wrapper" agentbox recover
	ok "$p: its destroy --all" env AGENTBOX_HOME="$other" "$BUILD/tests/wrapper" agentbox \
		destroy --all -y
	is "$(state_of alpha)" running "$p: ours still runs"

	code 3 "$p: one wrong name destroys nothing" ab destroy alpha nonesuch -y
	is "$(state_of alpha)" running "$p: indeed"
	ok "$p: several at once" ab destroy alpha beta -y
	is "$(ab list -g --json)" '[]' "$p: all gone"
	ok "$p: destroying what is gone, by force" ab destroy alpha --force -y
done

# Records can be dropped without any provider.
ok 'a box whose provider goes away' ab create --provider mock -w "$T/one" -n lost -y
AGENTBOX_PROVIDER_PATH=$T AGENTBOX_HOME=$AGENTBOX_HOME
export AGENTBOX_PROVIDER_PATH
run ab list -g
is "$status" 0 'list works without it'
like "$out" 'lost' 'and shows it'
like "$err" 'mock' 'and says what is missing'
one_line_error 5 'mock' 'exec does not' ab start lost
one_line_error 5 'mock' 'nor destroy' ab destroy lost -y
ok 'destroy --force does' ab destroy lost -y --force
is "$(ab list -g --json)" '[]' 'and the name is free'
unset AGENTBOX_PROVIDER_PATH
ok 'what it had is pruned later' ab prune -y
run ab version
like "$out" '^agentbox [0-9]' 'version'
run ab version --json
like "$out" '"abi_major"' 'version --json'
for cmd in create exec shell list status diff download cp start stop destroy prune recover forget \
	doctor config provider version help; do
	run ab "$cmd" --help
	[ "$status" -eq 0 ] && [ -n "$out" ] && [ -z "$err" ] || fail "$cmd --help"
	run ab help "$cmd"
	[ "$status" -eq 0 ] && [ -n "$out" ] || fail "help $cmd"
done
pass 'every command has help'
done_testing
