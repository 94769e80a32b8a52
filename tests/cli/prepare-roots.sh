#!/bin/sh
# SPDX-License-Identifier: MIT
# A root that no box could run over is refused when it is prepared, and leaves nothing.
. "${0%/*}/functions.sh"

ab doctor --provider local >/dev/null 2>&1 || skip_all 'no local boxes here'
mkdir -p "$T/p" && cd "$T/p" || exit 99
ctl=$BUILD/core/ctl/agentbox-ctl

# A tree with this file as its shell.
root_of() # NAME [FILE]
{
	mkdir -p "roots/$1/etc" "roots/$1/bin"
	[ -z "${2-}" ] || cp -L "$2" "roots/$1/bin/sh"
	tar cf "$1.tar" -C "roots/$1" .
}

refused() # NAME ERE
{
	one_line_error 1 "$2" "$1: a tar" ab prepare --provider local --from "./$1.tar" -n "$1"
	[ ! -d "roots/$1" ] || one_line_error 1 "$2" "$1: a directory" \
		ab prepare --provider local --from "$PWD/roots/$1" -n "$1"
}

tar cf empty.tar -T /dev/null
refused empty '/bin/sh: not there'
root_of none
refused none '/bin/sh: not there'
root_of loader /bin/sh
refused loader '/bin/sh: its interpreter or loader is missing'
root_of fails "$ctl"
# A build with sanitizers has it with a loader.
if grep -q '/ld-linux' "$ctl"; then
	refused fails '/bin/sh: its interpreter or loader is missing'
else
	refused fails '/bin/sh: it does not run'
fi
# e_machine of ELF becomes one that does not exist.
cp "$ctl" strange
printf '\377' | dd of=strange bs=1 seek=18 conv=notrunc 2>/dev/null
root_of strange strange
refused strange '/bin/sh: not for this kind of processor'
run ab image ls --provider local
unlike "$out" 'ready' 'none of them is there'
store=$AGENTBOX_HOME/providers/local/store
is "$(find "$store/images" "$store/tmp" -mindepth 1 ! -name '*.lock')" '' 'nothing is left'
done_testing
