#!/bin/sh
# SPDX-License-Identifier: MIT
# A box is made, listed, stopped, started, paused, and goes; whatever is interrupted is cleared.
. "${0%/*}/functions.sh"

state_of()
{
	ab status "$(b "$1")" --json | sed -n 's/.*"state":[[:space:]]*"\([a-z]*\)".*/\1/p'
}

field_of() # NAME FIELD
{
	ab status "$(b "$1")" --json |
		sed -n "s/.*\"$2\":[[:space:]]*\"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}\$/\1/p"
}

begun=$(date +%s)
new_box one || give_up 'a box is made'
took=$(($(date +%s) - begun))
pass 'a box is made'
one=$(b one)
is "$(state_of one)" running 'it is running'
is "$(field_of one provider)" "$name_of_provider" 'at its provider'
like "$(field_of one id)" '^[0-9a-f]{16}$' 'with an id'
like "$(field_of one index)" '^[1-9][0-9]*$' 'and an index'
run ab list -g --json
like "$out" "\"name\":[[:space:]]*\"$one\"" 'list has it'
run ab list -g
like "$out" "$one .*running" 'in the table too'
cd "$T/project" || exit 99
run ab list
like "$out" "$one .*running" 'and in the project'
ok 'by its id' ab exec "$(field_of one id)" -- true
ok 'by the beginning of its id' ab status "$(field_of one id | cut -c 1-12)"
ok 'by its index in the project' ab exec "$(field_of one index)" -- true
ok 'the only box of the project' ab exec -- true
cd / || exit 99
one_line_error 1 "$one" 'a name is taken once' ab_create -n "$one"
like "$err" 'destroy|another|exists|is taken' 'and it is said'
ok 'the box is not touched by that' in_box one true

# Two at once with one name.
run ab_create -n "$(b both)" &
pid=$!
ab_create -n "$(b both)" >"$T/both" 2>&1 </dev/null
c=$?
wait "$pid"
boxes="$boxes both"
n=$(ab list -g --json | grep -c "\"$(b both)\"")
is "$n" 1 'two creates of one name make one box'
[ "$c" -eq 0 ] || like "$(cat "$T/both")" "^agentbox: .*$(b both)" 'the other one says why'
ok 'the box works' in_box both true
ok 'it goes' ab destroy "$(b both)" -y

# Stop and start.
word=6$(printf %s "$TAG" | tr a-f 1-6)
in_box one sh -c "echo kept >kept; mkdir -p ~/d; echo home >~/d/kept; echo tmp >/tmp/kept
	sleep $word >/dev/null 2>&1 </dev/null &" </dev/null
is "$(running one "$word")" 1 'a process is left in it'
# Where a cloud only knows how to pause, that is what stop does.
stopped=stopped left=0
if suite_info '"stop_is_pause":[[:space:]]*true'; then
	stopped=paused left=1
fi
ok 'stop' ab stop "$one"
is "$(state_of one)" "$stopped" "it is $stopped"
ok 'once more' ab stop "$one"
ok 'start' ab start "$one"
is "$(state_of one)" running 'it is running'
ok 'once more' ab start "$one"
is "$(in_box one sh -c 'cat kept ~/d/kept file' </dev/null | tr '\n' ' ')" 'kept home hello ' \
	'files survive'
is "$(running one "$word")" "$left" "processes: $left of 1"
for i in 1 2 3; do
	ab stop "$one" </dev/null && ab start "$one" </dev/null &&
		in_box one sh -c "[ -e kept ] && echo $i >>kept" </dev/null || fail "round $i"
done >"$T/log" 2>&1
is "$(in_box one cat kept </dev/null | tr '\n' ' ')" 'kept 1 2 3 ' 'however often'

