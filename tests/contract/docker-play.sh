# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# tests/contract/docker-play.sh: Docker engines that are played, or that break; behind
# ../cli/functions.sh.
#
#	docker_is_built          true with the docker provider
#	docker_root FILE.tar     a root file system of this machine's programs, enough for a box
#	docker_debian ROOT       pretend that packages can be installed there: apt-get does nothing
#	docker_add ROOT          files of this machine to the same places there: a list on stdin
#	docker_libraries FILE... those that they need, as such a list
#	docker_play ROOT         instead of an engine, one that is played (docker-play.pl), at
#	                         $DOCKER_HOST
#	docker_breaks DIR        docker-break.pl, with its files in DIR, between agentbox and the
#	                         engine at $DOCKER_HOST; that is then its own address
#	break_at KIND FAULT [SKIP [TIMES]]   from now on; the manual is docker-break.pl's head
#	whole_again              nothing breaks any more
#	asked [KIND]             how many requests there were since whole_again
#	docker_api METHOD PATH [TAR]   what the engine answers, bypassing agentbox

docker_is_built()
{
	[ -e "$BUILD/providers/docker/.libs/agentbox-docker.so" ]
}

docker_programs='sh basename cat chmod chown cksum cmp comm cp cut date dd df diff dirname du env
	expr false
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
	} | docker_named | sort -u >"$T/libraries"
	docker_add "$root" <"$T/libraries" || exit 1
	docker_recoding "$root" && docker_git "$root" && tar -cf "$1" -C "$root" .
)

docker_named()
{
	sed -n 's,^[^/]*\(/[^ ]*\) (.*,\1,p'
}

docker_libraries()
{
	ldd "$@" 2>/dev/null | docker_named | sort -u
}

docker_add()
{
	while IFS= read -r docker_file; do
		mkdir -p "$1${docker_file%/*}" && cp -L "$docker_file" "$1$docker_file" || return 1
	done
}

docker_debian()
(
	cd "$1/bin" || exit 1
	for program in apt-get usermod; do
		printf '#!/bin/sh\n' >"$program"
	done
	printf '#!/bin/sh\nexit 1\n' >dpkg-query
	cat >useradd <<'END'
#!/bin/sh
echo 'vscode:x:1000:1000::/home/vscode:/bin/sh' >>/etc/passwd
echo 'vscode:x:1000:' >>/etc/group
mkdir -p /home/vscode && chown 1000:1000 /home/vscode
END
	chmod 755 apt-get usermod dpkg-query useradd
)

# What git runs that is not in itself: `git submodule` is a script, and the other side of a fetch
# is asked for by its name.
docker_git() # ROOT
(
	core=$(git --exec-path) && mkdir -p "$1$core" && cd "$core" || exit 1
	for program in git git-receive-pack git-submodule--helper git-upload-pack; do
		ln -s /bin/git "$1$core/$program" || exit 1
	done
	for program in git-sh-i18n git-sh-i18n--envsubst git-sh-setup git-submodule; do
		[ ! -e "$program" ] || cp -L "$program" "$1$core/" || exit 1
	done
)

# What git recodes files with (working-tree-encoding).
docker_recoding() # ROOT
(
	for dir in /usr/lib*/gconv /usr/lib/*/gconv; do
		[ -e "$dir/UTF-16.so" ] || continue
		mkdir -p "$1$dir" || exit 1
		for file in UTF-16.so gconv-modules gconv-modules.cache; do
			[ ! -e "$dir/$file" ] || cp "$dir/$file" "$1$dir/" || exit 1
		done
	done
)

docker_listen() # DIR ARG...
{
	mkdir "$1" || exit 99
	DOCKER_HOST=unix://$1/docker.sock
	export DOCKER_HOST
	unset DOCKER_CONTEXT DOCKER_TLS_VERIFY DOCKER_CERT_PATH
	perl "$SRC/tests/contract/docker-break.pl" "$1/docker.sock" "$@" \
		>"$1/said" 2>&1 </dev/null &
	atexit kill "$!"
	wait_for 30 test -S "$1/docker.sock"
}

docker_play()
{
	docker_listen "$T/played" --play "$1"
}

docker_breaks()
{
	breaks=$1
	docker_listen "$1" "${DOCKER_HOST#unix://}"
	whole_again
}

break_at()
{
	echo "$1 $2 ${3-0} ${4-1}" >>"$breaks/faults"
}

whole_again()
{
	: >"$breaks/faults"
	: >"$breaks/log"
}

asked()
{
	grep -c "^${1-}" "$breaks/log"
}

docker_api()
{
	perl -MIO::Socket::UNIX -e '
		my ($host, $method, $path, $tar) = @ARGV;
		$host =~ s,^unix://,,;
		my $s = IO::Socket::UNIX->new(Peer => $host || "/var/run/docker.sock") or die $!;
		print $s "$method $path HTTP/1.0\r\n";
		local $/;
		if (defined $tar) {
			open(my $f, "<", $tar) or die $!;
			print $s "Content-Type: application/x-tar\r\nContent-Length: ", -s $f,
				"\r\n\r\n", <$f>;
		} else {
			print $s "\r\n";
		}
		$s->flush;
		my $all = <$s>;
		$all =~ s/^.*?\r\n\r\n//s;
		print $all;
	' "${DOCKER_HOST-}" "$@"
}
