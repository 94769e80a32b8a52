#!/bin/sh
# SPDX-License-Identifier: MIT
# Directories of this machine in boxes of the provider local: who may write there, and what for.
. "${0%/*}/functions.sh"
# shellcheck source=user-functions.sh
. "${0%/*}/user-functions.sh"

ab doctor --provider local >/dev/null 2>&1 || skip_all 'no boxes here'
user=12345
mkdir "$T/p" "$T/u"
# Whose mode decides who can get at what is in it.
chmod 711 "$T" && chmod 755 "$T/p"
printf 'x\n' >"$T/p/file"

make_box() # RUNNER NAME ARG...
{
	runner=$1 name=$2
	shift 2
	"$runner" create -w "$T/p" -n "$name" --egress none -y "$@"
}
set_id='for mode in 4755 2755 6755; do
	chmod $mode s 2>/dev/null && echo "chmod $mode"
done
chmod 755 s
cp /bin/true t && install -m 4755 t t2 2>/dev/null && echo install
mv t s; test -u t2 -o -g t2 && echo t2
true'

# A directory whose owner is who makes the box: the box user is its owner there.
writes() # RUNNER WHO DIR UID
{
	dir=$3
	mkdir -m 755 "$dir" && echo old >"$dir/old" && chown -R "$4:$4" "$dir" || return 0
	ok "$2: a box" make_box "$1" rw --mount "$dir:/mnt/d:rw" --mount "$dir:/mnt/ro" || return 0
	ok "$2: its user writes, changes and removes" "$1" exec rw -- sh -c '
		cd /mnt/d && echo new >new && echo more >>old && mkdir deep && mv new deep/new'
	is "$(stat -c %u:%g "$dir/deep/new")" "$4:$4" "$2: what it writes is its owner's"
	is "$(cat "$dir/old")" "old
more" "$2: what was there has changed"
	no "$2: but not where it is read-only" "$1" exec rw -- touch /mnt/ro/new
	run "$1" exec rw -- cat /mnt/ro/deep/new
	is "$out" new "$2: there it is read"
	# Others of this machine can enter it: a program that becomes its owner must not land there.
	run "$1" exec rw -- sh -c "cd /mnt/d && : >s && $set_id"
	is "$out" '' "$2: no setuid and setgid bits"
	is "$(find "$dir" -perm /6000)" '' "$2: none is on this machine"
	run "$1" exec rw --user root -- sh -c "cd /mnt/d && { : >s && $set_id; }"
	is "$(find "$dir" -perm /6000)" '' "$2: not by its root either"
	is "$(find "$dir" ! -uid "$4")" '' "$2: nor does it leave files of anybody else"
	ok "$2: a restart" "$1" stop rw
	ok "$2: changes nothing" "$1" exec rw -- sh -c 'echo again >/mnt/d/again'
	run "$1" exec rw -- sh -c "cd /mnt/d && $set_id"
	is "$out" '' "$2: still no such bits"
	"$1" destroy rw -y >/dev/null 2>&1
	# Nobody else gets there: then the bits do no harm, and dpkg in the box may want them.
	mkdir -m 700 "$dir/own" && chown "$4:$4" "$dir/own"
	ok "$2: a private directory" make_box "$1" own --mount "$dir/own:/mnt/d:rw"
	ok "$2: takes them" "$1" exec own -- sh -c ': >/mnt/d/s && chmod 4755 /mnt/d/s'
	"$1" destroy own -y >/dev/null 2>&1
}

refused() # RUNNER WHO DIR ERE
{
	one_line_error 1 "^agentbox: .*mount: $3: .*$4" "$2" \
		make_box "$1" no --mount "$3:/mnt/d:rw"
	run "$1" list -g
	is "$out" 'no boxes' "$2: nothing was made"
}

