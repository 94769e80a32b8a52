#!/bin/sh
# SPDX-License-Identifier: MIT
# Every repository and every directory arrives whole, and nothing changes where it comes from.
#
# Points begin with the id of the case in the list of what people met with tools of this kind, or
# with "state".  Cases of that list that are not here, and why:
#	B022  from a URL: create takes a directory and refuses an address, which
#	      tests/cli/seed-refused.sh shows; a create that fails is here
#	B037  mounts are an option of create, tested with the others (tests/cli/create-options.sh)
#	B044  there is no export of a checkpoint; one function unpacks everything that comes from a
#	      box (core/util/archive.h), which tests/cli/style-code.sh looks after
#	B048  what a foreign tar brings: tests/unit/test-archive.c
#	B050, B051, B052  uploads by a service's API: with the first provider that has one
#	B058  full disks need a file system of their own: tests/cli/seed-killed.sh, room.sh
. "${0%/*}/functions.sh"
# The parts change directories.
here=$(cd "${0%/*}" && pwd -P) || exit 99

have git || skip_all 'no git'
. "$here/seed-functions.sh"
for part in ${AGENTBOX_CONTRACT_PARTS:-states files back ways}; do
	# shellcheck disable=SC1090
	. "$here/seed-$part.sh"
done
drop
suite_done
