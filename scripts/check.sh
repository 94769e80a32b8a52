#!/bin/sh
# SPDX-License-Identifier: MIT
# Every check: two compilers, sanitizers, all tests, the tarball, an installed tree, the code's
# layout and static analysis.  The last line is "N passed, N failed".
set -u

usage()
{
	cat <<'END'
usage: check.sh [--no-install] [--keep] [STAGE...]

Stages, all by default:
  gcc      make the tarball, build it alone and read-only with gcc, warnings are errors, and run the
           tests
  clang    build the tree with clang, AddressSanitizer and UBSan, and run the tests
  install  install the gcc build into a scratch prefix and use it from there
  code     clang-format, clang-tidy, shellcheck
  dist     uninstall and distclean of the gcc build leave nothing; make distcheck with a few tests

They run in this order, on a copy below $TMPDIR (/tmp), which is removed at the end; the tree is
not written to.
  --no-install  do not install missing packages
  --keep        keep the copy with its logs
END
}

install=1
keep=
stages=
while [ $# -gt 0 ]; do
	case $1 in
	--no-install) install= ;;
	--keep) keep=1 ;;
	-h | --help)
		usage
		exit 0
		;;
	gcc | clang | install | dist | code) stages="$stages $1" ;;
	*)
		usage >&2
		exit 2
		;;
	esac
	shift
done
: "${stages:=gcc clang install code dist}"

root=$(cd "$(dirname "$0")/.." && pwd -P) || exit 1
passed=0
failed=0
begun=$(date +%s)
jobs=$(nproc)
# A build or a test that hangs ends here and not with the patience of whoever waits.
limit=1500

if [ -n "$install" ]; then
	sh "$root/scripts/install-deps.sh" --test || exit 1
fi
work=$(mktemp -d "${TMPDIR:-/tmp}/agentbox-check.XXXXXX") || exit 1
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' HUP TERM
tree=$work/tree
# Tests also run as other users.
chmod 755 "$work"

clean_up()
{
	if [ -n "$keep" ]; then
		echo "kept: $work"
	else
		chmod -R u+w "$work" 2>/dev/null
		rm -rf "$work"
	fi
}

say()
{
	printf '%4ds  %s\n' $(($(date +%s) - begun)) "$*"
}

indent()
{
	sed 's/^/       | /'
}

# point DESC CMD...: one check; its output is shown when it fails.
point()
{
	desc=$1
	shift
	if "$@" >"$work/point.log" 2>&1 </dev/null; then
		passed=$((passed + 1))
		say "ok: $desc"
		return 0
	fi
	failed=$((failed + 1))
	say "FAILED: $desc"
	# Of a whole test run only what failed.
	if grep -q '^FAIL: ' "$work/point.log"; then
		grep '^FAIL: \|^ERROR: ' "$work/point.log" | head -n 40 | indent
	else
		tail -n 40 "$work/point.log" | indent
	fi
	return 1
}

bounded()
{
	timeout -k 10 "$limit" "$@"
}

# Everything that belongs to the tree, with what is not committed yet.
copy_tree()
(
	mkdir "$tree" && cd "$root" || exit 1
	if [ -e .git ]; then
		git -c safe.directory='*' ls-files -z -co --exclude-standard |
			perl -0ne 'chomp; print "$_\0" if -e $_ || -l $_' >"$work/files"
	else
		find . -path ./build -prune -o ! -type d -print0 >"$work/files"
	fi
	tar -c --null -T "$work/files" | tar -x -C "$tree"
)

bootstrap()
{
	copy_tree && cd "$tree" && autoreconf -fi
}

# What others get, unpacked as `make distcheck` does: nobody may write there.
unpack_tarball()
(
	mkdir "$work/pack" "$work/source" && cd "$work/pack" || exit 1
	"$tree/configure" && bounded make -j"$jobs" dist &&
		tar -x -f agentbox-*.tar.xz --strip-components=1 -C "$work/source" &&
		chmod -R a-w "$work/source"
)

build() # NAME SOURCE CONFIGURE-ARG...
(
	name=$1
	source=$2
	shift 2
	mkdir -p "$work/$name" && cd "$work/$name" || exit 1
	"$source/configure" "$@" && bounded make -j"$jobs"
)

