#!/bin/sh
# SPDX-License-Identifier: MIT
# Whatever an engine answers to whatever it is asked, agentbox ends in time with one line that says
# why, or does it again where that is no harm; and nothing is left that prune does not find.
# The engine is played; AGENTBOX_TEST_ENGINE=real: a real one.  AGENTBOX_TEST_FULL=1: every fault
# for every request, and not only a third of them.
# shellcheck source=docker-functions.sh
. "${0%/*}/docker-functions.sh"

docker_is_built || skip_all 'configured without the docker provider'
docker_root "$T/root.tar" || fail 'a root file system is made'
if [ "${AGENTBOX_TEST_ENGINE-}" = real ]; then
	docker_engine
	ab prepare --provider docker --from "$T/root.tar" -n broken >/dev/null 2>&1
	image=agentbox/prepared:broken
else
	docker_play "$T/root"
	image=played
	# A checkpoint of a box that is made of it is exported and imported.
	echo 61 >"$T/played/layers"
	docker_api POST '/images/create?fromSrc=-&repo=layers&tag=many' >/dev/null
	rm "$T/played/layers"
fi
mkdir "$T/repo" "$T/jobs"
make_repo "$T/repo" >/dev/null
cd "$T/repo" || exit 99
head -c 3000000 /dev/urandom >"$T/file"
export AGENTBOX_PROVIDER=docker

made() # BOX ARG...
{
	name=$1
	shift
	ab create --image "$image" -n "$name" -y "$@"
}

# Whatever becomes of the events, a change is told of.
told() # BOX
{
	(exec "$BUILD/tests/wrapper" agentbox watch -g --json) >"$breaks/told" &
	watcher=$!
	wait_for 30 grep -q "\"$1\"" "$breaks/told"
	wait_for 30 test ! -s "$breaks/faults"
	id=$(docker_api GET '/containers/json?all=1' | perl -MJSON::PP -e '
		my ($box) = grep { $_->{Names}[0] =~ m{\A/agentbox-$ARGV[0]-} }
			@{ decode_json(join("", <STDIN>)) };
		print $box->{Id}' "$1")
	docker_api POST "/containers/$id/kill?signal=KILL" >/dev/null
	wait_for 30 grep -q "\"$1\".*stopped" "$breaks/told"
	grep -q "\"$1\".*stopped" "$breaks/told"
	told=$?
	kill -TERM "$watcher"
	wait "$watcher"
	return "$told"
}

# The request that breaks, +N: but for the first N of its kind; what it is part of, and what is done
# before.
cat >"$T/kinds" <<END
ping exec
info doctor
list prune
create create
start create
exec-start create
start start stop
inspect stop
exec-create exec
exec-start exec
exec-start cp-in
exec-start cp-out
exec-json exec
stop stop
pause pause
unpause resume pause
delete destroy
stats stats
commit checkpoint
image-get checkpoint
image-get+1 checkpoint
image-post rm-checkpoint checkpoint
image-delete rm-checkpoint checkpoint
image-list images
import prepare
build prepare
image-delete prepare
list list
image-list rm-image prepare
list rm-image prepare
image-delete rm-image prepare
commit fixed
create+1 fixed
delete fixed
volume-list destroy-fixed fixed
volume-delete destroy-fixed fixed
volume-list volumes
volume-get with-volume
volume-get+1 with-volume
volume-post with-volume
volume-list rm-volume with-volume destroy
volume-get rm-volume with-volume destroy
volume-delete rm-volume with-volume destroy
events watch
END
[ "${AGENTBOX_TEST_ENGINE-}" = real ] || cat >>"$T/kinds" <<END
pull pulled
export checkpoint-layers
END

asked_for=$(perl "$SRC/tests/contract/docker-kinds.pl" "$SRC"/providers/docker/*.c | cut -f1)
[ "$(echo "$asked_for" | wc -l)" -gt 20 ] && pass 'what the provider asks for is known' ||
	fail "what the provider asks for is known: $asked_for"
rows=$(sed 's/[ +].*//' "$T/kinds")
[ "${AGENTBOX_TEST_ENGINE-}" != real ] || rows="$rows
pull
export"
is "$(echo "$rows" | sort -u)" "$(echo "$asked_for" | sort -u)" 'and each kind of it breaks here'

act() # WHAT BOX
{
	case $1 in
	doctor) ab doctor --provider docker ;;
	create) made "$2" ;;
	exec) ab exec "$2" -n -- sh -c 'echo x >>/tmp/times; echo once' ;;
	cp-in) ab cp "$T/file" "$2:/tmp/file" ;;
	cp-out) ab cp "$2:/bin/sh" "$breaks/sh" ;;
	prune) ab prune -y ;;
	destroy) ab destroy "$2" -y ;;
	checkpoint) ab checkpoint create "$2" --name "$2" ;;
	rm-checkpoint) ab checkpoint rm "$2" --provider docker -y ;;
	images) ab image ls --provider docker ;;
	prepare) ab prepare --provider docker --from "$T/root.tar" -n "$2" ;;
	rm-image) ab image rm "$2" --provider docker -y ;;
	list) ab list -g ;;
	fixed) made "$2" --readonly ;;
	destroy-fixed) ab destroy "$2" -y ;;
	volumes) ab volume ls --provider docker ;;
	with-volume) made "$2" --volume "$2:/cache" ;;
	rm-volume) ab volume rm "$2" --provider docker -y ;;
	pulled) ab create --image "absent/$2" -n "$2" -y ;;
	checkpoint-layers) ab checkpoint create "$2" --name "$2" ;;
	watch) told "$2" ;;
	*) ab "$1" "$2" ;;
	esac </dev/null
}

