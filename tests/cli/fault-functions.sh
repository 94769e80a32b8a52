# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154
# tests/cli/fault-functions.sh: interrupting agentbox at each of its moments; sourced behind
# functions.sh.
#
#	faulted N KIND CMD...   run agentbox CMD; at its Nth call that changes a file below $under
#	                        KIND happens (tests/preload/fault-at-call.c); sets $status
#	count_moments CMD...    how many of them there are, in $moments
#	chosen MOMENTS MAX      some of 1..MOMENTS, with the first and the last; all of them with
#	                        AGENTBOX_TEST_FULL=1
#	entries DIR             a line for each file and link, but for .git: name, mode, sum
#	only_of NOW OLD NEW     each line of NOW is in OLD or NEW, and none is missing that is in
#	                        both: files are as they were or as they will be
#	$repo                   a repository in which somebody works
#	$max                    how many moments of each kind
#	as_expected KIND        $status is that of KIND, and one line says why

fault_preload=$BUILD/tests/preload/.libs/fault-at-call.so
max=5
repo=$T/repo
make_repo "$repo" >/dev/null && make_dirty "$repo" || exit 99

faulted()
{
	fault_at=$1 fault_kind=$2
	shift 2
	status=0
	FAULT_UNDER=$under FAULT_AT=$fault_at FAULT_KIND=$fault_kind LD_PRELOAD=$fault_preload \
		"$BUILD/tests/wrapper" agentbox "$@" </dev/null >"$T/run.out" 2>"$T/run.err" ||
		status=$?
}

count_moments()
{
	FAULT_UNDER=$under FAULT_COUNT=$T/moments LD_PRELOAD=$fault_preload \
		"$BUILD/tests/wrapper" agentbox "$@" </dev/null >"$T/run.out" 2>"$T/run.err"
	moments=$(cat "$T/moments")
}

chosen()
{
	if [ -n "${AGENTBOX_TEST_FULL-}" ] || [ "$1" -le "$2" ]; then
		seq "$1"
	else
		seq "$2" | awk -v n="$1" -v k="$2" '{ print 1 + int(($1 - 1) * (n - 1) / (k - 1)) }'
	fi
}

entries()
(
	cd "$1" && perl -MDigest::SHA -MFile::Find -e '
		my @all;
		find({ no_chdir => 1, wanted => sub {
			return $File::Find::prune = 1 if $_ eq "./.git";
			my @st = lstat or die "$_: $!";
			my $sum;
			if (-l _) {
				$sum = "link " . readlink;
			} elsif (-f _) {
				open my $in, "<", $_ or die "$_: $!";
				binmode $in;
				$sum = Digest::SHA->new(1)->addfile($in)->hexdigest;
			} else {
				return;
			}
			my $name = $_;
			s/([^!-~])/sprintf "%%%02x", ord $1/ge for $name, $sum;
			push @all, sprintf "%s %o %s\n", $name, $st[2] & 07777, $sum;
		} }, ".");
		print sort @all;'
)

only_of()
{
	sort "$2" "$3" | uniq >"$T/may.be"
	LC_ALL=C sort "$T/may.be" -o "$T/may.be"
	LC_ALL=C sort "$1" >"$T/now.sorted"
	LC_ALL=C comm -23 "$T/now.sorted" "$T/may.be" >"$T/strange"
	for fault_list in "$1" "$2" "$3"; do
		cut -d' ' -f1 "$fault_list" | LC_ALL=C sort >"$fault_list.names"
	done
	LC_ALL=C comm -12 "$2.names" "$3.names" | LC_ALL=C comm -23 - "$1.names" >>"$T/strange"
	[ ! -s "$T/strange" ]
}

as_expected()
{
	case $1 in
	# How many parts a stream comes in differs by one or two.
	kill) [ "$status" -eq 137 ] || [ "$status" -eq 0 ] ;;
	int) [ "$status" -eq 130 ] || [ "$status" -eq 0 ] ;;
	full) [ "$status" -eq 0 ] || [ "$status" -eq 1 ] ;;
	esac && [ "$(grep '^agentbox: ' "$T/run.err" | grep -vc '^agentbox: warning: ')" -le 1 ]
}
