# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2016,SC2034,SC2088,SC2154
# tests/contract/seed-files.sh: names, modes, links, directories, ignored files; who may do what
# on either side; many creates at once.

# B016: the user of the box may work in it, and so may others who come in.
repo "$W/plain"
seeds B016 'dubious ownership' "$W/plain"
there 'git works without being told to trust it' 'env -u GIT_CONFIG_COUNT git status >/dev/null &&
	git config --get-all safe.directory && exit 1 || git log --oneline >/dev/null'
if is_root && have setpriv; then
	chown -R 12345:12345 "$W/plain"
	refuses B016 'a repository of somebody else' "$W/plain" 'safe.directory|dubious'
	printf '[safe]\n\tdirectory = %s\n' "$W/plain" >>"$suite_config"
	seeds B016 'a repository of somebody else that is trusted' "$W/plain"
	grep -v -e '^\[safe\]' -e '	directory = ' "$suite_config" >"$T/config" &&
		cat "$T/config" >"$suite_config"
	# A directory that is no repository asks for no trust.
	mkdir "$W/of-others" && echo x >"$W/of-others/x" && chown -R 12345:12345 "$W/of-others"
	seeds B053 'files of somebody else' "$W/of-others"
	there 'the user of the box may change them' 'echo y >>x && echo z >z'
fi

# B017, B018
repo "$W/many"
suite_id='B018 creates at once' suite_dir=$W/many
suite_detail >"$T/detail"
suite_exact >"$T/exact"
count=$(size 50 8)
i=0
while [ "$i" -lt "$count" ]; do
	i=$((i + 1))
	boxes="$boxes many-$i"
	ab_create -w "$W/many" -n "$(b many-$i)" >"$T/many-$i" 2>&1 </dev/null &
done
wait
is "$(grep -l 'is running' "$T"/many-* | wc -l | tr -d ' ')" "$count" "B018 $count creates at once"
grep -h '^agentbox: ' "$T"/many-* | head -n 3 | sed 's/^/# /'
untouched 'B017 B018 creates at once: nothing changed here'
is "$(git -C "$W/many" for-each-ref | wc -l | tr -d ' '):$(git -C "$W/many" fsck 2>&1)" '1:' \
	'B018 creates at once: no branch more, and it is whole'
i=0
while [ "$i" -lt "$count" ]; do
	i=$((i + 1))
	{
		in_box "many-$i" git log -1 --format=%s </dev/null >"$T/many-$i" 2>&1
		ab destroy "$(b many-$i)" -y --force >/dev/null 2>&1 </dev/null
	} &
done
wait
is "$(cat "$T"/many-* | sort | uniq -c | tr -s ' ')" " $count Second" \
	'B018 creates at once: every one works'

# B023
mkdir -p "$W/b023/here" "$W/b023/a ~" "$HOME/tilde-$TAG"
repo "$W/b023/sp #%20? ace"
repo "$W/b023/dir:with:colons"
where()
{
	cd "$W/b023/here" || exit 99
	one=$1
	run ab create --provider "$P" -n "$(b where)" -y ${AGENTBOX_CONTRACT_CREATE-} -w "$one"
	boxes="$boxes where"
	is "$status:$(in_box where sh -c "test -f a.txt && echo there" </dev/null)" 0:there \
		"B023 -w $(printf %s "$one" | sed "s,$W,...,")"
	[ "$status" -eq 0 ] || tap_show_run create
	ab destroy "$(b where)" -y --force >/dev/null 2>&1 </dev/null
	cd "$W" || exit 99
}
where '../sp #%20? ace'
where "$W/b023/sp #%20? ace/"
where ../dir:with:colons
where '../here/../dir:with:colons/.'
cd "$W/b023/dir:with:colons" || exit 99
one_line_error 2 'workspace' 'B023 -w with nothing: is refused' ab_create -n "$(b where)" -w ''
one_line_error 1 '~/tilde' 'B023 -w ~/x that no shell has expanded: is refused' \
	ab_create -n "$(b where)" -w "~/tilde-$TAG"
cd "$W" || exit 99
rmdir "$HOME/tilde-$TAG"