# Below the workspace: what is mounted is not of the project.
ws="$T/shared  data*[x]"
mkdir -m 755 "$ws" "$ws/deep" && echo theirs >"$ws/file" && echo deep >"$ws/deep/file"
make_repo "$T/repo"
for project in repo p; do
	ok "$project: a mount below the workspace" by_root create -w "$T/$project" -n "$project" \
		--egress none -y --mount "$ws:/workspace/in/da ta*[x]:rw" \
		--mount "$T/p/file:/workspace/one"
	run by_root exec "$project" -- cat 'in/da ta*[x]/file' one
	is "$out" "theirs
x" "$project: is there"
	[ "$project" = p ] || {
		run by_root exec "$project" -- git status --porcelain --untracked-files=all
		is "$out" '' "$project: git does not see it"
	}
	ok "$project: the box writes there" by_root exec "$project" -- sh -c \
		'cd in/* && echo new >new && head -c 3000000 /dev/zero >large'
	run by_root diff "$project"
	is "$out$err" '' "$project: which is no change of the project"
	run by_root download "$project" -y --max-file 1M
	is "$status" 0 "$project: a download"
	is "$(ls -A "$T/$project/in" "$T/$project/one" 2>/dev/null)" '' \
		"$project: does not bring it here"
	ok "$project: other changes" by_root exec "$project" -- sh -c 'echo c >in/changed'
	run by_root diff "$project" --stat
	like "$out" 'in/changed' "$project: are seen as ever"
	unlike "$out" 'new' "$project: and they alone"
	[ "$project" = p ] || {
		mkdir -p "$T/repo/in/da ta*[x]" && echo mine >"$T/repo/in/da ta*[x]/file"
		code 1 "$project: the same place in the project later: sync stops" \
			by_root sync "$project" -y
		like "$err" 'where something is mounted in the box' "$project: and says so"
		is "$(cat "$ws/file")" theirs "$project: nothing is written there"
	}
	# As before what is sent again.
	cat "$SRC/core/seed/box/lib.sh" "$SRC/core/seed/box/clear.sh" |
		by_root exec "$project" -e AGENTBOX_MOUNTS=1 -- sh -s /workspace
	run by_root exec "$project" -- find . ! -type d
	is "$(printf '%s\n' "$out" | grep -cv '^./in/da ta\|^./one$')" 0 "$project: emptied"
	is "$(cat "$ws/file" "$ws/deep/file" "$ws/new")" "theirs
deep
new" "$project: but for the mount"
	by_root destroy "$project" -y >/dev/null 2>&1
	rm -f "$ws/new" "$ws/large"
done

if ! is_root; then
	one_line_error 1 'mount: /usr/lib: .*may not write there.*mount it read-only' \
		'a directory of somebody else is refused for writing' \
		make_box by_root no --mount /usr/lib:/mnt/d:rw
	done_testing
	exit
fi

