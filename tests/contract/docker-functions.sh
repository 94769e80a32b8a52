# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# tests/contract/docker-functions.sh: a Docker engine for a test.
#
#	. "${0%/*}/docker-functions.sh"     first thing, instead of ../cli/functions.sh
#	docker_engine            one of this test's own; or else the one that answers; or skip_all
#	docker_start DIR ARG...  another one, with its files in DIR, which begins to start; it is at
#	                         $DOCKER_HOST then; docker_through: words that run it, "setpriv ..."
#	docker_victim            the process of that engine; after SIGKILL it is started again
#	and what docker-play.sh says
#	docker_fake_suite TAR    from now on mmdebstrap takes no time: what it makes is this
#
# An engine of the test's own has its data in $T, and namespaces of its own for mounts and
# processes; it shares a network namespace with the test, which runs itself again for that, so
# that the ports of boxes are reached: nothing of the machine is changed, and nothing outlives it.

docker_can_start=
if [ "$(id -u)" = 0 ] && command -v dockerd >/dev/null && command -v ip >/dev/null &&
	unshare --net true 2>/dev/null; then
	docker_can_start=1
	[ -n "${AGENTBOX_TEST_NET:-}" ] ||
		AGENTBOX_TEST_NET=1 exec unshare --net sh -c 'ip link set lo up && exec "$@"' sh \
			"$0" "$@"
fi

# shellcheck source=../cli/functions.sh
. "${0%/*}/../cli/functions.sh"
# shellcheck source=docker-play.sh
. "${0%/*}/docker-play.sh"

docker_answers()
{
	ab doctor --provider docker 2>/dev/null | grep -q '^docker: engine *ok'
}

docker_engine()
{
	docker_is_built || skip_all 'configured without the docker provider'
	if [ -z "$docker_can_start" ]; then
		docker_answers || skip_all "no Docker engine answers, and none can be started here"
		return
	fi
	docker_start "$T/engine"
	wait_for 30 docker_is_up
	docker_answers || {
		diag "$(tail -n 5 "$T/engine/log")"
		skip_all 'a Docker engine does not start here'
	}
}

docker_start()
{
	mkdir "$1" || exit 99
	DOCKER_HOST=unix://$1/docker.sock
	export DOCKER_HOST
	unset DOCKER_CONTEXT DOCKER_TLS_VERIFY DOCKER_CERT_PATH
	docker_dir=$1
	shift
	# shellcheck disable=SC2086
	unshare --mount --pid --fork --kill-child --mount-proc ${docker_through-} \
		sh -c 'dir=$1 && shift && while rm -f "$dir/pid"
		dockerd --data-root "$dir/data" --exec-root "$dir/exec" -p "$dir/pid" "$@"
		[ "$?" -eq 137 ]; do :; done' sh "$docker_dir" -H "$DOCKER_HOST" "$@" \
		>"$docker_dir/log" 2>&1 </dev/null &
	docker_pid=$!
	atexit docker_stop "$docker_pid"
}

# True also when it never will be.
docker_is_up()
{
	! kill -0 "$docker_pid" 2>/dev/null || docker_answers
}

docker_children() # PID
{
	cat "/proc/$1/task/$1/children" 2>/dev/null
}

docker_victim()
{
	# What a dead one left behind is there too.
	for docker_child in $(docker_children "$(docker_children "$docker_pid" | tr -d " ")"); do
		[ "$(cat "/proc/$docker_child/comm")" != dockerd ] || echo "$docker_child"
	done
}

docker_stop() # PID
{
	# unshare itself hears no other signal, and takes the engine and all of its processes along.
	docker_child=$(docker_children "$1" | tr -d ' ')
	kill -KILL "$1" 2>/dev/null
	wait "$1" 2>/dev/null
	wait_for 10 docker_is_gone
}

docker_is_gone()
{
	! kill -0 "${docker_child:-2147483647}" 2>/dev/null
}

docker_fake_suite()
{
	mkdir -p "$T/fake" || exit 99
	cat >"$T/fake/mmdebstrap" <<END
#!/bin/sh
echo 'mmdebstrap is at it' >&2
cat '$1'
END
	chmod 755 "$T/fake/mmdebstrap"
	PATH=$T/fake:$PATH
}
