#!/bin/sh
# SPDX-License-Identifier: MIT
# The suites pass for ordinary users too: one with sub-ids, one with a single id.
# AGENTBOX_TEST_FULL=1: with the full sizes.
. "${0%/*}/../cli/functions.sh"

is_root || skip_all 'only root can become two ordinary users'
have setpriv unshare || skip_all 'no setpriv or unshare'
setpriv --reuid 23456 --regid 23456 --clear-groups unshare -Ur true 2>/dev/null ||
	skip_all 'ordinary users have no user namespaces here'

# Names and sub-ids in files of this test alone: nothing of the machine is changed.
for file in passwd group subuid subgid; do
	cat "/etc/$file" >"$T/$file" 2>/dev/null
done
for who in many:23456 single:23457; do
	name=abx-${who%:*} id=${who#*:}
	mkdir -m 700 "$T/$name" && chown "$id:$id" "$T/$name" || exit 99
	echo "$name:x:$id:$id::$T/$name:/bin/sh" >>"$T/passwd"
	echo "$name:x:$id:" >>"$T/group"
done
grep -v ':23457$\|^abx-' "$T/subuid" >"$T/subuid.new"
echo 'abx-many:7000000:65536' | tee -a "$T/subuid.new" >"$T/subgid.new"
chmod 755 "$T"
chmod 644 "$T"/passwd "$T"/group "$T"/sub?id.new

# What it takes to be them; the built tree is read through the mounts of this namespace.
cat >"$T/be" <<'END'
mount --bind "$T/passwd" /etc/passwd && mount --bind "$T/group" /etc/group || exit 99
[ -e /etc/subuid ] && mount --bind "$T/subuid.new" /etc/subuid
[ -e /etc/subgid ] && mount --bind "$T/subgid.new" /etc/subgid
[ -e "$T/tun" ] && mount --bind "$T/tun" /dev/net/tun
id=$1 home=$2
shift 2
cd / && exec env -i PATH="$PATH" HOME="$home" TMPDIR="$home" LC_ALL=C.UTF-8 \
	AGENTBOX_CONTRACT_SMALL="$small" AGENTBOX_CONTRACT_CREATE="$create" \
	AGENTBOX_CONTRACT_PARTS="$parts" \
	setpriv --reuid "$id" --regid "$id" --clear-groups --no-new-privs "$@"
END
sed -i 's/ --no-new-privs//' "$T/be"
# Where root has it, so do they.
if (: <>/dev/net/tun) 2>/dev/null && mknod "$T/tun" c 10 200; then
	chmod 666 "$T/tun"
	sh -c ': <>"$1"' sh "$T/tun" 2>/dev/null || rm "$T/tun"
fi
create='' parts=''
[ -e "$T/tun" ] || create='--egress none'
small=1
[ -z "${AGENTBOX_TEST_FULL:-}" ] || small=
export T create small parts

as() # WHO WORD...
{
	case $1 in many) id=23456 ;; *) id=23457 ;; esac
	home=$T/abx-$1
	shift
	unshare -m sh "$T/be" "$id" "$home" "$BUILD/tests/wrapper" "$@"
}

run as single "$BUILD/tests/contract/agentbox-contract-tool" bytes 1
[ "$status" -eq 0 ] || skip_all 'the built tree is not readable for others'
for who in many single; do
	run as "$who" agentbox doctor --provider local
	[ "$status" -eq 0 ] || diag "$out"
	suites='exec transfer seed lifecycle snapshot url egress'
	[ "$who" = single ] || suites="$suites kill"
	# What a repository is like does not depend on how many ids its owner has.
	parts='states files back ways'
	[ "$who" = many ] || parts='files back ways'
	export parts
	for suite in ${AGENTBOX_TEST_SUITES:-$suites}; do
		as "$who" agentbox-provider-check --live local "$suite" \
			>"$T/table" 2>&1 </dev/null && pass "$who: $suite" || {
			fail "$who: $suite"
			diag "$(head -c 8000 "$T/table")"
		}
	done
done
done_testing
