#!/bin/sh
# SPDX-License-Identifier: MIT
# Where this machine or an outer container forbids boxes, one line says which setting it is, and
# nothing is left half-made.
. "${0%/*}/functions.sh"

is_root || skip_all 'only root can take its own rights away, one by one'
deny=$BUILD/tests/cli/deny
agentbox="$BUILD/tests/wrapper agentbox"
make_repo "$T/repo"

nothing_is_made()
{
	run ab list -g --json
	is "$(printf '%s' "$out" | tr -d ' \n')" '[]' "$1: no box"
	run sh -c 'ls -A "$1"/providers/local/store/boxes "$1"/providers/local/store/tmp |
		grep -v : | grep .' sh "$AGENTBOX_HOME"
	is "$out" '' "$1: nothing is left"
}

# refused ERE DESC COMMAND-THAT-RUNS-ANOTHER...
refused()
{
	ere=$1 desc=$2
	shift 2
	# shellcheck disable=SC2086 # two words
	one_line_error 1 "$ere" "$desc" "$@" $agentbox create -w "$T/repo" -n no --egress none -y
	nothing_is_made "$desc"
}

refused 'new user namespace: forbidden by a seccomp filter of the outer container .*seccomp=' \
	'a filter that forbids user namespaces' "$deny" userns
refused 'mount: forbidden by a seccomp filter of the outer container .*seccomp=' \
	'a filter that forbids mounts' "$deny" mount
refused 'host name of the box: forbidden by a seccomp filter' \
	'a new user namespace without rights' "$deny" sethostname
refused 'loopback interface: forbidden by a seccomp filter' \
	'a filter that forbids network interfaces' "$deny" interface
refused 'pivot_root: forbidden by a seccomp filter' 'a filter that forbids pivot_root' \
	"$deny" pivot_root
refused 'seccomp: this kernel, or the container around it, takes no filter' \
	'a kernel without filters' "$deny" seccomp
refused 'uid_map: root of this container may not hand out ids .*CAP_SETUID' \
	'root that may not write id maps' setpriv --bounding-set=-setuid
refused 'user.max_user_namespaces is reached .*sysctl -w user.max_user_namespaces' \
	'a limit of user namespaces' "$deny" limit
refused 'mount /proc: refused, the outer container hides parts of its own .*systempaths=' \
	'a /proc with hidden parts' unshare -m sh -c \
	'mount --make-rprivate / && mount -t tmpfs none /proc/irq && exec "$@"' sh
refused 'ids of boxes do not exist here' 'a user namespace with one id' \
	unshare --user -r env AGENTBOX_HOME="$T/other"

# With what is forbidden gone, it works.
ok 'the same without that' ab create -w "$T/repo" -n yes --egress none -y

# Doctor says the same, as a row that failed.
run "$deny" userns "$BUILD/tests/wrapper" agentbox doctor --provider local
like "$out$err" 'seccomp filter of the outer container' 'doctor names the filter'
done_testing
