#!/bin/sh
# SPDX-License-Identifier: MIT
# From nothing to work done in a box: install, build, put a repository into a box, change it
# there, bring the change back, destroy the box.
set -eu

usage()
{
	cat <<'END'
usage: quickstart.sh [--provider NAME]

Installs what is missing (scripts/install-deps.sh), builds agentbox in build/, and shows one
whole round with a small git repository made for it: create, exec, diff, download, destroy.
Nothing but the packages and build/ is left behind.
END
}

provider=
while [ $# -gt 0 ]; do
	case $1 in
	--provider)
		[ $# -ge 2 ] || { usage >&2; exit 2; }
		provider=$2
		shift
		;;
	--provider=*) provider=${1#*=} ;;
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
	fi
	rm -rf "$scratch"
	exit "$code"
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

# A program with a bug, and a test that finds it.
make_repository()
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
	git -c init.defaultBranch=main init -q .
	git config user.name 'Quick Start'
	git config user.email quickstart@example.org
	git add .
	git commit -qm 'Average of some numbers'
}

step '1/6 Packages'
sh "$root/scripts/install-deps.sh"

step "2/6 Build, in $build"
say 'This takes a minute the first time.'
begun=$(date +%s)
build_agentbox
say "Built $(agentbox version | head -n 1) in $(($(date +%s) - begun)) seconds."

step '3/6 A git repository on this machine, with a test that fails'
make_repository
must git log --oneline
show make -s check
[ "$code" -ne 0 ] || die 'the test was meant to fail before the change'

step '4/6 The same repository in a box'
must agentbox create -w "$scratch/average" -n quickstart -y ${provider:+--provider "$provider"}
must agentbox list
say
say 'Work in the box (this is where an agent would work): mend the program, run its test.'
must agentbox exec quickstart -- sed -i 's,sum / argc,sum / (argc - 1),' average.c
must agentbox exec quickstart -- make check

step '5/6 What changed, and back with it'
must agentbox diff quickstart
git diff --quiet || die 'the repository on this machine changed before the download'
must agentbox download quickstart -y
must git diff --stat
must make -s check
git diff --quiet && die 'the change did not arrive'

step '6/6 Destroy the box'
must agentbox destroy quickstart -y
must agentbox list

step 'Done'
cat <<END
A repository with a failing test went into a box; the program was mended and its test passed in
there; the change was shown, brought back into the repository on this machine, and its test
passes here too. The box is gone, and so is the repository that was made for this.
$(($(date +%s) - started)) seconds in all. The program is built in $build; try it with:
  $build/tests/wrapper agentbox help
END
