# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2154
# DIR: empty it, for what was sent is out of date; but for what is mounted there.
if [ -z "$mounts" ]; then
	find . ! -name . -prune -exec rm -rf -- {} + || fail "cannot empty $PWD"
	exit 0
fi
set --
for mount in $mounts; do
	mounted "$mount" && name=$(pattern "$sub.") || continue
	set -- "$@" ! -path "./${name%.}" ! -path "./${name%.}/*"
done
find . ! -name . ! -type d "$@" -exec rm -f -- {} + || fail "cannot empty $PWD"
# Those on the way to a mount stay.
find . -depth ! -name . -type d "$@" -exec rmdir -- {} + 2>/dev/null || :
