#!/bin/sh
# SPDX-License-Identifier: MIT
# Install what agentbox needs to be built and run, and with --test what its tests need.
set -eu
LC_ALL=C
export LC_ALL

usage()
{
	cat <<'END'
usage: install-deps.sh [--docker] [--test] [--list]

Installs the packages that are missing with apt-get, on Debian 12 or newer and on Ubuntu 24.04
or newer, as root or through sudo.  On another system it names what is missing and stops.

  --docker also an engine for the provider docker, and what makes the image of its boxes
  --test   also what `make check` and scripts/check.sh need
  --list   print the names of the packages and install nothing
END
}

# The one list: when, Debian package, how to see that it is there, why.  docs/dependencies.md
# says more about each, and a test keeps the two together.
requirements()
{
	cat <<'END'
build|gcc|command gcc|compiles agentbox
build|libc6-dev|file /usr/include/stdio.h|headers of the C library
build|make|command make|runs the build
build|autoconf|command autoreconf|makes configure
build|automake|command automake|makes the Makefile
build|libtool|command libtoolize|builds the provider plugins
build|pkgconf|command pkg-config|finds the libraries below
build|perl|command pod2man|pod2man turns the manual into man pages
build|libsqlite3-dev|module sqlite3 3.35|SQLite keeps the state
build|libcjson-dev|module libcjson 1.7.14|cJSON reads and writes JSON
build|libyaml-dev|module yaml-0.1 0.2.2|libyaml reads configuration
build|libarchive-dev|module libarchive 3.4|libarchive moves trees in and out of boxes
build|libssl-dev|module libcrypto 3.0|libcrypto names contents as git does
build|libseccomp-dev|module libseccomp 2.5|knows the system calls that boxes may make
build|libcurl4-openssl-dev|module libcurl 7.85|libcurl speaks HTTP to the Docker engine
run|git|command git|agentbox puts repositories into boxes with it
run|tar|command tar|unpacks trees inside a box
run|slirp4netns|command slirp4netns|the network of local boxes
test|check|module check 0.15|the framework of the unit tests
test|clang|command clang|the second compiler, with sanitizers
test|libclang-rt-dev|sanitizer|AddressSanitizer and UBSan of clang
test|llvm|command llvm-symbolizer|names in the reports of the sanitizers
test|clang-format|command clang-format|checks the layout of the code
test|clang-tidy|command clang-tidy|static analysis
test|shellcheck|command shellcheck|checks the shell scripts
test|passt|command pasta|carries packets of local boxes that are made so
test|nftables|file /usr/sbin/nft|lists the rules of a box's network
test|uidmap|command newuidmap|ids of their own for the boxes of ordinary users
test|acl|command setfacl|gives boxes of ordinary users access to what is mounted
test|iputils-ping|command ping|asks from a box whether pings get out
test|e2fsprogs|command mkfs.ext4|makes a file system with quotas to test --disk on
test|git-lfs|command git-lfs|repositories that use Git LFS
docker+test|mmdebstrap|command mmdebstrap|makes images of a Debian suite; recommended for local
docker+test|docker.io|command dockerd|the Docker engine that the docker provider is tried on
test|openssl|command openssl|certificates for an engine that speaks TLS
test|zstd|command zstd|unpacks what test providers are sent compressed
test|libmicrohttpd-dev|module libmicrohttpd 0.9.71|serves HTTP in the emulated clouds
test|zlib1g-dev|module zlib 1.2.11|bodies in gzip in the emulated clouds
test|xz-utils|command xz|packs the tarball in make distcheck
END
}

die()
{
	printf 'install-deps: %s\n' "$*" >&2
	exit 1
}

kinds='build run'
list=
for arg in "$@"; do
	case $arg in
	--docker) kinds="$kinds docker" ;;
	--test) kinds="$kinds test" ;;
	--list) list=1 ;;
	-h | --help)
		usage
		exit 0
		;;
	*)
		usage >&2
		exit 2
		;;
	esac
done

wanted()
{
	requirements | while IFS='|' read -r kind package probe why; do
		case " $kinds " in
		*" ${kind%+*} "* | *" ${kind#*+} "*)
			printf '%s|%s|%s\n' "$package" "$probe" "$why"
			;;
		esac
	done
}

is_there() # PROBE
{
	# Split on purpose: a probe is a word and its arguments.
	# shellcheck disable=SC2086
	set -- $1
	case $1 in
	command) command -v "$2" >/dev/null 2>&1 ;;
	file) [ -e "$2" ] ;;
	module) command -v pkg-config >/dev/null 2>&1 && pkg-config --atleast-version="$3" "$2" ;;
	sanitizer) sanitizer_works ;;
	esac
}

