#!/bin/sh
# SPDX-License-Identifier: MIT
# The image that boxes of docker boot from when nobody names one: made at the first need, once,
# journaled, judged by what it is made of.
# shellcheck source=docker-functions.sh
. "${0%/*}/docker-functions.sh"

docker_engine
docker_root "$T/root.tar" || fail 'a root file system is made'
docker_fake_suite "$T/root.tar"
make_repo "$T/repo"
cd "$T/repo" || exit 99
P='--provider docker'
install=
# What the engine has of this install: "images containers".
left()
{
	filters="%7B%22label%22%3A%5B%22agentbox.install%3D$install%22%5D%7D"
	printf '%s %s\n' \
		"$(docker_api GET "/v1.41/images/json?filters=$filters" | grep -o '"Id"' | wc -l)" \
		"$(docker_api GET "/v1.41/containers/json?all=1&filters=$filters" |
			grep -o '"Id"' | wc -l)"
}

# A context of the test's own: a step that can be told to fail or to wait.
AGENTBOX_BASE_PATH=$T/context
export AGENTBOX_BASE_PATH
mkdir "$T/context"
cat >"$T/context/Dockerfile" <<'END'
ARG BASE
FROM ${BASE}
ARG AGENTBOX_INSTALL
ARG AGENTBOX_ATTEMPT
LABEL agentbox=true agentbox.install=${AGENTBOX_INSTALL} agentbox.attempt=${AGENTBOX_ATTEMPT}
COPY install.sh ca.pem /build/
ARG PACKAGES
RUN ["/bin/sh", "/build/install.sh"]
END
echo 'exit 44' >"$T/context/start-dockerd.sh"
context()
{
	printf '%s\n' "$@" >"$T/context/install.sh"
}

# shellcheck disable=SC2086
{
	context 'echo one line' 'echo "the disk is full"' 'exit 7'
	run ab create $P -n early -y
	is "$status" 1 'a build that fails is no box'
	like "$err" '^agentbox: no image is prepared at docker yet: making one of debian:bookworm' \
		'that one is made is said'
	like "$err" '^one line$' 'the last lines of the failing step are shown'
	like "$err" 'Step 8/12 : RUN .*exit code 7: the disk is full \(' \
		'the error names the step, its exit code and what it said'
	install=$(sed 's/[^0-9a-f-]//g' "$AGENTBOX_HOME/install")
	is "$(left)" '0 0' 'nothing of it is left at the engine'

	context 'echo "packages: $PACKAGES"' 'echo made >/made'
	run ab config set docker.packages git,less
	(
		ab create $P -n one -y -v >"$T/one" 2>&1 </dev/null
		echo $? >"$T/one.status"
	) &
	one=$!
	ab create $P -n two -y -v >"$T/two" 2>&1 </dev/null
	is "$?" 0 'two creates at once'
	wait "$one"
	is "$(cat "$T/one.status")" 0 'both make their box'
	is "$(cat "$T/one" "$T/two" | grep -c '^mmdebstrap is at it$')$(left)" '11 2' \
		'from one image, which was made once'
	run ab exec one -- cat /made
	is "$out" made 'that of the context'
	run ab prepare $P --status
	like "$out" '^default: sha256:[0-9a-f]*, from debian:bookworm, [^;]*$' \
		'prepare --status: it is there, and current'
	run ab prepare $P
	like "$out" 'there already' 'prepare has nothing to do'

	former=$(ab prepare $P --status | sed 's/^[^,]*\(sha256:[0-9a-f]*\),.*/\1/')
	context 'echo "packages: $PACKAGES"' 'echo again >/made'
	run ab prepare $P --status
	like "$out" '; no longer current$' 'another context: it no longer is'
	is "$status" 0 'which is no failure'
	run ab prepare $P --status --json
	like "$out" '"current":.*false' 'the same in JSON'
	run ab create $P -n three -y
	is "$status" 0 'create goes on with it'
	like "$err" 'was made of something else' 'and says so'
	run ab prepare $P -v
	like "$err" '^packages: git,less$' 'prepare makes it anew; -v shows it; docker.packages'
	run ab create $P -n four -y
	unlike "$err" 'made' 'then nothing is said'
	run ab exec four -- cat /made
	is "$out" again 'and boxes boot from it'
	is "$(left)" '2 4' 'the former stays as long as boxes may want it'

	context 'echo reached' 'sleep 300'
	(exec "$BUILD/tests/wrapper" agentbox prepare $P --force -v) >"$T/killed" 2>&1 </dev/null &
	killed=$!
	reached()
	{
		grep -q '^reached' "$T/killed"
	}
	wait_for 60 reached
	kill -KILL "$killed"
	wait "$killed" 2>/dev/null
	builder_ended()
	{
		is_ended=$(left)
		[ "${is_ended#* }" = 4 ]
	}
	wait_for 30 builder_ended
	run ab prune -y
	like "$out" '^image default .* at docker: removed$' 'a killed build is found by prune'
	is "$(left)" '2 4' 'which leaves nothing of it'
	run ab create $P -n five -y
	is "$status" 0 'and the image that there was is still there'

	context 'exit 43'
	code 0 'a root in which nothing can be installed' ab prepare $P --from "$T/root.tar" -n bare
	like "$err" 'no apt-get: it is taken as it is' 'is taken as it is, and that is said'
	run ab prepare $P --from "agentbox/prepared:bare" -n other
	is "$status" 1 'an image of that kind'
	like "$err" '^agentbox: .*nothing can be installed in it' 'is refused'
	context 'echo of an image >/made'
	code 0 'an image that the engine has' ab prepare $P --from "agentbox/prepared:bare" -n more
	code 0 'a box of it' ab create $P --image more -n six -y
	run ab exec six -- cat /made
	is "$out" 'of an image' 'has both'
	run ab config set docker.image agentbox/prepared:more
	code 0 'docker.image' ab create $P -n seven -y
	run ab exec seven -- cat /made
	is "$out" 'of an image' 'comes before what is prepared'
	ab destroy --all -y >/dev/null 2>&1
	run ab prepare $P
	like "$out" "image 'default' is prepared" 'prepare, once more'
	is "$(left)" '4 0' 'takes away the one in whose place it comes'
	run ab config unset docker.image
	gone=$(ab prepare $P --status | sed -n 's/^default: \(sha256:[0-9a-f]*\),.*/\1/p')
	docker_api DELETE "/images/$gone?force=1" >/dev/null
	context 'echo anew >/made'
	run ab create $P -n eight -y
	is "$status" 0 'an image that somebody took away'
	like "$err" '^agentbox: the image that boxes boot from is gone at docker: making it anew' \
		'is made anew, which is said'
	run ab exec eight -- cat /made
	is "$out" anew 'and the box is of the new one'
	context 'exit 9'
	ok 'it goes' ab destroy eight -y
	docker_api DELETE "/images/$(ab prepare $P --status |
		sed -n 's/^default: \(sha256:[0-9a-f]*\),.*/\1/p')?force=1" >/dev/null
	run ab create $P -n nine -y
	is "$status" 1 'one that cannot be made anew'
	like "$err" 'exit code 9' 'is no box, and that is why'
	run ab list -g
	is "$out" 'no boxes' 'and nothing is left of it'
	for image in more bare default "$former"; do
		ab image rm "$image" $P -y || diag "$image"
	done >/dev/null 2>&1
	is "$(left)" '0 0' 'all goes'
}
done_testing