# Pause and resume.
if offers pause && put_tool one; then
	in_box one sh -c "$BOX_TOOL count /tmp/counter </dev/null >/dev/null 2>&1 &" </dev/null
	wait_for 10 in_box one test -s /tmp/counter || fail 'a counter runs'
	pid_before=$(in_box one sh -c 'for p in /proc/[0-9]*; do
		tr "\0" " " <$p/cmdline 2>/dev/null | grep -q "[t]ool-.* count" && echo ${p#/proc/}
	done' </dev/null)
	ok 'pause' ab pause "$one"
	is "$(state_of one)" paused 'it is paused'
	ok 'once more' ab pause "$one"
	ok 'resume' ab resume "$one"
	is "$(state_of one)" running 'it is running'
	first=$(in_box one cat /tmp/counter </dev/null)
	counts_on()
	{
		[ "$(in_box one cat /tmp/counter </dev/null)" -gt "$first" ]
	}
	wait_for 10 counts_on && pass 'a process goes on' || fail 'a process goes on'
	is "$(in_box one sh -c 'for p in /proc/[0-9]*; do
		tr "\0" " " <$p/cmdline 2>/dev/null | grep -q "[t]ool-.* count" && echo ${p#/proc/}
	done' </dev/null)" "$pid_before" 'the same one'
	# Between two looks at a paused box nothing may have been counted: 3 s would be 300.
	before=$(in_box one sh -c 'cat /tmp/counter; date +%s >/tmp/then' </dev/null)
	ab pause "$one" </dev/null >/dev/null
	until_then=$(($(date +%s) + 3))
	wait_for 10 sh -c '[ "$(date +%s)" -ge "$1" ]' - "$until_then"
	ab resume "$one" </dev/null >/dev/null
	after=$(in_box one cat /tmp/counter </dev/null)
	[ $((1${after#0} - 1${before#0})) -lt 200 ] && pass 'it did not count meanwhile' ||
		fail "it did not count meanwhile ($before, $after)"
	for i in 1 2 3 4 5; do
		in_box one sh -c "echo p$i >>paused" </dev/null && ab pause "$one" </dev/null &&
			ab resume "$one" </dev/null
	done >/dev/null 2>&1
	is "$(in_box one cat paused </dev/null | tr '\n' ' ')" 'p1 p2 p3 p4 p5 ' \
		'files survive it five times'
	ok 'pause again' ab pause "$one"
	ok 'a paused box stops' ab stop "$one"
	is "$(state_of one)" "$stopped" "and is $stopped"
	ok 'and starts' ab start "$one"
	ok 'pause a last time' ab pause "$one"
	ok 'and goes' ab destroy "$one" -y
else
	skip 'pause keeps memory' -- 'not offered'
	run ab pause "$one"
	case $status in
	0) is "$(state_of one)" stopped 'what cannot pause stops' ;;
	*) like "$err" "^agentbox: .*$name_of_provider" 'what cannot pause says so' ;;
	esac
	ok 'and goes' ab destroy "$one" -y
fi
code 3 'it is not there any more' ab status "$one"
code 3 'nor is it destroyed twice' ab destroy "$one" -y
code 125 'nor run in' in_box one true

# The end of its time, which has to be longer than it takes to make a box here.
life=$((2 + 2 * took))
new_box short --timeout "${life}s" && pass 'a box for a short time' ||
	fail 'a box for a short time'
over()
{
	case $(state_of short) in
	gone | "$stopped" | '') return 0 ;;
	esac
	return 1
}
if [ "$status" -eq 0 ]; then
	like "$(field_of short expires_at)" '^20[0-9-]*T' 'its end is known'
	wait_for $((30 + life)) over && pass 'it ends' || fail 'it ends'
fi

# Many at once.
n=$(size 10 5)
i=0
while [ "$i" -lt "$n" ]; do
	ab_create -n "$(b "many-$i")" >"$T/many.$i" 2>&1 </dev/null &
	eval "pid_$i=\$!"
	boxes="$boxes many-$i"
	i=$((i + 1))
done
i=0 bad=
while [ "$i" -lt "$n" ]; do
	eval "wait \$pid_$i" || bad="$bad $i: $(cat "$T/many.$i")"
	i=$((i + 1))
done
is "$bad" '' "$n boxes at once"
i=0 bad=
while [ "$i" -lt "$n" ]; do
	in_box "many-$i" sh -c "echo $i >mine" </dev/null || bad="$bad $i"
	i=$((i + 1))
done
i=0
while [ "$i" -lt "$n" ]; do
	[ "$(in_box "many-$i" cat mine </dev/null)" = "$i" ] || bad="$bad $i"
	eval "index_$i=\$(field_of many-$i index)"
	eval "echo \$index_$i"
	i=$((i + 1))
done >"$T/indices"
is "$bad" '' 'each with files of its own'
is "$(sort -u "$T/indices" | grep -c .)" "$n" 'each with an index of its own'
i=0
while [ "$i" -lt "$n" ]; do
	ab destroy "$(b "many-$i")" -y >/dev/null 2>"$T/many.$i" </dev/null &
	i=$((i + 1))
done
wait
is "$(ab list -g --json | grep -c "$(b many)")" 0 'all go at once'

# A create that is killed anywhere leaves nothing that prune does not find.
n=$(size 10 6)
i=0 bad=
while [ "$i" -lt "$n" ]; do
	"$TOOL" sigdfl agentbox create --provider "$P" -w "$T/project" -y -n "$(b "dead-$i")" \
		${AGENTBOX_CONTRACT_CREATE-} >/dev/null 2>&1 </dev/null &
	pid=$!
	# A moment that differs each time: none of a clock's, for a loaded machine is slower.
	k=$((i * i * 3 + $(od -An -N1 -tu1 /dev/urandom) % 20))
	while [ "$k" -gt 0 ] && kill -0 "$pid" 2>/dev/null; do
		k=$((k - 1))
		od -An -N1 -tu1 /dev/urandom >/dev/null
	done
	kill -KILL "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
	i=$((i + 1))
done
ok 'prune after creates that were killed' ab prune -y
i=0
while [ "$i" -lt "$n" ]; do
	name=$(b "dead-$i")
	if ab status "$name" >/dev/null 2>&1 </dev/null; then
		# It was finished, or as good as: then it works and goes.
		ab exec "$name" -- true >/dev/null 2>&1 </dev/null &&
			ab destroy "$name" -y >/dev/null 2>&1 </dev/null || bad="$bad $i"
	fi
	i=$((i + 1))
done
is "$bad" '' 'each is a working box or none'
boxes="$boxes dead-0"
ok 'its name is free' ab_create -n "$(b dead-0)"
ok 'the box works' in_box dead-0 true
suite_done
