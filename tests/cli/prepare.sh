#!/bin/sh
# SPDX-License-Identifier: MIT
# Images: prepare, image ls and rm, boxes from them, and builds that break off.
. "${0%/*}/functions.sh"

mkdir "$T/p" && cd "$T/p" || exit 99
P='--provider mock'
# shellcheck disable=SC2086
{
	run ab prepare $P --status
	is "$out" 'nothing is prepared at mock' 'at first'
	is "$status" 0 'which is no failure'
	one_line_error 2 '--from' 'prepare needs something' ab prepare $P
	one_line_error 2 "'a/b'" 'a name is a name' ab prepare $P --from x -n a/b
	one_line_error 1 'nope.tar' 'a path must be there' ab prepare $P --from ./nope.tar
	one_line_error 1 'not a tar file' 'and a file' ab prepare $P --from /dev/null
	ok 'prepare' ab prepare $P --from debian:bookworm
	is "$err" '' 'is quiet'
	run ab prepare $P --from debian:bookworm
	like "$out" 'there already' 'once is enough'
	run ab prepare $P --from debian:bookworm --force -v
	like "$err" '^step 1: from debian:bookworm$' '-v shows the build'
	printf 'no tar\n' >root.tar
	run ab prepare $P --from ./root.tar -n own --json
	like "$out" '"name":.*"own"' '--json'
	run ab prepare $P --from ./root.tar -n own
	like "$out" 'there already' 'the same file again is no work'
	printf 'other\n' >root.tar
	run ab prepare $P --from ./root.tar -n own
	unlike "$out" 'there already' 'another one is'
	run ab prepare $P --status
	is "$(printf '%s\n' "$out" | wc -l | tr -d ' ')" 2 'both are on record'
	run ab image ls $P
	is "$(printf '%s\n' "$out" | wc -l | tr -d ' ')" 5 'image ls shows what is there'

	AGENTBOX_MOCK_FAULTS='prepare-build:fail=EIO' && export AGENTBOX_MOCK_FAULTS
	run ab prepare $P --from x -n broken
	is "$status" 1 'a build that fails'
	like "$err" '^the build broke off$' 'shows its last lines'
	AGENTBOX_MOCK_FAULTS='prepare:kill,after=1'
	run ab prepare $P --from x -n killed
	unset AGENTBOX_MOCK_FAULTS
	run ab image ls $P
	like "$out" killed 'a killed one has left an image'
	run ab prune -y
	like "$out" '^image killed .* at mock: removed$' 'which prune finds by its label'
	run ab prune -y
	is "$out" 'nothing was left behind' 'and nothing else'

	ok 'create from it' ab create $P -y -n one --image own
	run cat "$AGENTBOX_HOME"/providers/mock/sandboxes/*.json
	like "$out" '"image":.*"image-[0-9a-f]*"' 'by its name here'
	ok 'create from the other' ab create $P -y -n two --image debian:bookworm
	run cat "$AGENTBOX_HOME"/providers/mock/sandboxes/*.json
	is "$(printf '%s\n' "$out" | grep -c '"image":.*"image-')" 2 'has its own too'
	ok 'image rm' ab image rm own $P -y
	one_line_error 3 "no image 'own'" 'it is gone' ab image rm own $P -y
	printf '{' >"$AGENTBOX_HOME/mock-prepared.json"
	run ab prepare $P --status
	like "$err" 'damaged' 'a damaged file is set aside'
}
done_testing