run make_box by_root plain
like "$err" 'no sudo and cannot install packages' "over this machine's own root: that is said"
by_root destroy plain -y >/dev/null 2>&1
run by_root doctor --provider local
like "$out" 'sudo .*has none' 'doctor says it too'
writes by_root root "$T/d" 0
# Files of others than its owner stay as they are.
mkdir -m 755 "$T/mixed" && echo kept >"$T/mixed/other" && chown 2345:2345 "$T/mixed/other"
chmod 644 "$T/mixed/other"
ok 'root: a directory with files of others' make_box by_root mixed --mount "$T/mixed:/mnt/d:rw"
run by_root exec mixed -- cat /mnt/d/other
is "$out" kept 'root: they are read as by anybody'
no 'root: and not changed' by_root exec mixed -- sh -c 'echo x >/mnt/d/other'
no 'root: not by root of the box' by_root exec mixed --user root -- sh -c 'echo x >/mnt/d/other'
run by_root exec mixed --user root -- touch /mnt/d/new
like "$err" 'Value too large' 'root: which makes no files'
by_root destroy mixed -y >/dev/null 2>&1
mkdir "$T/else" && chown 2345:2345 "$T/else"
ok "root: somebody else's directory" make_box by_root else --mount "$T/else:/mnt/d:rw"
ok 'root: is written to as them' by_root exec else -- touch /mnt/d/new
is "$(stat -c %u "$T/else/new")" 2345 'root: and theirs it stays'
by_root destroy else -y >/dev/null 2>&1
# A file system that maps no ids.
mkdir "$T/o" "$T/o/l" "$T/o/u" "$T/o/w" "$T/o/m"
if mount -t overlay -o "lowerdir=$T/o/l,upperdir=$T/o/u,workdir=$T/o/w" o "$T/o/m" 2>/dev/null; then
	atexit umount "$T/o/m"
	refused by_root 'root: no map of ids: refused' "$T/o/m" \
		'cannot be mapped.*setfacl .*or mount it read-only'
	chmod 777 "$T/o/m"
	run make_box by_root open --mount "$T/o/m:/mnt/d:rw"
	is "$status" 0 'root: unless everybody may write there'
	like "$err" 'ids cannot be mapped' 'root: and what that means is said'
	ok 'root: as then the box does' by_root exec open -- touch /mnt/d/new
	by_root destroy open -y >/dev/null 2>&1
else
	skip 'root: a file system that maps no ids' -- 'no overlay can be mounted'
fi

mkdir "$T/ids"
chown -R "$user" "$T/u"
{ cat /etc/passwd && echo "abxtest:x:$user:$user::$T/u:/bin/sh"; } >"$T/ids/passwd"
echo "$user:1700000000:65536" >"$T/ids/with"
: >"$T/ids/without"
if ! have setpriv unshare || ! [ -e /etc/subuid ] || ! [ -e /etc/subgid ]; then
	skip 'ordinary users' -- 'setpriv, unshare, /etc/subuid and /etc/subgid are not all there'
	done_testing
	exit
fi
if ! setpriv --reuid "$user" --regid "$user" --clear-groups test -x "$BUILD/tests/wrapper"; then
	skip 'ordinary users' -- 'they cannot reach the build tree'
	done_testing
	exit
fi
writes by_user_without_ids 'user without ids' "$T/single" "$user"
refused by_user_without_ids "user without ids: another's directory" "$T/else" \
	'you may not write there.*mount it read-only'
if ! have newuidmap; then
	skip 'a user with ids' -- 'newuidmap is not installed'
	done_testing
	exit
fi
mkdir -m 755 "$T/many" && chown "$user:$user" "$T/many"
refused by_user_with_ids 'user with ids: the box is somebody else' "$T/many" \
	"the box's user may not write there.*setfacl -R -m u:1700001000:rwX,.*or mount it read-only"
mkdir -m 700 "$T/closed" && chown "$user:$user" "$T/closed"
one_line_error 1 'may not read there.*setfacl -R -m u:1700001000:rX' \
	'user with ids: what the box cannot read is refused too' \
	make_box by_user_with_ids no --mount "$T/closed:/mnt/d"
if have setfacl && setpriv --reuid "$user" --regid "$user" --clear-groups setfacl -R -m \
	"u:1700001000:rwX,d:u:1700001000:rwX,d:u:$user:rwX" "$T/many" 2>/dev/null; then
	ok 'user with ids: the remedy helps' \
		make_box by_user_with_ids acl --mount "$T/many:/mnt/d:rw"
	ok 'user with ids: the box writes' by_user_with_ids exec acl -- sh -c \
		'umask 077 && mkdir /mnt/d/in && echo new >/mnt/d/in/file'
	ok 'user with ids: and its owner goes on' setpriv --reuid "$user" --regid "$user" \
		--clear-groups sh -c 'echo more >>"$1/in/file" && rm -r "$1/in"' sh "$T/many"
	by_user_with_ids destroy acl -y >/dev/null 2>&1
else
	skip 'user with ids: the remedy helps' -- 'no access lists here'
fi
done_testing
