# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2154
# tests/cli/user-functions.sh: agentbox as root and as an ordinary user; sourced behind
# functions.sh.
#
#	by_root ARG...              agentbox ARG...
#	by_user_with_ids ARG...     the same as the user $user, who has a name, and ids for boxes
#	by_user_without_ids ARG...  or none
#
# Before, $T/ids has passwd, and with and without, which are /etc/subuid and /etc/subgid; the home
# of the user is $T/u, and AGENTBOX_HOME is $T/u/with or $T/u/without.

by_root()
{
	ab "$@"
}
as_user() # SUBIDS ARG...
{
	subids=$1
	shift
	unshare -m sh -c '
		mount --make-rprivate / && mount --bind "$1/passwd" /etc/passwd &&
		mount --bind "$1/$2" /etc/subuid &&
		mount --bind "$1/$2" /etc/subgid || exit 99
		shift 2
		exec timeout 120 "$@"' \
		sh "$T/ids" "$subids" setpriv --reuid "$user" --regid "$user" \
		--clear-groups env HOME="$T/u" AGENTBOX_HOME="$T/u/$subids" \
		"$BUILD/tests/wrapper" agentbox "$@"
}
by_user_with_ids()
{
	as_user with "$@"
}
by_user_without_ids()
{
	as_user without "$@"
}