# A line of tests/skips allows this one: TEST | PATTERN | WHY.
skip_is_listed() # TEST TEXT
{
	grep -v '^#' "$tree/tests/skips" | while IFS='|' read -r test pattern why; do
		[ "$(echo "$test" | tr -d ' ')" = "$1" ] && [ -n "$why" ] || continue
		pattern=$(echo "$pattern" | sed 's/^ *//; s/ *$//')
		printf '%s\n' "$2" | grep -Eq -e "$pattern" && echo yes
	done | grep -q yes
}

show_failures() # LOG
{
	if grep -q '^not ok' "$1"; then
		grep -A 14 '^not ok' "$1" | grep -v '^ok\|^PASS:' | head -n 60 | indent
	else
		tail -n 30 "$1" | indent
	fi
}

# What automake's driver wrote into the logs, as RESULT|TEST|TEXT.
list_results() # DIR
{
	find "$1/tests" -name '*.log' | sort | while IFS= read -r log; do
		test=${log#"$1/"}
		test=${test%.log}
		[ ! -e "$tree/$test.sh" ] || test=$test.sh
		sed -n "s,^\(PASS\|XFAIL\|FAIL\|XPASS\|SKIP\|ERROR\): $test *\(.*\),\1|$test|\2,p" \
			"$log"
	done
}

# Add up what the tests of a build said; sets $ran and $skips.
count_results() # NAME
{
	list_results "$work/$1" >"$work/results"
	ran=$(grep -c '^' "$work/results")
	passed=$((passed + $(grep -c '^PASS|\|^XFAIL|' "$work/results")))
	skips=0
	while IFS='|' read -r result test text; do
		log=$work/$1/${test%.sh}.log
		case $result in
		PASS | XFAIL) continue ;;
		SKIP)
			if skip_is_listed "$test" "$text"; then
				skips=$((skips + 1))
				continue
			fi
			text="skipped, and not on tests/skips: $text"
			log=
			;;
		ERROR)
			# A test that failed also ends with 1, which is no second failure.
			! grep -q "^FAIL: $test " "$log" || continue
			;;
		esac
		failed=$((failed + 1))
		say "FAILED: $1: $test: $text"
		[ -z "$log" ] || echo "$log" >>"$work/failing"
	done <"$work/results"
	[ -s "$work/failing" ] || return
	sort -u "$work/failing" | while IFS= read -r log; do
		say "log of ${log#"$work/"}:"
		show_failures "$log"
	done
	rm "$work/failing"
}

run_tests() # NAME
{
	before=$failed
	(cd "$work/$1" && bounded make -j"$jobs" check) >"$work/$1.log" 2>&1 </dev/null
	code=$?
	count_results "$1"
	say "$1: $ran tests, $((failed - before)) failed, $skips skipped as written in tests/skips"
	[ "$code" -eq 0 ] || [ "$failed" -gt "$before" ] ||
		point "$1: make check" sh -c 'cat "$1"; exit 1' - "$work/$1.log"
	point "$1: no fewer tests than tests/minimum says" \
		test "$ran" -ge "$(cat "$tree/tests/minimum")"
}

stage_gcc()
{
	have_gcc_build || return
	run_tests gcc
}

# The other stages stand on this build.  Its source is named as `make distcheck` does, relatively.
have_gcc_build()
{
	[ ! -e "$work/gcc/agentbox" ] || return 0
	[ ! -e "$work/source" ] || return 1
	point 'gcc: make dist' unpack_tarball &&
		point 'gcc: the tarball alone builds with --enable-werror' build gcc ../source \
			CC=gcc --enable-werror --prefix="$work/prefix"
}

stage_clang()
{
	point 'clang: build with --enable-sanitizer=address,undefined' build clang "$tree" \
		CC=clang CFLAGS='-O1 -g' --enable-werror \
		--enable-sanitizer=address,undefined || return
	ASAN_OPTIONS=strict_string_checks=1:detect_stack_use_after_return=1
	UBSAN_OPTIONS=print_stacktrace=1
	export ASAN_OPTIONS UBSAN_OPTIONS
	run_tests clang
	unset ASAN_OPTIONS UBSAN_OPTIONS
}

installed() # PROGRAM ARG...
{
	program=$1
	shift
	env -u AGENTBOX_PROVIDER_PATH -u AGENTBOX_LIBEXEC_PATH AGENTBOX_HOME="$work/home" \
		"$work/prefix/bin/$program" "$@"
}

no_archives()
{
	[ -z "$(find "$work/prefix" -name '*.la' -o -name '*.a')" ]
}

example_builds()
{
	cp -R "$tree/sdk/example" "$work/example" && cd "$work/example" &&
		PKG_CONFIG_PATH=$work/prefix/lib/pkgconfig make CC=gcc
}

