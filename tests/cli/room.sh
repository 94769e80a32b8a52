#!/bin/sh
# SPDX-License-Identifier: MIT
# B058: what does not fit is refused before it is written, with what it needs and what is there.
if [ "$(id -u)" -eq 0 ] && [ -z "${AGENTBOX_TEST_UNSHARED-}" ]; then
	AGENTBOX_TEST_UNSHARED=1 exec unshare -m "$0"
fi
. "${0%/*}/functions.sh"

is_root || skip_all 'only root can mount a small disk'
mkdir "$T/small" && mount -t tmpfs -o size=8m tmpfs "$T/small" || skip_all 'no tmpfs can be mounted'
atexit umount -l "$T/small"

make_repo "$T/small/repo" >/dev/null
cd "$T/small/repo" || exit 99
ok 'a box' ab create --provider mock -n one -y
ok 'with too much in it' ab exec one -- sh -c 'mkdir tree && echo few >tree/a &&
	head -c 20000000 /dev/urandom >tree/big && cp tree/big big && echo few >few' </dev/null
before=$(find "$T/small" | LC_ALL=C sort)
free=$(df -P "$T/small" | awk 'END {print $4}')

unchanged() # DESC
{
	is "$(find "$T/small" | LC_ALL=C sort)" "$before" "$1: nothing of it is there"
}

full='No space left on device: 19\.1 MiB are coming, [0-9.]+ MiB are free .free some space there'
one_line_error 1 "$T/small/new.*$full" 'cp of a file' ab cp one:big "$T/small/new"
unchanged cp
one_line_error 1 "$full" 'cp of a tree' ab cp one:tree "$T/small/new"
is "$(ls -A "$T/small/new")" a 'what comes before it is whole'
rm -r "$T/small/new"
unchanged 'cp of a tree'

code 1 download ab download one -y
like "$out$err" 'big.*No space left on device: 19\.1 MiB are coming' 'what does not fit is named'
is "$(cat few tree/a)" 'few
few' 'the rest comes'
ok 'and no part of it' test ! -e big -a ! -e tree/big
rm -r few tree
unchanged download

ok 'a commit of it' ab exec one -- sh -c 'git add -A && git commit -q -m Big' </dev/null
code 1 'fetch into the repository' ab fetch one
like "$out$err" 'repo/.git/objects/pack.: No space left on device: 19\.[0-9] MiB are coming' \
	'says so'
unchanged fetch
code 1 'no ref either' git rev-parse -q --verify agentbox/one

# What is fetched waits in AGENTBOX_HOME, twice.
own=$AGENTBOX_HOME/boxes/$(box_id one)
mkdir "$T/own" && mount -t tmpfs -o size=24m tmpfs "$T/own" && cp -a "$own/." "$T/own" &&
	mount --move "$T/own" "$own" || exit 99
was=$(find "$own" -type f | sort)
one_line_error 1 'fetch: .*/boxes/.*: No space left on device: 38\.[0-9] MiB are coming' \
	'fetch by way of a small disk' ab fetch one
is "$(find "$own" -type f | sort)" "$was" 'leaves nothing there'
umount "$own"

mount -o remount,size=160m "$T/small"
ok 'with room it is fetched' ab fetch one
ok 'and comes' ab download one -y
is "$(cksum <big)" "$(ab exec one -- cksum big </dev/null | cut -d' ' -f1,2)" 'whole'
ok 'as a copy too' ab cp one:tree "$T/small/new"
ok 'there was little' test "$free" -lt 8192
cd / && ab destroy --all -y >/dev/null 2>&1
done_testing