sanitizer_works()
{
	command -v clang >/dev/null 2>&1 || return 1
	echo 'int main(void){return 0;}' |
		clang -x c -fsanitize=address,undefined -o /dev/null - >/dev/null 2>&1
}

dpkg_has()
{
	command -v dpkg-query >/dev/null 2>&1 &&
		[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

missing()
{
	wanted | while IFS='|' read -r package probe why; do
		is_there "$probe" || dpkg_has "$package" ||
			printf '%s|%s|%s\n' "$package" "$probe" "$why"
	done
}

os_release_field() # NAME
(
	# shellcheck source=/dev/null
	. "$os_release"
	eval "echo \"\${$1:-}\""
)

# Sets $system, and $known when apt-get can be trusted with the names above.
find_system()
{
	system='this system' known=
	os_release=${AGENTBOX_OS_RELEASE:-/etc/os-release}
	[ -r "$os_release" ] || return 0
	system=$(os_release_field PRETTY_NAME)
	version=$(os_release_field VERSION_ID)
	id=$(os_release_field ID)
	case $id in
	debian) oldest=12 ;;
	ubuntu) oldest=24 ;;
	*) return 0 ;;
	esac
	# Debian testing has no number yet.
	[ -z "$version" ] || [ "${version%%.*}" -ge "$oldest" ] || return 0
	command -v apt-get >/dev/null 2>&1 && known=1
	return 0
}

name_and_stop()
{
	{
		echo "install-deps: on $system nothing is installed for you (only on Debian 12" \
			'or newer and Ubuntu 24.04 or newer).'
		echo 'Install what is missing with its own package manager:'
		printf '%s\n' "$lacking" | while IFS='|' read -r package probe why; do
			printf '  %-28s %s (Debian: %s)\n' "$(in_words "$probe")" "$why" "$package"
		done
	} >&2
	exit 1
}

in_words() # PROBE
{
	# shellcheck disable=SC2086
	set -- $1
	case $1 in
	command) echo "the program $2" ;;
	file) echo "$2" ;;
	module) echo "$2 >= $3 (pkg-config)" ;;
	sanitizer) echo "clang -fsanitize=address" ;;
	esac
}

as_root()
{
	if [ "$(id -u)" -eq 0 ]; then
		env DEBIAN_FRONTEND=noninteractive "$@"
	else
		sudo env DEBIAN_FRONTEND=noninteractive "$@"
	fi
}

# What apt-get says is only of interest when it fails.
quietly()
{
	if ! as_root "$@" >"$log" 2>&1 </dev/null; then
		return 1
	fi
}

plan()
{
	# shellcheck disable=SC2086
	apt-get -s $options install $packages 2>"$log"
}

install_missing()
{
	options='--no-install-recommends --no-remove -o DPkg::Lock::Timeout=300'
	packages=$(printf '%s\n' "$lacking" | cut -d'|' -f1 | tr '\n' ' ')
	log=$(mktemp "${TMPDIR:-/tmp}/install-deps.XXXXXX")
	trap 'rm -f "$log"' EXIT

	echo "agentbox needs these packages, which $system does not have installed yet:"
	printf '%s\n' "$lacking" | while IFS='|' read -r package probe why; do
		printf '  %-18s %s\n' "$package" "$why"
	done
	if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null 2>&1; then
		die "not root, and sudo is missing (run as root: apt-get install" \
			"--no-install-recommends $packages)"
	fi

	fresh=
	if ! steps=$(plan); then
		echo 'The package lists are missing or too old: running apt-get update.'
		quietly apt-get -q update || { cat "$log" >&2; die 'apt-get update failed'; }
		fresh=1
		steps=$(plan) || { cat "$log" >&2; die 'apt-get cannot install them'; }
	fi
	count=$(printf '%s\n' "$steps" | grep -c '^Inst ') || :
	echo "With what they depend on, apt-get installs $count packages; this can take minutes."

	# shellcheck disable=SC2086 # a list of names and one of options
	if quietly apt-get -q -y $options install $packages; then
		:
	elif [ -z "$fresh" ] && quietly apt-get -q update &&
		# Lists that are there may still name files that a mirror has replaced.
		quietly apt-get -q -y $options install $packages; then
		:
	else
		tail -n 40 "$log" >&2
		die 'apt-get install failed (its last lines are above)'
	fi
	echo 'Installed.'
}

if [ -n "$list" ]; then
	wanted | cut -d'|' -f1
	exit 0
fi

lacking=$(missing)
if [ -z "$lacking" ]; then
	echo 'Everything that agentbox needs is installed.'
	exit 0
fi
find_system
[ -n "$known" ] || name_and_stop
install_missing

lacking=$(missing)
if [ -n "$lacking" ]; then
	die "still missing after the installation: $(printf '%s\n' "$lacking" | cut -d'|' -f1 |
		tr '\n' ' ')"
fi