# The connection is lost: what may be done twice is, and what was done is found.
passes() # KIND FAULT
{
	case $1:$2 in
	# The engine says that the command has ended, and what came has an end of its own.
	exec-start:open) ;;
	events:*) ;;
	exec-start:* | import:* | build:* | pull:* | export:* | commit:503 | commit:reset)
		return 1
		;;
	*:503 | ping:500 | exec-create:500 | create:half | *:reset | *:short | *:lost) ;;
	*) return 1 ;;
	esac
}

# Done, and once.
really() # WHAT BOX
{
	case $1 in
	exec)
		[ "$(cat "$breaks/out")" = once ] &&
			ab exec "$2" -n -- sh -c 'wc -l </tmp/times && rm /tmp/times' \
				>"$breaks/times" &&
			[ "$(cat "$breaks/times")" -eq 1 ]
		;;
	cp-in) ab exec "$2" -n -- cat /tmp/file | cmp - "$T/file" ;;
	cp-out) cmp "$breaks/sh" "$T/root/bin/sh" ;;
	create | fixed) ab exec "$2" -n -- git status && [ "$(engine_has "$2")" -eq 1 ] ;;
	checkpoint*) [ "$(snapshots_of "$2")" -eq 1 ] ;;
	with-volume | pulled) [ "$(engine_has "$2")" -eq 1 ] ;;
	destroy-fixed) [ "$(engine_has "$2") $(volumes_of "$2") $(images_of "$2")" = '0 0 0' ] ;;
	rm-volume) [ "$(volumes_of "$2")" -eq 0 ] ;;
	esac
}

engine_has() # BOX
{
	docker_api GET '/containers/json?all=1' | grep -o "/agentbox-$1-" | wc -l
}

