#!/bin/sh
# SPDX-License-Identifier: MIT
# From nothing to work done in a box: install, build, put a repository into a box, change it
# there, bring the change back, destroy the box.
set -eu

usage()
{
	cat <<'END'
usage: quickstart.sh [--provider NAME] [--small]

Installs what is missing (scripts/install-deps.sh), builds agentbox in build/, and shows one
whole round with a git repository: create, exec, diff, download, destroy. The repository is a
clone of this one; with --small, or where this is no clone, one of three files made for it.
With --provider docker it is one of two scripts, and where no Docker engine answers, root gets
one for this round.  Nothing but the packages and build/ is left behind.
END
}

provider=
small=
while [ $# -gt 0 ]; do
	case $1 in
	--provider)
		[ $# -ge 2 ] || { usage >&2; exit 2; }
		provider=$2
		shift
		;;
	--provider=*) provider=${1#*=} ;;
	--small) small=1 ;;
	-h | --help)
		usage
		exit 0
		;;
	*)
		usage >&2
		exit 2
		;;
	esac
	shift
done

root=$(cd "$(dirname "$0")/.." && pwd -P)
build=$root/build
# A tree that was configured in place cannot be built elsewhere too.
[ ! -e "$root/config.status" ] || build=$root
scratch=$(mktemp -d "${TMPDIR:-/tmp}/agentbox-quickstart.XXXXXX")
started=$(date +%s)
AGENTBOX_HOME=$scratch/home
export AGENTBOX_HOME
unset AGENTBOX_PROVIDER_PATH AGENTBOX_LIBEXEC_PATH

agentbox()
{
	"$build/tests/wrapper" agentbox "$@"
}

clean_up()
{
	code=$?
	trap - EXIT
	trap '' HUP INT TERM
	cd /
	if [ -e "$AGENTBOX_HOME" ]; then
		agentbox destroy --all -y --force >"$scratch/log" 2>&1 </dev/null ||
			cat "$scratch/log"
		[ "$provider" != docker ] ||
			agentbox image rm default --provider docker -y >"$scratch/log" 2>&1 || :
	fi
	stop_docker
	rm -rf "$scratch"
	exit "$code"
}
docker_pid=
stop_docker()
{
	[ -n "$docker_pid" ] || return 0
	# unshare itself hears no other signal, and takes the engine and its processes along.
	child=$(tr -d ' ' <"/proc/$docker_pid/task/$docker_pid/children")
	kill -KILL "$docker_pid"
	# A shell says of it that it was killed, as if something had gone wrong.
	wait "$docker_pid" 2>/dev/null || :
	until_true 50 docker_ended || :
}

docker_ended()
{
	! kill -0 "${child:-2147483647}" 2>"$scratch/log"
}

trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' HUP TERM

die()
{
	printf 'quickstart: %s\n' "$*" >&2
	exit 1
}

step()
{
	printf '\n== %s\n' "$*"
}

say()
{
	printf '%s\n' "$*"
}

# Run quietly; what was printed is of interest only when it fails.
quietly()
{
	if ! "$@" >"$scratch/log" 2>&1 </dev/null; then
		tail -n 40 "$scratch/log" >&2
		die "failed: $* (its last lines are above)"
	fi
}

# Show a command as one would type it, run it, and show what it says; $code is its exit code.
show()
{
	line='$'
	for word in "$@"; do
		case $word in
		'' | *[!A-Za-z0-9_./:=,-]*) word="'$word'" ;;
		esac
		line="$line $word"
	done
	say "$line"
	code=0
	"$@" >"$scratch/out" 2>&1 </dev/null || code=$?
	sed 's/^/  /' "$scratch/out"
}

must()
{
	show "$@"
	[ "$code" -eq 0 ] || die "'$*' failed with exit code $code"
}

# Try it so often, five times a second.
until_true()
{
	tries=$1
	shift
	until "$@"; do
		tries=$((tries - 1))
		[ "$tries" -gt 0 ] || return 1
		sleep 0.2
	done
}

docker_answers()
{
	agentbox doctor --provider docker 2>&1 | grep -q '^docker: engine *ok'
}

docker_settled()
{
	! kill -0 "$docker_pid" 2>"$scratch/log" || docker_answers
}

# The machine's engine, else one with its data here and namespaces of its own.
find_docker()
{
	! docker_answers || return 0
	[ -z "${DOCKER_HOST:-}" ] || die "no Docker engine answers at $DOCKER_HOST"
	[ "$(id -u)" -eq 0 ] ||
		die 'no Docker engine answers (start it: sudo systemctl start docker)'
	say 'No Docker engine answers, so one is started for this round, without a network.'
	mkdir "$scratch/docker"
	DOCKER_HOST=unix://$scratch/docker/sock
	export DOCKER_HOST
	unshare --net --mount --pid --fork --kill-child --mount-proc \
		dockerd --data-root "$scratch/docker/data" --exec-root "$scratch/docker/exec" \
		-H "$DOCKER_HOST" -p "$scratch/docker/pid" >"$scratch/docker/log" 2>&1 \
		</dev/null &
	docker_pid=$!
	until_true 150 docker_settled || :
	docker_answers || {
		tail -n 10 "$scratch/docker/log" >&2
		die 'dockerd does not start (its last lines are above)'
	}
}

