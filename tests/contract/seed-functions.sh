# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2016,SC2034,SC2154
# tests/contract/seed-functions.sh: what the parts of the suite of seeding (seed.sh) stand on.
#
#	repo "$W/x"                     a small repository
#	seeds B013 'a detached HEAD' "$W/x" [ARG OF CREATE...]
#	there 'what is under way can be ended' 'git commit -q --no-edit'
#
# seeds makes the box $box of a directory and says, one point each, whether
#	create succeeds
#	files have the same names, modes, times, links and bytes
#	HEAD, index, status, submodules and nested repositories are the same
#	the box's repository is whole, on the right branch, and all of it is the box user's
#	here not a byte, name, mode, owner, time or inode changed: in the directory, in what
#	$beside names (directories that belong to it), and in the user's git configuration
# What create said is in $said.  The next one destroys the box.
#
#	there DESC SCRIPT [ARG...]      SCRIPT succeeds in the workspace of $box
#	tells SCRIPT [ARG...]           what it says there
#	refuses ID TEXT DIR ERE [ARG..] create fails on one line that matches; nothing is made
#	untouched DESC                  what seeds looked at is still as it was
#	exact DIR...                    a sum of all that `untouched` looks at
#	look                            what is compared, of the current directory
#	drop                            destroy $box
#	next_box_of DIR [ARG...]        $box is another one, of DIR, which is not compared: $status
# A file whose name ends in .ignored is left out of the comparison.

W=$T/work
mkdir "$W"
box='' said='' beside='' suite_n=0 suite_id='' suite_dir=''
if [ -n "${AGENTBOX_CONTRACT_HOME-}" ]; then
	suite_config=$T/gitconfig
	GIT_CONFIG_GLOBAL=$suite_config
else
	suite_config=$HOME/.gitconfig
	unset GIT_CONFIG_GLOBAL
fi
cat >"$suite_config" <<'END'
[user]
	name = Ada Example
	email = ada@example.org
[init]
	defaultBranch = main
[gc]
	auto = 0
[advice]
	detachedHead = false
[protocol "file"]
	allow = always
END
chmod 644 "$suite_config"

exact()
{
	for suite_at in "$@"; do
		[ -d "$suite_at" ] || continue
		(
			cd "$suite_at" || exit 1
			find . -printf '%p\001%y %m %U %G %s %T@ %C@ %i %l\0' | sort -z
			find . -type f -print0 | sort -z | xargs -0 -r sha256sum --
		)
	done | sha256sum
	sha256sum <"$suite_config"
	ls -A "$HOME"
}

# Run here and there, by whatever shell: all that has to be the same on both sides.
look_script='
GIT_OPTIONAL_LOCKS=0 LC_ALL=C
export GIT_OPTIONAL_LOCKS LC_ALL
echo == files
find . -mindepth 1 \( -name .git -o -name "*.ignored" \) -prune -o -type l -printf "%p l %l\0" \
	-o -type f -printf "%p f %m %s %Ts\0" | sort -z
find . -mindepth 1 \( -name .git -o -name "*.ignored" \) -prune -o -type f -print0 | sort -z |
	xargs -0 -r sha256sum -z --
echo
echo == git
find . -name .git -print0 -prune | sort -z | xargs -0 -r -n 1 sh -c '\''
	cd "${1%/.git}" || exit
	printf "%s\n" "$1"
	git rev-parse -q --verify HEAD
	git log --format=%H 2>/dev/null
	git status --porcelain=v2 -z --untracked-files=all
	git ls-files -v -s -z
	git rev-parse --is-shallow-repository
	git submodule status | sed "s/ (.*//"
'\'' sh
'

look()
{
	sh -c "$look_script" 2>&1
}

whole_script='
cd /workspace 2>/dev/null || :
GIT_OPTIONAL_LOCKS=0
export GIT_OPTIONAL_LOCKS
find . -name .git -print0 -prune | sort -z | xargs -0 -r -n 1 sh -c '\''
	cd "${1%/.git}" || exit
	test -d .git -o -f .git || echo "$1: neither file nor directory"
	git fsck --full --connectivity-only 2>&1 | grep -v -e "^notice: " -e "^dangling "
	git fsck --full >/dev/null 2>&1 || echo "$1: git fsck"
'\'' sh
find . ! -user "$(id -u)" | head -n 3 | sed "s/^/not of the user of the box: /"
[ ! -e .git ] || git symbolic-ref -q HEAD || echo detached
'

drop()
{
	[ -z "$box" ] || ab destroy "$(b "$box")" -y --force </dev/null >"$T/drop.log" 2>&1 ||
		diag "$(cat "$T/drop.log")"
	box=
}

# The branch that HEAD of the box has to be on.
suite_branch()
(
	cd "$suite_dir" || exit
	[ -e .git ] || exit
	if ! git rev-parse -q --verify HEAD >/dev/null; then
		git symbolic-ref HEAD
	elif [ -d "$(git rev-parse --git-path rebase-merge)" ]; then
		echo detached
	else
		printf 'refs/heads/agentbox/%s\n' "$(b "$1")"
	fi
)

