#!/bin/sh
# SPDX-License-Identifier: MIT
# A walk through the commands of a box at the emulated E2B, from its create to what prune finds.
. "${0%/*}/e2b-functions.sh"

e2b_emulator
TOOL=$BUILD/tests/contract/agentbox-contract-tool
export AGENTBOX_PROVIDER=e2b
make_repo "$T/project" >/dev/null
cd "$T/project" || exit 99
boxes()
{
	find "$T/emulated/providers/local/store/boxes" -mindepth 1 -maxdepth 1 | wc -l
}

ok 'create' ab create -n one -y
is "$(ab exec one -- git log -1 --format=%s)" Second 'exec'
printf 'send echo kept >note; exit 9\\r\n' >"$T/shell"
run "$TOOL" pty "$T/shell" "$BUILD/tests/wrapper" agentbox shell one
is "$status" 9 'shell'
run ab url one 3000
url=$out
ok 'stop' ab stop one
like "$(ab list)" '^1 +one +paused' 'list: it is paused'
run ab url one 3000
is "$out" "$url" 'url: where it was'
like "$url" '^http://3000-i[a-z0-9]*\.localhost:' 'which is an address'
like "$(ab list)" '^1 +one +paused' 'list: it is still paused'
ok 'start' ab start one
is "$(ab exec one -- cat note)" kept 'it is as it was'
ok 'checkpoint create' ab checkpoint create one --name mark
ok 'create --snapshot' ab create -n two --snapshot mark -y
is "$(ab exec two -- cat note)" kept 'it is as the first one was'

# A create that was killed left a sandbox.
before=$(boxes)
e2b_forget
e2b_order '{"method": "POST", "path": "/process.Process/Start", "kind": "hang", "count": -1}'
"$BUILD/tests/wrapper" agentbox create -n killed -y >/dev/null 2>&1 </dev/null &
pid=$!
made()
{
	e2b_asked | grep -q /process.Process/Start
}
wait_for 30 made
kill -KILL "$pid"
wait "$pid" 2>/dev/null
e2b_mend
is "$(boxes)" $((before + 1)) 'a create that was killed left a sandbox'
run ab prune --dry-run
like "$out" 'killed|sandbox i[a-z0-9]{20}' 'prune --dry-run finds it'
is "$(boxes)" $((before + 1)) 'and leaves it'
ok 'prune' ab prune -y
is "$(boxes)" "$before" 'removes it'
like "$(ab list)" 'one +running' 'and nothing that is in use'
ok 'all go' ab destroy --all -y
done_testing
