#!/bin/sh
# SPDX-License-Identifier: MIT
# A paused box keeps what it has, and goes on by itself when it is needed.
. "${0%/*}/functions.sh"

mkdir "$T/plain"
printf 'x\n' >"$T/plain/x"
cd "$T/plain" || exit 99
providers=mock
if ab provider info local --json 2>/dev/null | grep -q 'has_pause.*true' &&
	ab doctor --provider local >/dev/null 2>&1; then
	providers="$providers local"
fi

state()
{
	ab list -g --json | tr -d '\n\t ' | tr '{' '\n' | grep "\"name\":\"$1\"" |
		sed 's/.*"state":"\([a-z]*\)".*/\1/'
}

for p in $providers; do
	box=box-$p
	ok "$p: a box" ab create --provider "$p" -n "$box" -y
	bad=
	for i in 1 2 3 4 5; do
		ab exec "$box" -- sh -c "echo $i >marker.$i && sync marker.$i" </dev/null ||
			bad="$bad write $i"
		ab pause "$box" >/dev/null 2>&1 || bad="$bad pause $i"
		is "$(state "$box")" paused "$p: paused, $i"
		ab resume "$box" >/dev/null 2>&1 || bad="$bad resume $i"
		is "$(state "$box")" running "$p: running, $i"
		n=1
		while [ "$n" -le "$i" ]; do
			is "$(ab exec "$box" -- cat "marker.$n" </dev/null)" "$n" \
				"$p: marker $n after $i rounds"
			n=$((n + 1))
		done
	done
	is "$bad" '' "$p: all of it worked"
	ok "$p: pause" ab pause "$box"
	like "$out" "^box '$box' is paused$" "$p: that is said"
	ok "$p: pause of a paused one" ab pause "$box"
	ok "$p: exec resumes it" ab exec "$box" -- cat marker.5
	is "$out $(state "$box")" '5 running' "$p: it runs"
	ok "$p: pause again" ab pause "$box" --json
	like "$out" '"state":[[:space:]]*"paused"' "$p: as JSON"
	ok "$p: start resumes it" ab start "$box"
	ab pause "$box" >/dev/null
	ok "$p: unpause is resume" ab unpause "$box"
	ok "$p: stop" ab stop "$box"
	ok "$p: resume of a stopped one starts it" ab resume "$box"
	ab pause "$box" >/dev/null
	ok "$p: a paused one is destroyed" ab destroy -y "$box"
done

ok 'a box of a provider that cannot pause' ab create --provider mockbare -n bare -y
ok 'is paused' ab pause bare
like "$out" "^box 'bare' is stopped: provider 'mockbare' cannot pause$" \
	'by stopping it, and that is said'
ok 'resumed' ab resume bare
is "$(state bare)" running 'it runs'
ok 'another' ab create --provider mock -n other -y
ok 'all are paused' ab pause --all
is "$(state bare) $(state other)" 'stopped paused' 'each as it can'
ok 'all are resumed' ab resume --all --json
is "$(state other)" running 'what was paused runs'
one_line_error 2 'one box, or --all' 'not both' ab pause bare --all
one_line_error 3 'no box' 'no box' ab resume none
done_testing