# The lines of a look between two of its headings, a name or a fact a line.
suite_part() # FILE HEADING
{
	sed -n "/^== $2/,/^== /p" "$1" | tr '\0' '\n'
}

suite_equal() # DESC HEADING
{
	suite_part "$T/look.here" "$2" >"$T/part.here"
	suite_part "$T/look.there" "$2" >"$T/part.there"
	if cmp -s "$T/part.here" "$T/part.there"; then
		pass "$1"
	else
		fail "$1"
		diag "$(diff "$T/part.here" "$T/part.there" | head -n 12)"
	fi
}

suite_exact()
{
	# A list of directories.
	# shellcheck disable=SC2086
	exact "$suite_dir" $beside
}

untouched()
{
	if suite_exact | cmp -s - "$T/exact"; then
		pass "$1"
	else
		fail "$1"
		suite_detail >"$T/detail.now"
		diag "$(diff "$T/detail" "$T/detail.now" | head -n 8)"
	fi
}

# What exact is a sum of, to say what changed.
suite_detail()
{
	# A list of directories.
	# shellcheck disable=SC2086
	find "$suite_dir" $beside -printf '%p %y %m %U %G %s %T@ %C@ %i\n' 2>/dev/null | sort
	cat "$suite_config"
	ls -A "$HOME"
}

suite_look_both() # DESC
{
	suite_equal "$1: files as they are here" files
	suite_equal "$1: HEAD, index and status as here" git
	is "$(in_box "$box" sh -c "$whole_script" </dev/null 2>&1)" "$(suite_branch "$box")" \
		"$1: whole, on its branch, the user's"
}

# Another box of the suite, of $suite_dir.
next_box()
{
	drop
	suite_n=$((suite_n + 1))
	box=s$suite_n
	boxes="$boxes $box"
	suite_detail >"$T/detail"
	suite_exact >"$T/exact"
}

next_box_of()
{
	suite_dir=$1
	shift
	next_box
	run ab_create -w "$suite_dir" -n "$(b "$box")" "$@"
	said="$out
$err"
}

seeds()
{
	suite_id="$1 $2" suite_dir=$3
	shift 3
	(cd "$suite_dir" && look >"$T/look.here")
	next_box
	run ab_create -w "$suite_dir" -n "$(b "$box")" "$@"
	said="$out
$err"
	if [ "$status" -ne 0 ]; then
		fail "$suite_id: a box is made"
		tap_show_run create "$@"
		untouched "$suite_id: nothing changed here"
		box=
		return 1
	fi
	pass "$suite_id: a box is made"
	in_box "$box" sh -c "$look_script" >"$T/look.there" 2>&1 </dev/null
	suite_look_both "$suite_id"
	untouched "$suite_id: nothing changed here"
}

there()
{
	suite_desc="$suite_id: $1"
	shift
	[ -n "$box" ] || {
		fail "$suite_desc"
		return 1
	}
	ok "$suite_desc" in_box "$box" sh -ec "$@"
}

tells()
{
	[ -n "$box" ] && in_box "$box" sh -c "$@" </dev/null
}

refuses()
{
	suite_id="$1 $2" suite_dir=$3 suite_ere=$4
	shift 4
	drop
	suite_detail >"$T/detail"
	suite_exact >"$T/exact"
	run ab_create -w "$suite_dir" -n "$(b refused)" "$@"
	suite_said=$(grep -v '^agentbox: warning: ' "$T/run.err")
	if [ "$status" -eq 1 ] && [ ! -s "$T/run.out" ] &&
		[ "$(printf '%s\n' "$suite_said" | wc -l)" -eq 1 ] &&
		printf '%s\n' "$suite_said" | grep -Eq -e "^agentbox: .*($suite_ere)"; then
		pass "$suite_id: is refused"
	else
		fail "$suite_id: is refused"
		tap_show_run create "$@"
	fi
	untouched "$suite_id: nothing changed here"
	code 3 "$suite_id: no box is made" ab status "$(b refused)"
}

repo() # DIR
(
	mkdir -p "$1/src" && cd "$1" && git init -q -b main . && printf 'alpha\n' >a.txt &&
		printf '#!/bin/sh\n' >src/run && chmod 755 src/run && ln -s a.txt link &&
		ln -s nowhere dangling && git add . && git commit -q -m First &&
		printf 'beta\n' >b.txt && git add . && git commit -q -m Second
)

# host DIR SCRIPT: in it, made if it is not there.
host()
(
	mkdir -p "$1" && cd "$1" && shift && sh -ec "$@" >"$T/host.log" 2>&1 </dev/null || {
		sed 's/^/# /' "$T/host.log"
		echo 'not ok - the test cannot make what it is about'
		exit 1
	}
)
