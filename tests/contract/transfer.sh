#!/bin/sh
# SPDX-License-Identifier: MIT
# Files go into a box and come back as they are, and nothing hostile comes with them.
. "${0%/*}/functions.sh"

# A sum over names, types, modes, times, links and contents.
tree_sum()
(
	cd "$1" || exit 1
	{
		find . ! -type l ! -path . -printf '%p\001%y %m %s %T@\0' -o -type l \
			-printf '%p\001%y %l\0' |
			sed -z 's/\(\.[0-9]*\)$//; s/\(\001d [0-7]*\).*/\1/' |
			sort -z
		find . -type f -print0 | sort -z | xargs -0 -r sha256sum --
	} | sha256sum | cut -d' ' -f1
)

odd_tree() # DIR
(
	mkdir -p "$1" && cd "$1" || exit 1
	mkdir -p deep/er/and/er empty-dir .hidden 'dir with blanks' private
	printf 'alpha\n' >plain
	: >empty
	printf '#!/bin/sh\n' >run && chmod 755 run
	printf 's' >secret && chmod 600 secret
	printf 'x' >owner-only && chmod 700 owner-only
	printf 'r' >read-only && chmod 444 read-only
	printf 'p' >private/file && chmod 700 private
	printf 'd' >deep/er/and/er/file
	printf 'blank' >'dir with blanks/a file'
	printf 'quotes' >"it's \"quoted\""
	printf 'newline' >'new
line'
	printf 'tab' >"$(printf 'a\tb')"
	printf 'dash' >./-rf
	printf 'glob' >'star*[x]?'
	printf 'colon' >'a:b'
	printf 'back' >'back\slash'
	printf 'dollar' >'$HOME `id`'
	printf 'utf8' >"$(printf 'gr\303\274n-\346\227\245\346\234\254')"
	printf 'latin1' >"$(printf 'latin\351')"
	printf 'blank at the end' >'end '
	printf 'long' >"$(printf '%0255d' 5)"
	printf 'hidden' >.hidden/.file
	"$TOOL" bytes 70000 >binary
	printf '\000\001\r\n\377' >>binary
	truncate -s 3M sparse && printf 'end' >>sparse
	ln -s plain link
	ln -s deep/er link-to-dir
	ln -s ../run deep/up
	ln -s nowhere dangling
	ln -s loop loop
	ln plain hard
	touch -d '2001-02-03 04:05:06 UTC' plain run binary sparse
	touch -d '1999-12-31 23:59:59 UTC' .hidden/.file
)

odd_tree "$T/project/odd"
odd_tree "$T/odd"
want=$(tree_sum "$T/odd")
new_box one || give_up 'a box is made of odd files'
pass 'a box is made of odd files'
one=$(b one)
me=$(in_box one id -un </dev/null)

# What was seeded.
ok 'what was seeded comes out' ab cp "$one:odd" "$T/seeded"
is "$(tree_sum "$T/seeded")" "$(tree_sum "$T/project/odd")" 'as it was'
run in_box one sh -c 'cd odd && stat -c "%a %n" run secret owner-only read-only private empty-dir/.'
is "$(echo "$out" | cut -d' ' -f1 | tr '\n' ' ')" '755 600 700 444 700 755 ' 'modes in the box'
is "$(in_box one sh -c 'find . ! -user "$(id -u)" | grep -c .' </dev/null)" 0 \
	'all of it belongs to the user of the box'
is "$(in_box one stat -c %Y odd/plain </dev/null)" "$(stat -c %Y "$T/odd/plain")" 'times in the box'
is "$(in_box one readlink odd/dangling </dev/null)" nowhere 'links in the box'
ok 'it can be written to' in_box one sh -c 'echo x >odd/new && rm odd/new && rm -r odd'

# cp, both ways.
ok 'a tree in' ab cp "$T/odd" "$one:there"
is "$(in_box one sh -c 'find there ! -user "$(id -u)" | grep -c .' </dev/null)" 0 \
	'it belongs to the user of the box'
ok 'and out' ab cp "$one:there" "$T/back"
is "$(tree_sum "$T/back")" "$want" 'as it was'
ok 'an absolute path' ab cp "$T/odd/binary" "$one:/tmp/$TAG.bin"
ok 'and out' ab cp "$one:/tmp/$TAG.bin" "$T/bin"
same "$T/bin" "$T/odd/binary" 'the same bytes'
ok 'into folders that are made' ab cp "$T/odd/run" "$one:new/and/new/run"
is "$(in_box one sh -c 'stat -c "%U %a" new new/and new/and/new/run' </dev/null | tr '\n' ' ')" \
	"$me 755 $me 755 $me 755 " 'they belong to the user of the box'