# B024
odd_names()
(
	mkdir -p "$1" && cd "$1" || exit 1
	for name in -rf --help 'new
line' 'sp ace' "$(printf '\303\274n\303\257')" "$(printf 'u\314\210ni\314\210')" \
		"$(printf 'bad\377')" '"q"' "it's" "$(printf 'tab\tx')" '*' '[x]?' ':(top)' 'a\b' \
		'$HOME `id`' README readme ReadMe ' ' '...' "$(printf '%0255d' 7)" '#' '~' \
		"$(printf 'esc\033[31m')" 'end ' 'CON' 'a:b' '.gitignore~' '@{u}' 'HEAD'; do
		printf '%s' "$name" >"./$name" || exit 1
	done
	mkdir -p ' d /-d/*' && printf x >' d /-d/*/
'
)
repo "$W/odd"
odd_names "$W/odd/tracked"
host "$W/odd" 'git add . && git commit -q -m odd'
odd_names "$W/odd/new"
seeds B024 'odd names' "$W/odd"
is "$(tells 'ls -A new | wc -l | tr -d " "')" "$(ls -A "$W/odd/new" | wc -l | tr -d ' ')" \
	'B024 odd names: as many there'
there 'a change in each' 'find tracked new -type f -exec sh -c "
	for f; do echo changed >>\"\$f\" || exit 1; done" sh {} +'
run ab download "$(b "$box")" -y
is "$status" 0 'B024 odd names: come back'
[ "$status" -eq 0 ] || tap_show_run download
bytes='find . -name .git -prune -o -type f -print0 | sort -z | xargs -0 sha256sum -z --'
is "$(cd "$W/odd" && sh -c "$bytes" | sha256sum)" "$(tells "$bytes" | sha256sum)" \
	'B024 odd names: byte by byte'
# The longest path that the host can name, and one that only its parts can.
repo "$W/long"
(
	cd "$W/long" || exit 1
	# The path of the box is not shorter than that of the host by more than this.
	part=$(printf '%0200d' 0)
	for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19; do
		mkdir "$part" && cd "$part" || exit 1
	done
	printf deep >file && printf deep >"$(printf '%0200d' 1)"
)
seeds B024 'a path of 4096 bytes' "$W/long"
is "$(tells 'find . -name file -printf "%d\n"')" 20 'B024 a path of 4096 bytes: is there'

# B027, B028, B029
repo "$W/ignored"
(
	cd "$W/ignored" && mkdir -p node_modules/x/y apps/api deep/er .git/info &&
		printf 'node_modules/\n.env\n' >.gitignore && printf '*.log\n' >deep/.gitignore &&
		printf '.dev.vars\n' >.git/info/exclude && printf 'id_rsa\n' >"$T/excludes" &&
		git add . && git commit -q -m i && i=0 &&
		while [ "$i" -lt "$(size 2000 200)" ]; do
			echo $i >"node_modules/x/y/$i.ignored" && i=$((i + 1))
		done &&
		echo "SECRET-$TAG" >.env && echo "SECRET-$TAG" >id_rsa && mkdir more &&
		echo "SECRET-$TAG" >apps/api/.dev.vars && echo "SECRET-$TAG" >deep/er/x.log
) || exit 99
git config -f "$suite_config" core.excludesFile "$T/excludes"
suite_id='B029 what git ignores' suite_dir=$W/ignored
suite_detail >"$T/detail"
suite_exact >"$T/exact"
run ab_create -w "$W/ignored" -n "$(b ignored)"
boxes="$boxes ignored"
is "$status" 0 "$suite_id: a box is made"
said=$out$err
is "$(in_box ignored sh -c 'find . -name .git -prune -o -type f -print | sort
	git status --porcelain' </dev/null | tr '\n' ' ')" \
	'./.gitignore ./a.txt ./b.txt ./deep/.gitignore ./src/run ' \
	'B027 B029 what git ignores: stays here, by whatever rule'