# What is made of its container, not only checkpoints.
images_of() # BOX
{
	docker_api GET '/images/json' | perl -MJSON::PP -e '
		my $images = decode_json(join("", <STDIN>));
		print scalar(grep { ($_->{Labels}{"agentbox.docker.name"} // "")
			=~ /\Aagentbox-$ARGV[0]-/ } @$images), "\n"' "$1"
}

# Other lanes have theirs at the same time.
snapshots_of() # BOX
{
	docker_api GET '/images/json' | perl -MJSON::PP -e '
		my $images = decode_json(join("", <STDIN>));
		print scalar(grep { $_->{Labels}{"agentbox.name"} eq $ARGV[0]
			&& grep { /snapshot:/ } @{ $_->{RepoTags} } } @$images), "\n"' "$1"
}

# A read-only box has one of its own.
volumes_of() # NAME
{
	docker_api GET /volumes | grep -o "\"agentbox-[^\"]*$1[\"-]" | wc -l
}

bad()
{
	echo "$(printf '%s ' "$@" | tr '\n' ' ')" >>"$breaks/bad"
}

broken() # KIND FAULT WHAT BOX
{
	case $2 in
	hang | silent | mute) limit=2s ;;
	*) limit=1m ;;
	esac
	whole_again
	case $1 in
	*+*) break_at "${1%+*}" "$2" "${1#*+}" ;;
	*) break_at "$1" "$2" ;;
	esac
	# Which version it speaks is asked again then.
	[ "$1" != ping ] || rm -f "$AGENTBOX_HOME/providers/docker/engine"
	begun=$(date +%s)
	status=0
	(
		export AGENTBOX_DOCKER_TIMEOUT="$limit"
		act "$3" "$4"
	) >"$breaks/out" 2>"$breaks/err" || status=$?
	took=$(($(date +%s) - begun))
	said=$(grep '^agentbox: ' "$breaks/err" | grep -v '^agentbox: warning: \|: waiting for it$')
	printf '%s\n' "$1 $2: $3: $status after $took s: $said" >>"$breaks/table"
	[ "$3" != doctor ] || said=$(grep '^ *docker .*fail .*provider' "$breaks/out")
	# On a busy machine it may be another request that is not answered in those two seconds.
	case $limit:$said in
	2s:*'no answer in time'*) ;;
	*) [ ! -s "$breaks/faults" ] || bad "$1 $2: $3 did not ask it" ;;
	esac
	if passes "$1" "$2"; then
		[ "$status" -eq 0 ] || bad "$1 $2: $3 ended with $status: $said"
	elif [ "$status" -eq 0 ]; then
		:
	elif [ "$status" -ge 126 ]; then
		bad "$1 $2: $3 ended with $status"
	elif [ "$(printf '%s\n' "$said" | wc -l)" -ne 1 ] || [ -z "$said" ]; then
		bad "$1 $2: $3 said: $(cat "$breaks/err")"
	fi
	[ "$took" -le 90 ] || bad "$1 $2: $3 took $took s"
	whole_again
	[ "$status" -ne 0 ] || really "$3" "$4" || bad "$1 $2: $3 did nothing, or twice"
}

# Nothing is left of it that prune does not find, and a box that was not to go is of use.
afterwards() # KIND FAULT WHAT BOX
{
	case $3 in
	exec | cp-in | cp-out | stats)
		ab exec "$4" -n -- rm -f /tmp/times || bad "$1 $2: $3 made the box useless"
		return
		;;
	doctor | prune | images | list | volumes) return ;;
	start | stop | pause | resume | watch)
		ab resume "$4" || ab start "$4"
		ab exec "$4" -n -- true || bad "$1 $2: $3 made the box useless"
		return
		;;
	rm-checkpoint | checkpoint*) ab checkpoint rm "$4" --provider docker -y ;;
	prepare | rm-image) ab image rm "$4" --provider docker -y ;;
	destroy* | create | fixed | with-volume | pulled) ! ab status "$4" || ab destroy "$4" -y ;;
	esac
	case $3 in
	*volume) ab volume rm "$4" --provider docker -y ;;
	pulled) docker_api DELETE "/images/absent/$4:latest" ;;
	esac
	ab prune -y || bad "$1 $2: $3 and then prune"
	case $3 in
	rm-checkpoint | checkpoint*) found=$(snapshots_of "$4" | grep -v '^0$') ;;
	prepare | rm-image) found=$(docker_api GET '/images/json' | grep -o ":$4\"") ;;
	*)
		found="$(engine_has "$4") $(volumes_of "$4") $(images_of "$4")"
		[ "$found" != '0 0 0' ] || found=
		;;
	esac
	[ -z "$found" ] || bad "$1 $2: $3 left $found"
}