for name in 'new
line' '-rf' "it's \"quoted\"" '$HOME `id`' 'a:b' "$(printf 'latin\351')" "$(printf '%0255d' 5)"; do
	shown=$(printf %s "$name" | LC_ALL=C tr -c 'a-zA-Z0-9$`"-' '?' | cut -c 1-20)
	ab cp "$T/odd/$name" "$one:/tmp/$name" </dev/null >"$T/log" 2>&1 &&
		ab cp "$one:/tmp/$name" "$T/name" </dev/null >>"$T/log" 2>&1 &&
		cmp -s "$T/name" "$T/odd/$name" && pass "by its name: $shown" || {
		fail "by its name: $shown"
		diag "$(cat "$T/log")"
	}
done
one_line_error 1 "none-$TAG" 'what is not there' ab cp "$one:none-$TAG" "$T/x"
one_line_error 1 "none-$TAG" 'nor here' ab cp "$T/none-$TAG" "$one:x"
in_box one test -w /etc </dev/null ||
	no 'where the user may not write' ab cp "$T/odd/run" "$one:/etc/$TAG"
[ ! -e "$T/x" ] && pass 'makes nothing' || fail 'makes nothing'

# Streams.
ok 'from stdin' sh -c 'agentbox cp - "$1:/tmp/stream" <"$2"' - "$one" "$T/odd/binary"
ok 'to stdout' sh -c 'agentbox cp "$1:/tmp/stream" -' - "$one"
same "$T/run.out" "$T/odd/binary" 'the same bytes'

# Much, and many.
n=$(size 1073741824 67108864)
"$TOOL" bytes "$n" >"$T/big"
ok "$n bytes in" "$TOOL" rss "$T/rss" agentbox cp "$T/big" "$one:/tmp/big"
is "$(in_box one sha256sum </dev/null /tmp/big | cut -d' ' -f1)" \
	"$(sha256sum <"$T/big" | cut -d' ' -f1)" 'the same bytes'
ok 'and out' "$TOOL" rss "$T/rss.2" agentbox cp "$one:/tmp/big" "$T/big.back"
same "$T/big" "$T/big.back" 'the same bytes'
[ "$(sort -n "$T/rss" "$T/rss.2" | tail -n 1)" -lt 65536 ] && pass 'in constant memory' ||
	fail "in constant memory, not $(cat "$T/rss" "$T/rss.2") KiB"
in_box one rm /tmp/big </dev/null
rm "$T/big" "$T/big.back"
n=$(size 20000 2000)
mkdir "$T/many"
(cd "$T/many" && i=0 && while [ "$i" -lt "$n" ]; do
	[ $((i % 100)) -ne 0 ] || mkdir "$((i / 100))"
	echo "$i" >"$((i / 100))/$i"
	i=$((i + 1))
done)
ok "$n files in" ab cp "$T/many" "$one:many"
ok 'and out' ab cp "$one:many" "$T/many.back"
is "$(tree_sum "$T/many.back")" "$(tree_sum "$T/many")" 'as they were'

# Only half of it.
"$TOOL" bytes 300000000 >"$T/big"
"$TOOL" sigdfl agentbox cp "$T/big" "$one:half" </dev/null >/dev/null 2>&1 &
pid=$!
wait_for 10 in_box one sh -c 'ls -A | grep -q half || [ -n "$(find /tmp -size +1000k)" ]'
kill -KILL "$pid" 2>/dev/null
wait "$pid" 2>/dev/null
c=$?
run in_box one sh -c 'stat -c %s half 2>/dev/null'
case $c:$out in
*:300000000 | *:) pass 'an interrupted copy in leaves nothing half-visible' ;;
*) fail "an interrupted copy in leaves nothing half-visible ($c, $out bytes)" ;;
esac
in_box one sh -c 'head -c 300000000 /dev/zero >whole' </dev/null
"$TOOL" sigdfl agentbox cp "$one:whole" "$T/half" </dev/null >/dev/null 2>&1 &
pid=$!
wait_for 10 sh -c 'ls -A "$1" | grep half' - "$T"
kill -KILL "$pid" 2>/dev/null
wait "$pid" 2>/dev/null
c=$?
case $c:$(stat -c %s "$T/half" 2>/dev/null) in
*:300000000 | *:) pass 'nor does one out' ;;
*) fail "nor does one out ($c, $(stat -c %s "$T/half") bytes)" ;;
esac
in_box one rm -f whole half </dev/null
rm -f "$T/big" "$T/half"

# What a box makes up.  A folder beside the target must stay as it is.
mkdir "$T/victim" "$T/hostile"
printf 'mine\n' >"$T/victim/file"
sum=$(tree_sum "$T/victim")
in_box one sh -s </dev/null >/dev/null 2>&1
in_box one sh -c 'mkdir -p evil/sub && cd evil &&
	ln -s /etc abs && ln -s ../../victim up && ln -s ../victim/file up-file &&
	ln -s sub/../../../victim winding && ln -s /etc/passwd sub/passwd &&
	mkfifo fifo && printf good >good && chmod 6755 good && printf ok >sub/ok &&
	mkdir -m 1777 sticky && printf in >sticky/in && ln -s good inside && : >last' </dev/null ||
	fail 'hostile files are made'
