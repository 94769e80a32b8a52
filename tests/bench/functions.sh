# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# tests/bench/functions.sh: what the scripts of `make bench` share.
#
#	. "${0%/*}/functions.sh"      sets BUILD, agentbox, pairs, scratch (removed at the end) and
#	                              AGENTBOX_HOME in it; every box there is destroyed at the end
#	at_end COMMAND...             before that, the last one first
#	row WHAT FLOOR OURS TARGET    a line, with the ratio
#	figures                       what pairs printed into $scratch/figures: sets floor, ours,
#	                              beside (the median of the differences), kb, floor_cpu,
#	                              ours_cpu, and third, third_cpu of a third side
#	quiet_repo DIR                a repository in which git does nothing in the background
#	small_repo DIR                one of 20 files and one commit
#	git_work REPO PACK            the git commands of a create, as words of a side of pairs
#	large_tree DIR                195 MiB in 20,000 files

BUILD=${AGENTBOX_TEST_BUILDDIR:?is not set: run make bench}
# Not the wrapper: the shell that it is would be timed too.
agentbox=$BUILD/agentbox
# shellcheck disable=SC2034 # for the scripts
pairs=$BUILD/tests/bench/pairs
scratch=$(mktemp -d "${TMPDIR:-/tmp}/abx-bench.XXXXXX")
AGENTBOX_HOME=$scratch/home
export AGENTBOX_HOME
ending=

at_end() # COMMAND...
{
	ending="$*
$ending"
}

clean_up()
{
	cd /
	eval "$ending"
	"$agentbox" destroy --all -y --force >/dev/null 2>&1 || :
	rm -rf "$scratch"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' HUP TERM

row() # WHAT FLOOR OURS TARGET
{
	printf '%-36s %9.2f %9.2f %7s  %s\n' "$1" "$2" "$3" \
		"$(awk -v a="$2" -v b="$3" 'BEGIN { printf "%.2f", b / a }')" "$4"
}

# shellcheck disable=SC2034 # for the scripts
figures()
{
	third='' third_cpu=''
	{
		read -r floor _ _ floor_cpu && read -r ours beside kb ours_cpu &&
			{ read -r third _ _ third_cpu || :; }
	} <"$scratch/figures"
}

memory_row()
{
	row '  memory of its largest process, MB' 30 \
		"$(awk -v kb="$kb" 'BEGIN { print kb / 1024 }')" '<= 30 MB'
}

# What git does in the background is no part of what is measured.
quiet_repo() # DIR
{
	git -C "$1" -c init.defaultBranch=main init -q .
	git -C "$1" config user.name Bench
	git -C "$1" config user.email bench@example.org
	git -C "$1" config gc.auto 0
	git -C "$1" config gc.autoDetach false
	git -C "$1" config maintenance.auto false
}

# 20 files of some KB and one commit: what is measured is the box, not the copying.
small_repo() # DIR
{
	mkdir "$1"
	quiet_repo "$1"
	for i in $(seq 20); do
		seq "$i" 700 >"$1/file$i.txt"
	done
	git -C "$1" add .
	git -C "$1" commit -qm 'Bench'
}

# The git commands that a create runs, here and in the box, one after the other.
git_work() # REPO PACK
{
	printf '%s\n' git -C "$1" config -z --list \
		--then git -C "$1" status --porcelain=v2 --branch --untracked-files=all \
		--then git -C "$1" pack-objects -q --revs --all "$2" \
		--then git -C "$1" status --porcelain=v2 --branch --untracked-files=all \
		--then git -C "$1" rev-list --objects --quiet HEAD \
		--then git -C "$1" rev-parse 'HEAD^{tree}'
}

large_tree() # DIR
{
	mkdir "$1"
	perl -e 'my $text = join("", map { "line $_ of a file that is like source\n" } 1 .. 280);
		for my $d (1 .. 200) {
			mkdir "$ARGV[0]/d$d";
			for my $f (1 .. 100) {
				open(my $o, ">", "$ARGV[0]/d$d/f$f") or die;
				print $o "$d $f\n", $text or die;
				close($o) or die;
			}
		}' "$1"
}
