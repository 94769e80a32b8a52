#!/bin/sh
# SPDX-License-Identifier: MIT
# The scripts parse, the list of packages is documented, and another system is only told.
. "${0%/*}/functions.sh"

deps=$SRC/scripts/install-deps.sh
for file in "$SRC"/scripts/*.sh "$SRC"/.ci/run "$SRC"/tests/*/*.sh; do
	# .ci/run is one of the few that name their shell otherwise.
	ok "${file#"$SRC"/} parses" sh -n "$file"
done

run sh "$deps" --list --test
for package in $out; do
	like "$(cat "$SRC/docs/dependencies.md")" "\`$package\`" \
		"docs/dependencies.md explains $package"
done
for package in $(sed -n 's/^| `\([a-z0-9+.-]*\)` .*/\1/p' "$SRC/docs/dependencies.md"); do
	like "$out" "^$package\$" "$package of docs/dependencies.md is in install-deps.sh"
done

# A system without apt-get, without any of the tools.
mkdir "$T/bin"
for program in sh cat cut grep id printf tr; do
	path=$(command -v "$program")
	case $path in
	/*) ln -s "$path" "$T/bin/$program" ;;
	esac
done
printf 'ID=fedora\nPRETTY_NAME="Fedora Linux 41"\nVERSION_ID=41\n' >"$T/os-release"
other()
{
	env PATH="$T/bin" AGENTBOX_OS_RELEASE="$1" sh "$deps"
}
code 1 'another system is not touched' other "$T/os-release"
is "$out" '' 'nothing is said to be installed there'
like "$err" 'Fedora Linux 41' 'the system is named'
like "$err" 'automake' 'a missing program is named'
like "$err" 'sqlite3 >= 3' 'a missing library is named'
printf 'ID=debian\nPRETTY_NAME="Debian GNU/Linux 11"\nVERSION_ID=11\n' >"$T/os-release"
code 1 'an older Debian is not touched' other "$T/os-release"
like "$err" 'Debian GNU/Linux 11' 'and named'
code 2 'an unknown option is refused' sh "$deps" --frobnicate
done_testing