# In a box without a file system of its own, /tmp is that of this test.
case $name_of_provider in mock*) where='.' ;; *) where='. ~ /tmp' ;; esac
is "$(in_box ignored sh -c "grep -rls \"\$1\$2\" $where 2>/dev/null | head -n 3" \
	sh SECRET- "$TAG" </dev/null)" '' 'B029 what git ignores: none of it is anywhere in the box'
untouched "$suite_id: nothing changed here"
ab destroy "$(b ignored)" -y >/dev/null 2>&1 </dev/null
like "$said" 'ignored .*stay' 'B028 what git ignores: create says that it stays here'
run ab_create -w "$W/ignored" -n "$(b included)" --include-ignored .env --include-ignored .dev.vars
boxes="$boxes included"
is "$status:$(in_box included sh -c 'cat .env apps/api/.dev.vars; ls id_rsa deep/er/x.log
	git status --porcelain' </dev/null 2>/dev/null | tr '\n' ' ')" \
	"0:SECRET-$TAG SECRET-$TAG " \
	'B028 what git ignores: goes along when it is named, and only that'
[ "$status" -eq 0 ] || tap_show_run create
untouched 'B028 what git ignores: nothing changed here'
ab destroy "$(b included)" -y >/dev/null 2>&1 </dev/null
git config -f "$suite_config" --unset core.excludesFile

# B030
repo "$W/modes"
(cd "$W/modes" && for m in 755 700 444 600 644 640 555; do
	echo $m >m$m && chmod $m m$m || exit 1
done; git add . && git commit -q -m modes && mkdir -m 2775 setgid && echo x >setgid/x) || exit 99
seeds B030 'modes' "$W/modes"
there 'programs run' 'test -x m755 && test -x m700 && test -z "$(git diff --summary)"'
there 'the owner of a file for reading only may remove it' 'rm -f m444'
mkdir -p "$W/cp/d" && echo 'exit 7' >"$W/cp/d/run" && chmod 750 "$W/cp/d/run" &&
	mkdir -m 700 "$W/cp/d/s"
ok 'B030 modes: cp' ab cp "$W/cp/d" "$(b "$box"):cp-of-it"
is "$(tells 'stat -c %a "$1/run" "$1/s" | tr "\n" " "' sh cp-of-it)" '750 700 ' \
	'B030 modes: as they are here'
(umask 077 && cp -r "$W/modes" "$W/modes-077" && umask 077 && exec true)
umask 077
seeds B030 'a umask of 077' "$W/modes-077"
umask 022
if is_root; then
	# Who owns it there is not root.
	repo "$W/closed"
	(cd "$W/closed" && echo c >c && chmod 000 c && mkdir d && echo w >d/w && chmod 200 d/w &&
		chmod 000 d && git add b.txt && chmod 000 b.txt) || exit 99
	next_box_of "$W/closed"
	is "$status:$(tells 'cat c d/w b.txt; git status --porcelain' | tr '\n' ' ')" \
		'0:c w beta ?? c ?? d/ ' 'B030 what only root may read here: can be read there'
	untouched 'B030 what only root may read here: nothing changed here'
fi

# Directories without git, and what no repository keeps.
mkdir -p "$W/dir/empty" "$W/dir/a/b" "$W/none" "$W/ro/d"
printf 'x\n' >"$W/dir/a/b/x"
printf '*\n' >"$W/dir/.gitignore"
(cd "$W/dir" && ln -s a/b link && ln -s loop loop && ln -s ../../../etc/passwd out &&
	ln -s /nowhere dangling && truncate -s 5M sparse && echo end >>sparse && ln a/b/x hard &&
	mkdir -m 1777 sticky && echo s >sticky/s)
seeds state 'a directory without git' "$W/dir"
is "$(tells 'test -d empty && stat -c %a sticky/. a | tr "\n" " "')" '777 755 ' \
	'state a directory without git: empty ones too'
is "$(tells 'readlink loop out; stat -c %s sparse')" "loop
../../../etc/passwd
5242884" 'state a directory without git: links as they are'
seeds state 'an empty directory' "$W/none"
is "$(tells 'ls -A')" '' 'state an empty directory: is empty'
repo "$W/pipes"
mkfifo "$W/pipes/fifo"
perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0); chdir shift; bind(S, pack_sockaddr_un("s"))' \
	"$W/pipes" 2>/dev/null || mkfifo "$W/pipes/s"
