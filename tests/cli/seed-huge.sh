#!/bin/sh
# SPDX-License-Identifier: MIT
# A repository of very many files, and files that are very large, go in, are worked on, and come
# back.  Small ones without AGENTBOX_TEST_FULL=1: then 200,000 files, and files of 4.1 and 4.5 GiB,
# of data and of holes.
. "${0%/*}/functions.sh"
# shellcheck source=large-functions.sh
. "${0%/*}/large-functions.sh"

if [ -n "${AGENTBOX_TEST_FULL-}" ]; then
	files=200000 data=4402341478 holes=4831838208
else
	files=2000 data=6000001 holes=7000001
fi

# ---- many files ----

# What is known of each path is held until the end: up to 600 bytes for each above 20,000.
rss_few=$rss_max
[ "$files" -le 20000 ] || rss_max=$((rss_max + (files - 20000) * 600 / 1024))

many=$T/many
git init -q "$many" && perl -e '
	my ($files) = @ARGV;
	binmode STDOUT;
	print "commit refs/heads/main\ncommitter A <a\@example.org> 1700000000 +0000\n";
	print "data 4\nmany\n";
	for my $n (1 .. $files) {
		my $text = "file $n\n" x ($n % 100 + 1);
		printf "M %s inline d%d/e%d/f%d\n", $n % 50 ? "100644" : "100755", $n % 211,
			$n % 7, $n;
		printf "data %d\n%s\n", length $text, $text;
	}
	print "done\n"' "$files" | git -C "$many" fast-import --quiet --done || exit 99
git -C "$many" checkout -q main && git -C "$many" update-index -q --refresh || exit 99
before=$(tree_sum "$many")
timed 'many files go in' create --provider "$provider" -w "$many" -n many -y
is "$(sums_there many .)" "$(sums "$many")" 'all of them are there'
is "$(ab exec many -n -- sh -c 'git rev-parse HEAD; git status --porcelain
	git ls-files | wc -l')" "$(git -C "$many" rev-parse HEAD)
$files" 'with nothing to commit'
is "$(tree_sum "$many")" "$before" 'the repository is as it was'
ok 'some are changed, deleted, renamed, made' ab exec many -n -- sh -c '
	find d1 d2 d3 d4 -type f -print0 | xargs -0 perl -e "for (@ARGV) {
		open my \$out, q(>>), \$_ or die; print \$out qq(more\n) }" &&
	rm -r d5 d6 && git mv d7 moved && mkdir made && cp -r d8 d9 made && chmod -R a+x d10'
timed 'diff' diff many --stat
timed 'download' download many -y
is "$(works "$many")" "$(works_there many .)" 'both sides are equal'
(cd "$many" && rm -r d11 && find d12 d13 -type f -exec sh -c 'for f; do echo here >>"$f"; done' \
	sh {} + && mkdir new && cp -r d14 new && git add -A && git commit -q -m newer) || exit 99
timed 'sync' sync many
is "$(works_there many .)" "$(works "$many")" 'and equal again'
ok 'every file is changed there, and committed' ab exec many -n -- sh -c 'rm -r d15 &&
	git add -A && git commit -q -m box && git ls-files -z | xargs -0 perl -e "for (@ARGV) {
		open my \$out, q(>>), \$_ or die; print \$out qq(every\n) }" &&
	git commit -q -am all'
timed 'fetch' fetch many
is "$(git -C "$many" rev-parse agentbox/many)" "$(ab exec many -n -- git rev-parse HEAD)" \
	'the commits are here'
is "$(git -C "$many" fsck --connectivity-only 2>&1 | grep -v '^dangling\|^notice')" '' \
	'and all they need'
ab destroy many -y >/dev/null 2>&1
rm -rf "$many"

# ---- large files ----

rss_max=$rss_few

large=$T/large
mkdir "$large"
"$BUILD/tests/contract/agentbox-contract-tool" bytes "$data" >"$large/data"
truncate -s "$holes" "$large/holes" && printf end >>"$large/holes"
printf middle | dd of="$large/holes" bs=1 seek=$((holes / 2)) conv=notrunc status=none
want=$(sums "$large")
timed 'large files go in' create --provider "$provider" -w "$large" -n large -y
is "$(sums_there large .)" "$want" 'every byte is there'
timed 'and come out' cp large:. "$T/out"
is "$(sums "$T/out")" "$want" 'as they were'
rm -rf "$T/out"
ok 'both become larger' ab exec large -n -- sh -c 'echo more >>data && echo more >>holes'
timed 'download of large files' download large -y
is "$(works "$large")" "$(works_there large .)" 'every byte came back'
timed 'cp of one of them' cp "$large/holes" large:copy
is "$(ab exec large -n -- sha256sum copy | cut -c 1-64)" \
	"$(sha256sum "$large/holes" | cut -c 1-64)" 'is there'
ab destroy large -y >/dev/null 2>&1
rm -f "$large/data"

# Committed: here, where it travels in a pack, and there, from where it is fetched.
(cd "$large" && git init -q . && git add . && git commit -q -m holes) || exit 99
timed 'a large file that is committed' create --provider "$provider" -w "$large" -n large -y
is "$(sums_there large .):$(ab exec large -n -- git status --porcelain)" "$(sums "$large"):" \
	'is there, with nothing to commit'
ok 'another one is committed there' ab exec large -n -- sh -c 'echo again >>holes &&
	git commit -q -am again'
timed 'fetch of it' fetch large
is "$(git -C "$large" cat-file blob agentbox/large:holes | sha256sum)" \
	"$(ab exec large -n -- sha256sum holes | sed 's/holes/-/')" 'every byte is here'
done_testing
