#!/bin/sh
# SPDX-License-Identifier: MIT
# Templates of E2B, made by its build interface: of the context that images of other providers are
# made of, listed, used, cleared away; and what is said of a build that fails.
. "${0%/*}/e2b-functions.sh"

e2b_emulator
export AGENTBOX_PROVIDER=e2b
unset E2B_TEMPLATE
# There already, so nothing is installed and no network is needed.
export AGENTBOX_E2B_PACKAGES=coreutils
git init -q -b main "$T/project" && cd "$T/project" || exit 99
echo hello >file && git add file && git commit -qm first || exit 99

templates()
{
	curl -sf --noproxy '*' -H "X-API-Key: $E2B_API_KEY" "$e2b/templates" |
		grep -o '"templateID"' | grep -c .
}

run ab create -n none -y
like "$err" 'no template is named, and none is prepared' 'without a template there is no box'
e2b_forget
run ab -v prepare
is "$status" 0 'prepare'
like "$out$err" 'all packages are there' 'shows what the build writes'
run e2b_asked
is "$(printf '%s\n' "$out" | grep -c '^PUT ')" 4 'each copied path is uploaded'
is "$(printf '%s\n' "$out" | grep -c '^POST /v3/templates$')" 1 'and it is registered once'
run ab image ls
like "$out" '^default +[a-z0-9]{20}:default +ready' 'it is listed, with its tag'
ref=$(printf '%s\n' "$out" | awk '$1 == "default" { print $2 }')
e2b_forget
ok 'prepare, again' ab prepare
unlike "$(e2b_asked)" '^POST' 'makes nothing'
ok 'a box without a word of an image' ab create -n one -y
e2b_forget
is "$(ab exec one -- id -un)" vscode 'has the user of the context'
is "$(ab exec one -- cat file)" hello 'and the project'
ok 'one by the name of the template' ab create -n two -y --image "$ref"
ok 'goes' ab destroy two -y
e2b_forget
ok 'made anew' env AGENTBOX_E2B_PACKAGES=coreutils,tar "$BUILD/tests/wrapper" agentbox prepare
run ab image ls
is "$(printf '%s\n' "$out" | grep -c '^default ')" 1 'there is one'
unlike "$out" "$ref" 'another one'
is "$(templates)" 2 'the former one stays as long as its box'
ok 'a box of the former goes' ab destroy one -y
is "$(templates)" 1 'and the former with it'
ok 'image rm' ab image rm default -y
is "$(templates)" 0 'nothing is left'

run env AGENTBOX_E2B_PACKAGES=no-such-package-here "$BUILD/tests/wrapper" agentbox prepare
[ "$status" -ne 0 ] && pass 'a build that fails' || fail 'a build that fails'
like "$err" '^agentbox: .*the build failed at RUN .*install\.sh' 'says at which step'
is "$(templates)" 0 'and leaves nothing'

# A client that dies in the middle of a build.
e2b_order '{"path": "/templates/*/builds/*/status", "kind": "hang", "count": 1}'
e2b_forget
"$BUILD/tests/wrapper" agentbox prepare >/dev/null 2>&1 &
pid=$!
waits()
{
	e2b_asked | grep -q /status
}
wait_for 30 waits
kill -KILL "$pid"
wait "$pid" 2>/dev/null
e2b_mend
is "$(templates)" 1 'a client that was killed leaves a template'
run ab prune --dry-run
like "$out" 'image|template' 'prune would remove it'
ok 'prune' ab prune -y
is "$(templates)" 0 'does'
run ab prepare --from /nowhere.tar
[ "$status" -ne 0 ] && pass 'not of a file that is not there' ||
	fail 'not of a file that is not there'
: >"$T/root.tar"
one_line_error 1 'a root file system as a file: not supported' 'nor of one that is' \
	ab prepare --from "$T/root.tar"
done_testing
