# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# tests/contract/docker-functions.sh: a Docker engine for a test.
#
#	. "${0%/*}/docker-functions.sh"     first thing, instead of ../cli/functions.sh
#	docker_engine            one of this test's own; or else the one that answers; or skip_all
#	docker_root FILE.tar     a root file system of this machine's programs, enough for a box
#	docker_api METHOD PATH   what that engine answers, bypassing agentbox
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

docker_answers()
{
	ab doctor --provider docker 2>/dev/null | grep -q '^docker: engine *ok'
}

docker_engine()
{
	[ -e "$BUILD/providers/docker/.libs/agentbox-docker.so" ] ||
		skip_all 'configured without the docker provider'
	if [ -z "$docker_can_start" ]; then
		docker_answers || skip_all "no Docker engine answers, and none can be started here"
		return
	fi
	mkdir "$T/engine" || exit 99
	DOCKER_HOST=unix://$T/engine/docker.sock
	export DOCKER_HOST
	unset DOCKER_CONTEXT DOCKER_TLS_VERIFY DOCKER_CERT_PATH
	unshare --mount --pid --fork --kill-child --mount-proc \
		dockerd --data-root "$T/engine/data" --exec-root "$T/engine/exec" \
		-H "$DOCKER_HOST" -p "$T/engine/pid" >"$T/engine/log" 2>&1 </dev/null &
	docker_pid=$!
	atexit docker_stop
	wait_for 30 docker_is_up
	docker_answers || {
		diag "$(tail -n 5 "$T/engine/log")"
		skip_all 'a Docker engine does not start here'
	}
}

# True also when it never will be.
docker_is_up()
{
	! kill -0 "$docker_pid" 2>/dev/null || docker_answers
}

docker_stop()
{
	# unshare itself hears no other signal, and takes the engine and all of its processes along.
	docker_child=$(tr -d " " 2>/dev/null <"/proc/$docker_pid/task/$docker_pid/children")
	kill -KILL "$docker_pid" 2>/dev/null
	wait "$docker_pid" 2>/dev/null
	wait_for 10 docker_is_gone
}

docker_is_gone()
{
	! kill -0 "${docker_child:-2147483647}" 2>/dev/null
}

docker_api()
{
	perl -MIO::Socket::UNIX -e '
		my ($host, $method, $path) = @ARGV;
		$host =~ s,^unix://,,;
		my $s = IO::Socket::UNIX->new(Peer => $host || "/var/run/docker.sock") or die $!;
		print $s "$method $path HTTP/1.0\r\n\r\n";
		$s->flush;
		local $/;
		my $all = <$s>;
		$all =~ s/^.*?\r\n\r\n//s;
		print $all;
	' "${DOCKER_HOST-}" "$1" "$2"
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

docker_programs='sh cat chmod chown cksum cmp comm cp cut date dd df diff dirname du env expr false
	find git grep gzip head id install kill ln ls md5sum mkdir mkfifo mknod mktemp mv nohup
	nproc od paste printf ps pwd readlink realpath rm rmdir sed seq setsid sha256sum sleep sort
	stat stty sync tail tar tee test timeout touch tr true truncate tty uname uniq wc whoami
	xargs yes printenv getent'

docker_root()
(
	root=$T/root
	mkdir -p "$root/etc" "$root/bin" "$root/usr/bin" "$root/root" "$root/run" "$root/home" \
		"$root/proc" "$root/sys" "$root/dev" "$root/var" "$root/sbin" || exit 1
	mkdir -m 1777 "$root/tmp" "$root/var/tmp" || exit 1
	echo 'root:x:0:0:root:/root:/bin/sh' >"$root/etc/passwd"
	echo 'root:x:0:' >"$root/etc/group"
	{
		for program in $docker_programs; do
			path=$(PATH=/usr/bin:/bin:/usr/sbin:/sbin command -v -- "$program")
			# What the shell has itself is a file all the same.
			case $path in /*) ;; *) path=/usr/bin/$program ;; esac
			cp -L "$path" "$root/bin/" || exit 1
			ldd "$path" 2>/dev/null
		done
		# With sanitizers it is no static program.
		ldd "$BUILD/core/ctl/agentbox-ctl" 2>/dev/null
	} | sed -n 's,^[^/]*\(/[^ ]*\) (.*,\1,p' | sort -u >"$T/libraries"
	while IFS= read -r library; do
		mkdir -p "$root${library%/*}" && cp -L "$library" "$root$library" || exit 1
	done <"$T/libraries"
	tar -cf "$1" -C "$root" .
)