stage_install()
{
	have_gcc_build || return
	point 'install: make install' make -C "$work/gcc" install || return
	point 'install: the installed program runs' installed agentbox version
	point 'install: it finds its providers' installed agentbox provider list
	point 'install: no libtool archive and no static library' no_archives
	for file in "$work"/prefix/lib/agentbox/providers/*.so; do
		# What others stand for need not be there.
		case ${file##*/} in
		agentbox-local.so) how='' ;;
		*) how=--no-service ;;
		esac
		point "install: agentbox-provider-check $how ${file##*/}" \
			installed agentbox-provider-check ${how:+"$how"} "$file"
	done
	point 'install: a provider outside the tree builds against the installed header' \
		example_builds || return
	for file in "$work"/example/*.so; do
		point "install: agentbox-provider-check ${file##*/}" \
			installed agentbox-provider-check "$file"
	done
}

# Names the files; `clang-format -i FILE` mends one.
format()
(
	cd "$tree" || exit 1
	find core sdk providers tests -name '*.[ch]' -print0 |
		xargs -0 -n 8 -P "$jobs" clang-format --dry-run -Werror 2>&1 |
		sed -n 's/^\([^: ]*\):[0-9]*:[0-9]*: error: .*/\1/p' | sort | uniq -c |
		grep . && exit 1
	exit 0
)

# The flags that the compiler gets, from the Makefile itself.
tidy()
{
	flags=$(cd "$work/gcc" && printf '%s\n' 'include Makefile' 'abx-flags:' \
		'	@echo $(DEFS) $(DEFAULT_INCLUDES) $(check_program_cppflags)' \
		'	@echo $(CHECK_CFLAGS)' |
		make -s -f - abx-flags) || return 1
	cd "$work/gcc" || return 1
	find "$tree/core" "$tree/sdk" "$tree/providers" -name '*.c' -print0 |
		xargs -0 -n 4 -P "$jobs" sh -c 'flags=$1; shift
			clang-tidy --quiet "$@" -- -std=gnu17 $flags 2>/dev/null' - "$flags"
}

shells()
{
	cd "$tree" && find scripts tests core .ci -name '*.sh' -print0 -o -path .ci/run -print0 |
		xargs -0 -n 3 -P "$jobs" shellcheck -S warning -x -P SCRIPTDIR
}

stage_code()
{
	point 'code: clang-format' format
	point 'code: shellcheck' shells
	have_gcc_build && point 'code: clang-tidy' tidy
}

# The rules of automake's that follow are those which `make distcheck` applies.
in_gcc_build()
{
	bounded make -C "$work/gcc" "$@"
}

uninstall_from() # DIRECTORY ARG...
{
	where=$1
	shift
	in_gcc_build "$@" uninstall &&
		in_gcc_build "$@" distuninstallcheck_dir="$where" distuninstallcheck
}

uninstalls()
{
	in_gcc_build install && uninstall_from "$work/prefix"
}

# Nobody may write to the prefix meanwhile.
uninstalls_destdir()
{
	mkdir "$work/dest" && chmod -R a-w "$work/prefix" &&
		in_gcc_build DESTDIR="$work/dest" install &&
		uninstall_from "$work/dest" DESTDIR="$work/dest"
}

# All tests ran in the stage gcc; these stand for each kind of them.
few_tests='tests/unit/test-config tests/abi/symbols.sh tests/cli/config.sh
	tests/cli/style-headers.sh tests/cli/style-manual.sh tests/contract/finds.sh'

distcheck()
{
	in_gcc_build -j"$jobs" distcheck DISTCHECK_CONFIGURE_FLAGS=--enable-werror \
		TESTS="$(echo $few_tests)"
}

distcleans()
{
	rm -f "$work"/gcc/agentbox-*.tar.xz && in_gcc_build distcleancheck
}

stage_dist()
{
	have_gcc_build || return
	point 'dist: make uninstall leaves nothing' uninstalls
	point 'dist: nor with DESTDIR' uninstalls_destdir
	point 'dist: make distcheck, with a few tests' distcheck
	point 'dist: make distclean leaves nothing' distcleans
}

if point 'make configure from a copy of the tree' bootstrap; then
	# The last one empties the build that others stand on.
	for stage in gcc clang install code dist; do
		case " $stages " in
		*" $stage "*) "stage_$stage" ;;
		esac
	done
fi
say 'done'
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