seeds state 'a FIFO and a socket' "$W/pipes"
is "$(tells 'ls -A fifo s 2>/dev/null')" '' 'state a FIFO and a socket: stay here'
echo x >"$W/ro/d/x"
chmod 555 "$W/ro/d" "$W/ro"
chmod 444 "$W/ro/d/x"
seeds state 'a directory for reading only' "$W/ro"
chmod -R u+w "$W/ro"
repo "$W/ro-git"
chmod -R a-w "$W/ro-git"
seeds state 'a repository for reading only' "$W/ro-git"
there 'may be worked in' 'chmod -R u+w . && echo x >>a.txt && git commit -q -am x'
chmod -R u+w "$W/ro-git"
if is_root; then
	repo "$W/locked"
	chown -R 12345 "$W/locked/src"
else
	repo "$W/locked"
	chmod 000 "$W/locked/a.txt"
	refuses state 'a file that may not be read' "$W/locked" 'a\.txt'
	chmod 644 "$W/locked/a.txt"
	mkdir "$W/locked/closed" && echo x >"$W/locked/closed/x" && chmod 000 "$W/locked/closed"
	refuses state 'a directory that may not be read' "$W/locked" 'closed'
	chmod 755 "$W/locked/closed"
fi

# Of these git keeps no record, and would not see them in the box either.
repo "$W/unkept"
(cd "$W/unkept" && mkdir -p x/.Git .GIT/hooks && echo 1 >x/.Git/config && echo 2 >.GIT/hooks/h &&
	ln -s a.txt .gitmodules && echo fine >x/git~1 && echo fine >x/.git.) || exit 99
for suite_dir in "$W/unkept" "$W/unkept-plain"; do
	[ -e "$suite_dir" ] || { cp -a "$W/unkept" "$suite_dir" && rm -rf "$suite_dir/.git"; }
	suite_id="state names of git's own, ${suite_dir##*/}"
	next_box_of "$suite_dir"
	is "$status:$(tells 'cat x/git~1 x/.git.; find . -path ./.git -prune -o -iname .git -print
		ls -d .gitmodules 2>/dev/null' | tr '\n' ' ')" '0:fine fine ' \
		"$suite_id: stay here, the rest comes"
	[ "$status" -eq 0 ] || tap_show_run create
	like "$said" 'stays here: git keeps no file of that name' "$suite_id: that is said"
	untouched "$suite_id: nothing changed here"
done

# B034, B035, B036: nothing of the box appears here, and nothing of the host is in its way.
repo "$W/hooks"
host "$W/hooks" 'mkdir tracked-hooks && echo x >tracked-hooks/pre-commit && git add . &&
	git commit -q -m h && rm -r .git/hooks && ln -s ../tracked-hooks .git/hooks'
seeds B034 'hooks that are a symbolic link' "$W/hooks"
host "$W/hooks" 'ln -sfn nowhere .git/hooks && git config core.hooksPath /nowhere/hooks'
seeds B034 'hooks that lead nowhere, and core.hooksPath' "$W/hooks"
there 'a commit' 'git commit -q --allow-empty -m x'
mkdir "$W/ghost"
seeds B035 'an empty directory' "$W/ghost"
in_box "$box" sh -c 'cd ~ && exec sleep 3971' </dev/null >/dev/null 2>&1 &
pid=$!
wait_for 10 some_running "$box" 3971
kill -KILL "$pid" 2>/dev/null
wait "$pid" 2>/dev/null
is "$(ls -A "$W/ghost")" '' 'B035 an empty directory: is so after a kill'
repo "$W/masked"
host "$W/masked" 'echo A=b >.env.example && git add . && git commit -q -m env'
seeds B036 'nothing is masked' "$W/masked"
there 'git add and git stash' 'test -z "$(git status --porcelain)" && git add . &&
	echo x >>a.txt && git stash -q && test -f .env.example && git stash pop -q &&
	test -z "$(find . -path ./.git -prune -o ! -type f ! -type d ! -type l -print)"'