faults_of() # KIND WHAT
{
	case $1:$2 in
	exec-start:create) echo 500 hang cut mute open ;;
	# agentbox-ctl itself ends what is mute, after a minute.
	exec-start:*) echo 500 503 reset hang text cut open ${AGENTBOX_TEST_FULL:+mute} ;;
	events:*) echo 500 503 reset hang text cut mute big ;;
	# There is nothing in their answers that could be cut.
	ping:* | start:* | stop:* | pause:* | unpause:* | delete:* | volume-delete:*)
		echo 500 503 reset hang text lost silent big
		;;
	*) echo 500 503 reset hang text half short lost silent big ;;
	esac
}

# Of the words some, others in each row.
chosen() # ROW WORD...
{
	n=$1
	shift
	for word; do
		n=$((n + 1))
		[ -z "${AGENTBOX_TEST_FULL-}" ] && [ $((n % 3)) -ne 0 ] || echo "$word"
	done
}

lane() # NUMBER
{
	docker_breaks "$T/jobs/$1"
	row=0
	while read -r kind what before; do
		row=$((row + 1))
		[ $((row % lanes)) -eq "$1" ] || continue
		[ "$what" != checkpoint-layers ] || image=layers:many
		# shellcheck disable=SC2046 # words
		for fault in $(chosen "$row" $(faults_of "$kind" "$what")); do
			# Nothing that the id of another begins with.
			box=x$row
			case $what in
			create | doctor | images | prepare | prune | list) ;;
			rm-image | *fixed | *volume* | pulled) ;;
			*)
				ab status "$box" || made "$box" ||
					bad "$kind $fault: $what has no box"
				;;
			esac
			for word in $before; do
				act "$word" "$box"
			done
			broken "$kind" "$fault" "$what" "$box"
			afterwards "$kind" "$fault" "$what" "$box"
		done
	done <"$T/kinds" >"$breaks/noise" 2>&1
	tap_run_atexit
}

lanes=4
for n in $(seq 0 $((lanes - 1))); do
	(
		trap - EXIT
		tap_atexit=''
		lane "$n"
	) </dev/null &
	pids="${pids-} $!"
done
# shellcheck disable=SC2086
wait $pids
n_found=0
while read -r kind what _; do
	found=$(grep -h "^$kind [a-z0-9]*: $what " "$T"/jobs/*/bad 2>/dev/null)
	n_found=$((n_found + $(printf '%s' "${found:+$found
}" | wc -l)))
	is "$found" '' "$kind breaks in $what"
done <"$T/kinds"
is "$(cat "$T"/jobs/*/bad 2>/dev/null | wc -l)" "$n_found" 'nothing else is bad'

# An engine that forgets to end the outputs of commands that have ended.
if [ "${AGENTBOX_TEST_ENGINE-}" != real ]; then
	docker_breaks "$T/jobs/open"
	code 0 'a box' made open
	break_at exec-start open 0 0
	run ab exec open -n -- sh -c 'mkdir /tmp/d && cp /bin/sh /bin/tar /tmp/d
		echo out; echo err >&2; exit 3'
	is "$status:$out:$err" '3:out:err' 'an output without end: a command'
	ab cp open:/tmp/d "$breaks/d" && cmp "$T/root/bin/sh" "$breaks/d/sh" &&
		cmp "$T/root/bin/tar" "$breaks/d/tar" && pass 'an output without end: a tree' ||
		fail 'an output without end: a tree'
	whole_again
fi

# What nobody waits for is made all the same, later.
snapshots()
{
	docker_api GET '/images/json' | grep -o snapshot: | wc -l
}

if [ "${AGENTBOX_TEST_ENGINE-}" != real ]; then
	code 0 'a box' made late
	: >"$T/played/slow"
	rm -f "$T/played/committing"
	(exec "$BUILD/tests/wrapper" agentbox checkpoint create late --name late) \
		>/dev/null 2>&1 </dev/null &
	late=$!
	wait_for 30 test -e "$T/played/committing"
	kill -TERM "$late"
	wait "$late"
	is "$?" 130 'a checkpoint is ended while the engine makes it'
	rm "$T/played/slow"
	is_made()
	{
		[ "$(snapshots)" -eq 1 ]
	}
	wait_for 30 is_made
	code 0 'prune, when it is made' ab prune -y
	is "$(snapshots)" 0 'removes it'
fi
[ -z "${AGENTBOX_TEST_SHOW-}" ] || cat "$T"/jobs/*/table
done_testing
