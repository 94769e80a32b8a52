#!/bin/sh
# SPDX-License-Identifier: MIT
# Checkpoints of a local box of which somebody outside holds something.
. "${0%/*}/functions.sh"

ab doctor --provider local >/dev/null 2>&1 || skip_all 'no local boxes here'
make_repo "$T/repo" >/dev/null
cd "$T/repo" || exit 99
store=$AGENTBOX_HOME/providers/local/store

first_process()
{
	sed -n 's/.*"pid": *\([0-9]*\).*/\1/p' "$record"
}

in_box() # NAME COMMAND
{
	ab exec "$1" -- sh -c "$2" </dev/null
}

ok 'a box' ab create --provider local -n held -y
in_box held 'echo before >~/file; mkdir ~/dir' || fail 'it is written to'
record=$(echo "$store"/boxes/*/run.json)
pid=$(first_process)
home=/proc/$pid/root/home/vscode
if ! [ -w "$home/file" ]; then
	done_testing
	exit
fi

# What is open for reading, and a directory.
exec 7<"$home/file"
(cd "$home/dir" && exec sleep 1000) </dev/null >/dev/null 2>&1 7<&- &
inside=$!
atexit sh -c "kill $inside 2>/dev/null || :"
wait_for 5 sh -c "[ \"\$(readlink /proc/$inside/cwd)\" != '$T/repo' ]"
ok 'a checkpoint while a file is open for reading, and a directory' \
	ab checkpoint create held --name read
is "$(first_process)" "$pid" 'the box goes on'
is "$(cat <&7)" before 'the file can be read'
no 'nothing is written through the directory' \
	sh -c ": >'/proc/$inside/cwd/late'" 2>/dev/null
no 'nor through the file' sh -c ': >>/proc/self/fd/7' 2>/dev/null
ok 'a box of it' ab create --provider local --snapshot read -n read -y
is "$(in_box read 'cat ~/file; ls ~/dir')" before 'has what was there'
is "$(in_box held 'echo on >~/on; cat ~/file ~/on')" 'before
on' 'the box is written to as before'
ok 'one more' ab checkpoint create held --name again
is "$(in_box held 'cat ~/file ~/on')" 'before
on' 'it has what it had'
kill "$inside" 2>/dev/null
exec 7<&-

# What is open for writing: the layer is not shared.
pid=$(first_process)
exec 8>>"/proc/$pid/root/home/vscode/file"
ok 'a checkpoint while a file is open for writing' ab checkpoint create held --name written
echo late >&8
ok 'a box of it' ab create --provider local --snapshot written -n written -y
echo later >&8
is "$(in_box written 'cat ~/file')" before 'has nothing that was written later'
in_box held 'cat ~/on' >/dev/null && pass 'the box goes on' || fail 'the box goes on'
exec 8>&-
ab destroy --all -y >/dev/null 2>&1
done_testing