build_agentbox()
{
	[ -w "$root" ] || die "cannot write to $root (use a clone of your own)"
	if [ ! -e "$root/configure" ]; then
		cd "$root"
		quietly autoreconf -fi
	fi
	mkdir -p "$build"
	cd "$build"
	[ -e Makefile ] || quietly "$root/configure"
	quietly make -j"$(nproc)"
}

# This repository with its history: its build is the work that a box is asked to do.  A shallow
# clone is left alone: boxes do not take one.
clone_this()
{
	[ -z "$small" ] && [ -e "$root/.git" ] &&
		[ "$(git -C "$root" rev-parse --is-shallow-repository 2>&1)" = false ] &&
		git clone -q --no-hardlinks "$root" "$scratch/agentbox" >"$scratch/log" 2>&1 ||
		return 1
	cd "$scratch/agentbox" && git rev-parse -q --verify HEAD >"$scratch/log"
}

work_in_clone()
{
	say 'Work in the box: give agentbox another version, build it, run it.'
	must agentbox exec quickstart -- sed -i 's/^\(AC_INIT.*\)\])/\1-quickstart])/' configure.ac
	say '(This builds all of agentbox in the box.)'
	must agentbox exec quickstart -- sh -c 'autoreconf -fi >build.log 2>&1 && mkdir build &&
    cd build && ../configure >../build.log 2>&1 && make -j"$(nproc)" >>../build.log 2>&1 ||
    { tail ../build.log build.log; exit 1; }'
	must agentbox exec quickstart -- build/agentbox version
}

# A program with a bug, and a test that finds it.
make_small()
{
	mkdir "$scratch/average"
	cd "$scratch/average"
	cat >average.c <<'END'
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	double sum = 0;

	for (int i = 1; i < argc; i++)
		sum += strtod(argv[i], NULL);
	printf("%g\n", argc > 1 ? sum / argc : 0);
	return 0;
}
END
	cat >Makefile <<'END'
average: average.c
	$(CC) -Wall -O2 -o $@ average.c

check: average
	test "$$(./average 1 2 6)" = 3

.PHONY: check
END
	echo /average >.gitignore
	commit_small
}

commit_small()
{
	git -c init.defaultBranch=main init -q .
	git add .
	git -c user.name='Quick Start' -c user.email=quickstart@example.org \
		commit -qm 'Average of some numbers'
}

work_in_small()
{
	say 'Work in the box: see the test fail, mend the program, see it pass.'
	show agentbox exec quickstart -- make -s check
	[ "$code" -ne 0 ] || die 'the test was meant to fail before the change'
	must agentbox exec quickstart -- sed -i 's,sum / argc,sum / (argc - 1),' average.c
	must agentbox exec quickstart -- make -s check
}

# The same without a compiler.
make_scripts()
{
	mkdir "$scratch/average"
	cd "$scratch/average"
	cat >average.sh <<'END'
# The average of some numbers.
printf '%s\n' "$@" | awk '{ sum += $1 } END { print sum / (NR + 1) }'
END
	cat >check.sh <<'END'
test "$(sh average.sh 1 2 6)" = 3 && echo good || { echo bad; exit 1; }
END
	commit_small
}

work_in_scripts()
{
	say 'Work in the box: see the test fail, mend the program, see it pass.'
	show agentbox exec quickstart -- sh check.sh
	[ "$code" -ne 0 ] || die 'the test was meant to fail before the change'
	must agentbox exec quickstart -- sed -i 's,(NR + 1),NR,' average.sh
	must agentbox exec quickstart -- sh check.sh
}

step '1/6 Packages'
engine=
[ "$provider" != docker ] || [ -n "${DOCKER_HOST:-}" ] || [ -S /var/run/docker.sock ] ||
	engine=--docker
sh "$root/scripts/install-deps.sh" ${engine:+"$engine"}

step "2/6 Build, in $build"
say 'This takes a minute the first time.'
begun=$(date +%s)
build_agentbox
[ "$provider" != docker ] || find_docker
say "Built $(agentbox version | head -n 1) in $(($(date +%s) - begun)) seconds."

step '3/6 A git repository on this machine'
if [ "$provider" = docker ]; then
	kind=scripts
	make_scripts
elif clone_this; then
	kind=clone
	say "A clone of $root, so that nothing there is touched:"
else
	kind=small
	make_small
fi
here=$(pwd -P)
must git log --oneline -n 3
say "$(git ls-files | wc -l) files"

step '4/6 The same repository in a box'
# This round needs no network, which not every user of every machine can give to a box.
case $provider in
'' | local) egress=none ;;
docker)
	egress=none
	say 'The first box of an install needs an image, which is made now; that takes a minute.'
	;;
*) egress= ;;
esac
must agentbox create -w "$here" -n quickstart -y ${provider:+--provider "$provider"} \
	${egress:+--egress "$egress"}
must agentbox list
say
"work_in_$kind"

step '5/6 What changed, and back with it'
must agentbox diff quickstart
[ -z "$(git status --porcelain)" ] || die "$here changed before the download"
must agentbox download quickstart -y
must git diff --stat
[ -n "$(git status --porcelain)" ] || die 'the change did not arrive'

step '6/6 Destroy the box'
must agentbox destroy quickstart -y
must agentbox list

step 'Done'
cat <<END
A git repository went into a box, was changed and built in there, and the change was shown and
brought back into the repository on this machine, which the box could not touch until then. The
box is gone, and so is $here, which was made for this.
$(($(date +%s) - started)) seconds in all. The program is in $build; try it with:
  $build/tests/wrapper agentbox help
END
