#!/bin/sh
# SPDX-License-Identifier: MIT
# agentbox-ctl comes with the project, in as few round trips as the provider allows.
. "${0%/*}/functions.sh"

make_repo "$T/repo" >/dev/null
cd "$T/repo" || exit 99

# What the provider was asked for, one word a round trip.
trips()
{
	sed -n 's/^agentbox: [a-z]*: POST \([^ ]*\) .*/\1/p' "$T/stderr" | sed 's,.*/,,' |
		tr '\n' ' '
}

traced()
{
	AGENTBOX_DEBUG=trace "$BUILD/tests/wrapper" agentbox "$@" \
		</dev/null >"$T/stdout" 2>"$T/stderr"
}

for p in mock mockbare mockpoor; do
	ok "$p: a box" traced create --provider "$p" -n "box-$p" -y
	case $p in
	mock) is "$(trips)" 'sandboxes put_tar exec ' "$p: one stream, one script" ;;
	*) is "$(trips)" 'sandboxes upload exec exec ' "$p: unpacking is one more" ;;
	esac
	run ab exec "box-$p" -- sh -c 'git status --short; ls -A /workspace | grep agentbox'
	is "$out" '' "$p: nothing of ours is left in the project"
done
run ab exec box-mock -- sh -c 'ls /usr/local/lib/agentbox ~/.agentbox/lib'
unlike "$out" 'agentbox-ctl-' 'a provider that can do all never gets it'

box="box-mockbare"
ok 'the next command' traced exec "$box" -- true
is "$(trips)" 'exec ' 'is one round trip'
run ab exec "$box" -- sh -c 'stat -c "%a %u %n" /usr/local/lib/agentbox/*'
like "$out" "^755 $(id -u) /usr/local/lib/agentbox/agentbox-ctl-[^.]*\$" 'there is one, whole'

# A box that was made otherwise.
ok 'without it' ab exec "$box" -- rm -rf /usr/local/lib/agentbox
ok 'it is brought' traced exec "$box" -- true
is "$(trips)" 'exec upload exec exec ' 'when it is first needed'
ok 'and stays' traced exec "$box" -- true
is "$(trips)" 'exec ' 'where it is'
ok 'where its place may not be written' ab exec "$box" -- \
	sh -c 'rm -rf /usr/local/lib && : >/usr/local/lib'
ok 'it is brought' ab exec "$box" -- true
run ab exec "$box" -- sh -c 'ls ~/.agentbox/lib'
like "$out" '^agentbox-ctl-' 'into the home of the user'
ok 'the next command' traced exec "$box" -- true
is "$(trips)" 'exec ' 'looks there in the same trip'
done_testing
