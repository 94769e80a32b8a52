# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2016,SC2154
# tests/contract/seed-back.sh: what comes back, and what goes wrong on the way.

mkdir "$W/victim"
printf 'mine\n' >"$W/victim/file"
victim=$(exact "$W/victim")

# B038
repo "$W/hostile"
host "$W/hostile" 'mkdir real && echo r >real/r && git add . && git commit -q -m r'
seeds B038 'a box that plants links' "$W/hostile"
there 'they are planted' 'ln -s ../victim d && ln -s ../../victim/file up &&
	ln -s /etc/passwd abs &&
	ln -s src/../../victim winding && rm -r real && ln -s ../victim real &&
	mkdir -p .GIT/hooks sub/.git && echo bad >.GIT/hooks/pre-commit &&
	echo bad >sub/.git/config &&
	mkfifo pipe && echo good >good && chmod 6755 good && ln good hard'
config=$(exact "$W/hostile/.git")
run ab download "$(b "$box")" -y
is "$status" 1 'B038 links that are planted: are refused'
for name in d up abs winding real .GIT/hooks; do
	like "$out$err" "(^|[^a-z])$name" "B038 links that are planted: $name is named"
done
is "$(exact "$W/victim")" "$victim" 'B038 links that are planted: nothing outside is touched'
is "$(exact "$W/hostile/.git")" "$config" 'B038 links that are planted: nor is .git'
is "$(cat "$W/hostile/good" "$W/hostile/hard"; stat -c %a "$W/hostile/good")" 'good
good
755' 'B038 links that are planted: the rest is there'
climbs=$(find "$W/hostile" -name .git -prune -o -type l -print | while IFS= read -r link; do
	case $(readlink -m "$link") in "$W/hostile"/*) ;; *) echo "$link" ;; esac
done)
is "$climbs" '' 'B038 links that are planted: no link leads out'
there 'a directory takes the place of a link' 'rm d && mkdir d && echo pwn >d/file &&
	rm real && mkdir real && echo pwn >real/file'
ln -s ../victim "$W/hostile/d"
run ab download "$(b "$box")" -y
is "$(exact "$W/victim")" "$victim" 'B038 a path through a link that is here: is not followed'
rm "$W/hostile/d"

# B040
repo "$W/twice"
seeds B040 'a second download' "$W/twice"
there 'a link out of it' 'ln -s ../victim/file x'
run ab download "$(b "$box")" -y
[ "$status" -eq 1 ] && [ ! -e "$W/twice/x" ] && [ ! -L "$W/twice/x" ] && c=0 || c=1
is "$c" 0 'B040 a link out of it: does not come back'
ln -s ../victim/file "$W/twice/x"
there 'a file in its place' 'rm x && echo pwn >x'
run ab download "$(b "$box")" -y
is "$(exact "$W/victim")" "$victim" 'B040 a second download: does not write through a link'

# B042
repo "$W/climb"
seeds B042 'names that climb' "$W/climb"
there 'they are made' 'mkdir -p "..x" "x.." "a\\..\\b" && echo x >"..x/f" && echo y >"x../f" &&
	echo z >"a\\..\\b/f" && echo w >"..\\..\\w"'
run ab download "$(b "$box")" -y
is "$status:$(cat "$W/climb/..x/f" "$W/climb/x../f" | tr '\n' ' ')" '1:x y ' \
	'B042 names that climb: those that do not come back'
like "$out" 'A \.\..*w: not brought back' 'B042 names that climb: those that would somewhere do not'
is "$(find "$W/climb" -name '*\\*')" '' 'B042 names that climb: nothing of them is here'
is "$(find "$W" -maxdepth 1 -newer "$W/climb/..x/f" ! -path "$W" ! -path "$W/climb")" '' \
	'B042 names that climb: nothing is beside it'

# B045
mkdir -p "$W/links/in" "$W/links/beside"
(cd "$W/links/in" && echo t >t && ln -s t here && ln -s ../beside out && ln -s nowhere gone &&
	ln -s -- -1 minus && echo last >z)
mkdir "$W/copied"
seeds B045 'links, copied' "$W/copied"
ok 'B045 links, copied: in' ab cp "$W/links/in" "$(b "$box"):in"
is "$(tells 'cd in && readlink here out gone minus && cat z' | tr '\n' ' ')" \
	't ../beside nowhere -1 last ' 'B045 links, copied: as they are, to the last'
run ab cp "$(b "$box"):in" "$T/in-again"
is "$(cd "$T/in-again" && readlink here gone minus | tr '\n' ' ')$(cat "$T/in-again/z")" \
	't nowhere -1 last' 'B045 links, copied: and out, to the last'
like "$err" "out" 'B045 links, copied: one that leads out is named'

# B046
"$TOOL" bytes 26000000 >"$T/26"
ok 'B046 a large file: into the workspace' ab cp "$T/26" "$(b "$box"):/workspace/26"
is "$(tells 'sha256sum <26')" "$(sha256sum <"$T/26")" 'B046 a large file: every byte'
if [ "$(tells 'test -w /proc/version || echo no')" = no ]; then
	no 'B046 where nothing can be written: is an error' ab cp "$T/26" "$(b "$box"):/proc/26"
fi
rm "$T/26"

# B048
repo "$W/vendor"
(cd "$W/vendor" && echo stub >._a.txt && echo ds >.DS_Store && git add -f . &&
	git commit -q -m vendor && echo stub >._b.txt) || exit 99
setfattr -n user.com.apple.provenance -v x "$W/vendor/a.txt" 2>/dev/null || :
seeds B048 'stubs and attributes of other systems' "$W/vendor"

# B053
is "$(tells 'find . ! -user "$(id -u)" | wc -l | tr -d " "')" 0 \
	'B053 what is seeded: belongs to the user'
mkdir -p "$W/parents"
echo x >"$W/parents/x"
ok 'B053 cp with parents that are made' ab cp "$W/parents/x" "$(b "$box"):one/two/x"
is "$(tells 'stat -c %u one one/two one/two/x | sort -u')" "$(tells 'id -u')" \
	'B053 cp: all of it is of the user'
there 'who may change it' 'echo y >>one/two/x && touch one/two/y one/z && rm -r one'

# B054
there 'B054 the workspace may be emptied' 'find . -mindepth 1 -delete && test -z "$(ls -A)"'

# B056
if is_root && have setpriv && [ -z "${AGENTBOX_CONTRACT_HOME-}" ]; then
	repo "$W/ids"
	chmod 755 "$T" "$W"
	# They may not be given a network everywhere.
	alone=
	[ "$P" != local ] || alone='--egress none'
	for id in 1788609210:100 65534:65534; do
		home=$T/home-${id%:*}
		mkdir -p "$home" && chown -R "$id" "$home" "$W/ids"
		as()
		{
			env AGENTBOX_HOME="$home/a" HOME="$home" TMPDIR="$home" setpriv \
				--reuid "${id%:*}" --regid "${id#*:}" --clear-groups "$@"
		}
		run as agentbox doctor --provider "$P"
		if [ "$status" -ne 0 ]; then
			pass "B056 uid ${id%:*}: doctor says why there is no box"
			continue
		fi
		before=$(exact "$W/ids")
		# A list of arguments.
		# shellcheck disable=SC2086
		ok "B056 uid ${id%:*}: a box" as agentbox create --provider "$P" -w "$W/ids" \
			-n one -y $alone
		run as agentbox exec one -- sh -c 'id -un >/dev/null ||
			test -n "${AGENTBOX_MOCK_ROOT-}" && echo x >>a.txt &&
			git status --porcelain && test -O a.txt'
		is "$status:$out" '0: M a.txt' "B056 uid ${id%:*}: works there"
		is "$(exact "$W/ids")" "$before" "B056 uid ${id%:*}: nothing changed here"
		ok "B056 uid ${id%:*}: download" as agentbox download one -y
		is "$(stat -c %u:%g "$W/ids/a.txt")" "$id" \
			"B056 uid ${id%:*}: files are the caller's"
		as agentbox destroy --all -y --force >/dev/null 2>&1 </dev/null
	done
	chown -R 0:0 "$W/ids"
fi

# Without a home, the name and the address are nobody's; the box is made all the same.
repo "$W/homeless"
run env -u HOME -u GIT_CONFIG_GLOBAL agentbox create --provider "$P" -w "$W/homeless" \
	-n "$(b homeless)" -y ${AGENTBOX_CONTRACT_CREATE-}
boxes="$boxes homeless"
is "$status:$(in_box homeless git log -1 --format=%s </dev/null)" 0:Second \
	'state no HOME: a box is made'
[ "$status" -eq 0 ] || tap_show_run create
ab destroy "$(b homeless)" -y --force >/dev/null 2>&1 </dev/null