in_box one sh -c 'mknod evil/null c 1 3 2>/dev/null; true' </dev/null
code 1 'what is hostile is refused' ab cp "$one:evil" "$T/hostile/evil"
like "$err" "[0-9] .*links.* '(abs|up|up-file|winding|sub/passwd)'" "links out of it are named"
like "$err" 'fifo' 'a fifo is named'
is "$(cat "$T/hostile/evil/good" "$T/hostile/evil/sub/ok" "$T/hostile/evil/sticky/in" \
	"$T/hostile/evil/inside" 2>&1)" goodokingood 'the rest is there'
[ -f "$T/hostile/evil/last" ] && pass 'all of it' || fail 'all of it'
is "$(stat -c %a "$T/hostile/evil/good")" 755 'without setuid and setgid'
is "$(find "$T/hostile" \( -type p -o -type b -o -type c -o -type s \) | wc -l | tr -d ' ')" 0 \
	'no device and no fifo'
is "$(tree_sum "$T/victim")" "$sum" 'nothing outside of the target'
climbs=$(find "$T/hostile" -type l | while IFS= read -r link; do
	case $(readlink -m "$link") in "$T/hostile"/*) ;; *) echo "$link" ;; esac
done)
is "$climbs" '' 'no link leads out of it'
mkdir "$T/trap"
ln -s "$T/victim" "$T/trap/sub"
run ab cp "$one:evil/sub" "$T/trap"
is "$(tree_sum "$T/victim")" "$sum" 'nothing is written through a link that is here'

# The way back of a project.
git init -q -b main "$T/repo"
(cd "$T/repo" && odd_tree . && rm -f loop && printf 'x.ignored\n' >.gitignore && git add -A &&
	git commit -qm first) >/dev/null 2>&1
printf 'changed\n' >"$T/repo/plain"
before=$(git -C "$T/repo" --no-optional-locks status --porcelain | cksum)
boxes="$boxes two"
ok 'a box of a repository' ab create --provider "$P" -w "$T/repo" -n "$(b two)" -y \
	${AGENTBOX_CONTRACT_CREATE-}
two=$(b two)
is "$(git -C "$T/repo" --no-optional-locks status --porcelain | cksum)" "$before" \
	'the repository is as it was'
is "$(in_box two git status --porcelain </dev/null | cksum)" "$before" 'the same status there'
run in_box two git branch --show-current
is "$out" "agentbox/$two" 'its own branch'
in_box two sh -c 'printf "agent\n" >plain && printf "new" >"new file" && chmod 755 "new file" &&
	mkdir -p .GIT/hooks .Git sub/.git && printf bad >.GIT/hooks/pre-commit &&
	printf bad >.Git/config && printf bad >sub/.git/config &&
	printf "[core]\n\tfsmonitor = touch pwned\n" >>.git/config &&
	printf bad >.git/hooks/pre-commit && ln -s /etc/passwd stolen &&
	ln -s ../victim climbs && mkfifo pipe && rm run' </dev/null || fail 'an agent works'
config=$(cksum <"$T/repo/.git/config")
hooks=$(ls "$T/repo/.git/hooks" | cksum)
run ab diff "$two"
like "$out" '^\+agent' 'diff shows the change'
run ab download "$two" -y
is "$(cat "$T/repo/plain")" agent 'download brings it'
is "$(stat -c %a "$T/repo/new file")" 755 'with modes'
[ ! -e "$T/repo/run" ] && pass 'and what was removed' || fail 'and what was removed'
is "$(cksum <"$T/repo/.git/config") $(ls "$T/repo/.git/hooks" | cksum)" "$config $hooks" \
	'nothing of .git comes back'
[ ! -e "$T/repo/.GIT" ] && [ ! -e "$T/repo/.Git" ] && [ ! -e "$T/repo/sub/.git" ] &&
	pass 'nor under another spelling' || fail 'nor under another spelling'
[ ! -L "$T/repo/stolen" ] && [ ! -L "$T/repo/climbs" ] && [ ! -p "$T/repo/pipe" ] &&
	pass 'no link that leads out, no fifo' || fail 'no link that leads out, no fifo'
[ "$status" -ne 0 ] && pass 'which is an error' || fail 'which is an error'
like "$out$err" 'stolen' 'and named'
like "$out$err" '\.GIT/hooks' 'as is what goes by the name of .git'
is "$(tree_sum "$T/victim")" "$sum" 'nothing outside of the project'
suite_done
