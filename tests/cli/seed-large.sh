#!/bin/sh
# SPDX-License-Identifier: MIT
# A large repository and real trees of the machine go into a box and come out again, byte by byte.
# Small ones without AGENTBOX_TEST_FULL=1: then 50,000 commits, 20,000 files, all of /usr/include
# and of what npm brings.  Times, memory and sizes are said.
. "${0%/*}/functions.sh"
# shellcheck source=large-functions.sh
. "${0%/*}/large-functions.sh"

if [ -n "${AGENTBOX_TEST_FULL-}" ]; then
	commits=50000 files=20000 only=
else
	commits=500 files=500 only=/linux
fi

# The history of this project, or its files alone where it comes without one (there they may be
# read-only), and commits on top of it, until there are enough of both.
large_repo() # DIR
(
	if [ -d "$SRC/.git" ] && git clone -q --no-local "$SRC" "$1" 2>/dev/null; then
		git -C "$1" checkout -q -B main
	else
		git init -q "$1" && (cd "$SRC" && tar -c --exclude .git --exclude 'build*' \
			README.md core sdk tests docs) | tar -x -C "$1" && cd "$1" &&
			chmod -R u+w . && git add . && git commit -q -m 'All of it' || exit 1
	fi
	cd "$1" && perl -e '
		my ($commits, $files) = @ARGV;
		my @names = grep { -f && !-l } split /\0/, `git ls-files -z`;
		my (%data, $i);
		for my $name (@names) {
			local $/;
			open my $in, "<", $name or die;
			binmode $in;
			$data{$name} = <$in> // "";
		}
		my $copies = $files - @names;
		my $head = `git rev-parse HEAD`;
		my $have = `git rev-list --count HEAD`;
		my $put = sub {
			my ($path, $text) = @_;
			$path =~ s/(["\\])/\\$1/g;
			printf "M 100644 inline \"%s\"\ndata %d\n%s\n", $path, length $text, $text;
		};
		binmode STDOUT;
		for my $n (1 .. $commits - $have) {
			my $when = 1700000000 + $n;
			my $text = "Commit $n";
			print "commit refs/heads/large\ncommitter A <a\@example.org> $when +0000\n";
			printf "data %d\n%s\n", length $text, $text;
			print "from $head" if $n == 1;
			my $name = $names[$n % @names];
			$put->("turn/" . $n % 97, "$n\n" x ($n % 50 + 1));
			next if $copies <= 0;
			# Few of them each time, so that histories of directories grow as well.
			for (1 .. 1 + int($files / $commits)) {
				last if $copies-- <= 0;
				$i++;
				my $from = $names[$i % @names];
				my $to = "copy-" . int($i / @names) . "/" . $from;
				$put->($to, $data{$from} . "copy $i\n");
			}
		}
		print "done\n"' "$2" "$3" | git fast-import --quiet --done || exit 1
	git checkout -q large && git update-index -q --refresh
	echo dirty >>README.md
	echo untracked >untracked
)

large_repo "$T/large" "$commits" "$files" 2>"$T/log" || {
	sed 's/^/# /' "$T/log"
	fail 'a large repository'
	done_testing
}
n=$(git -C "$T/large" rev-list --count HEAD)
m=$(git -C "$T/large" ls-files | wc -l)
diag "$n commits, $m files, $(du -sk "$T/large/.git" | cut -f1) KiB of .git," \
	"$(du -sk --exclude .git "$T/large" | cut -f1) KiB of files"
[ "$n" -ge "$commits" ] && [ "$m" -ge "$files" ] && pass 'it is large' || fail 'it is large'
want=$(sums "$T/large")
before=$(tree_sum "$T/large")
head=$(git -C "$T/large" rev-parse HEAD)

timed 'a large repository goes in' create --provider "$provider" -w "$T/large" -n large -y
is "$(sums_there large .)" "$want" 'all of it is there'
run ab exec large -- sh -c 'git rev-parse HEAD; git status --porcelain
	git fsck --connectivity-only'
is "$out" "$head
 M README.md
?? untracked" 'its HEAD and status too, connected'
timed 'and comes out' cp large:. "$T/out"
is "$(sums "$T/out")" "$want" 'as it was'
is "$(git -C "$T/out" rev-parse HEAD)" "$head" 'with its repository'
is "$(tree_sum "$T/large")" "$before" 'the repository is as it was'

# Work on every file comes back into what the box was made of.
ok 'work on every file' ab exec large -- sh -c \
	'git ls-files -z | xargs -0 -n 1000 perl -e "for (@ARGV) { next if -l;
		open my \$out, q(>>), \$_ or die; print \$out qq(more\n) }"'
timed 'download' download large -y
is "$(cd "$T/large" && find . -name .git -prune -o -type f -print0 | sort -z |
	xargs -0 -r sha256sum -z -- | sha256sum)" \
	"$(ab exec large -- sh -c 'find . -name .git -prune -o -type f -print0 | sort -z |
	xargs -0 -r sha256sum -z -- | sha256sum')" 'both sides are equal'
ab destroy large -y >/dev/null 2>&1
rm -rf "$T/large" "$T/out"

tree() # WHAT DIR: a copy of it goes in and out
{
	cp -a "$2" "$T/tree" || return
	rm -rf "$T/tree/.git"
	want=$(sums "$T/tree")
	diag "$2: $(find "$T/tree" ! -type d | wc -l) files, $(du -sk "$T/tree" | cut -f1) KiB"
	timed "$1 goes in" create --provider "$provider" -w "$T/tree" -n tree -y
	is "$(sums_there tree .)" "$want" "$1: all of it is there"
	mkdir "$T/empty"
	# Links that lead out of a tree do not come back, and that is said.
	climbs=$(find "$T/tree" -type l | while IFS= read -r link; do
		case $(readlink -m "$link") in "$T/tree"/*) ;; *) echo "${link#"$T/tree/"}" ;; esac
	done)
	[ -z "$climbs" ] || expected=1
	timed "$1 comes out" cp tree:. "$T/back"
	expected=0
	[ -z "$climbs" ] || diag "links that lead out: $(echo "$climbs" | wc -l)"
	(cd "$T/tree" && printf '%s\n' "$climbs" | tr '\n' '\0' | xargs -0 -r rm -f --)
	is "$(sums "$T/back")" "$(sums "$T/tree")" "$1: as it was"
	ab destroy tree -y >/dev/null 2>&1
	chmod -R u+w "$T/tree" "$T/back"
	rm -rf "$T/tree" "$T/back" "$T/empty"
}

tree "headers$only" "/usr/include$only"
# What npm installed for itself, or else the modules of perl: many small files in deep folders.
for dir in /usr/lib/node_modules /usr/share/nodejs /usr/share/perl /usr/share/doc; do
	[ -d "$dir" ] && [ -n "$(find "$dir/" -type f | head -n 1)" ] || continue
	[ -n "${AGENTBOX_TEST_FULL-}" ] || dir=$(find "$dir/" -mindepth 1 -maxdepth 1 -type d |
		sort | head -n 1)
	[ -n "$dir" ] || continue
	tree "$dir" "$dir"
	break
done
done_testing
