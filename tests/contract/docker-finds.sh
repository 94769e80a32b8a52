#!/bin/sh
# SPDX-License-Identifier: MIT
# Where the engine is looked for, which version is spoken, what is said of one that cannot be
# used, and how many requests a command takes.  The engine is played.
. "${0%/*}/../cli/functions.sh"
# shellcheck source=docker-play.sh
. "${0%/*}/docker-play.sh"

docker_is_built || skip_all 'configured without the docker provider'
docker_root "$T/root.tar" || fail 'a root file system is made'
docker_play "$T/root"
docker_breaks "$T/breaks"
unset DOCKER_CONFIG DOCKER_CONTEXT XDG_RUNTIME_DIR
export AGENTBOX_PROVIDER=docker
there=$DOCKER_HOST
socket=${there#unix://}

finds() # DESC
{
	run ab doctor --provider docker
	like "$out" "^docker: engine +ok .* API 1\.41" "$1"
}

refuses() # ERE DESC
{
	run ab doctor --provider docker
	like "$out" "^docker .*fail.*$1" "$2"
	[ "$status" -ne 0 ] && pass "$2: doctor fails" || fail "$2: doctor fails"
}

finds 'DOCKER_HOST=unix://PATH'
DOCKER_HOST=$socket
finds 'DOCKER_HOST=PATH'
DOCKER_HOST=unix://$T/none/docker.sock
refuses 'not running.*start it' 'nobody there'
DOCKER_HOST=tcp://127.0.0.1:9
refuses 'not running.*start it' 'nobody there, by TCP'
DOCKER_HOST=ssh://somewhere
refuses 'ssh is not spoken here.*ssh -nNT -L' 'ssh'
DOCKER_HOST=gopher://somewhere
refuses 'not an address.*unix:///PATH' 'no address'

DOCKER_HOST=$there
for old in old text; do
	whole_again
	break_at ping "$old" 0 0
	case $old in
	old) refuses 'too old.*1\.24.*upgrade it' 'an old engine' ;;
	*) refuses 'HTTP.*docker info' 'something else' ;;
	esac
done
whole_again
if is_root; then
	# Behind a socket that is not his.
	chmod 711 "$T" "$T/breaks"
	chmod 600 "$socket"
	run setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/nonexistent \
		AGENTBOX_HOME="$T/nobody" "$BUILD/tests/wrapper" true
	if [ "$status" -eq 0 ]; then
		mkdir "$T/nobody" && chown 65534 "$T/nobody"
		run setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/nonexistent \
			AGENTBOX_HOME="$T/nobody" "$BUILD/tests/wrapper" \
			agentbox doctor --provider docker
		like "$out" '^docker .*permission denied.*usermod -aG docker' 'not his socket'
	else
		skip 'not his socket' -- 'others cannot read the build here'
	fi
else
	chmod 0 "$socket"
	refuses 'permission denied.*usermod -aG docker' 'not my socket'
fi
chmod 700 "$socket"

for version in 1.41 1.44 1.51 1.99; do
	whole_again
	echo "$version" >"$T/played/api"
	ab doctor --provider docker >/dev/null 2>&1
	spoken=$version
	[ "$version" != 1.99 ] || spoken=1.51
	is "$(sed -n 's,^info GET /v\([0-9.]*\)/info$,\1,p' "$breaks/log")" "$spoken" \
		"with an engine of $version"
done
rm "$T/played/api"

# As `docker context create` leaves it; the directory has a hash for a name.
unset DOCKER_HOST
mkdir -p "$HOME/.docker/contexts/meta/2c26b46b"
cat >"$HOME/.docker/contexts/meta/2c26b46b/meta.json" <<END
{"Name":"foo","Metadata":{},"Endpoints":{"docker":{"Host":"$there","SkipTLSVerify":false}}}
END
export DOCKER_CONTEXT=foo
finds 'DOCKER_CONTEXT'
DOCKER_CONTEXT=bar
refuses "Docker context 'bar': there is none.*docker context ls" 'a context that is not there'
unset DOCKER_CONTEXT
echo '{"currentContext":"foo"}' >"$HOME/.docker/config.json"
finds 'the current context'
rm -r "$HOME/.docker"
if [ -e /var/run/docker.sock ] || [ -e /run/podman/podman.sock ]; then
	skip 'the usual places' -- 'there is an engine in one of them'
else
	export XDG_RUNTIME_DIR="$T/run"
	for place in "$T/run/docker.sock" "$HOME/.docker/run/docker.sock" \
		"$HOME/.docker/desktop/docker.sock" "$HOME/.orbstack/run/docker.sock" \
		"$HOME/.colima/default/docker.sock" "$HOME/.colima/docker.sock" \
		"$HOME/.rd/docker.sock" "$T/run/podman/podman.sock"; do
		mkdir -p "${place%/*}"
		ln -s "$socket" "$place"
		finds "${place#"$T"/}"
		rm "$place"
	done
	refuses 'nothing answers at /var/run/docker\.sock' 'nowhere'
fi

# Which version is spoken is asked once, and again when doctor wants to know, when the engine
# listens anew, or when it says that it speaks another one.
DOCKER_HOST=$there
export DOCKER_HOST
mkdir "$T/repo"
make_repo "$T/repo" >/dev/null
cd "$T/repo" || exit 99
requests()
{
	cut -d' ' -f1 "$breaks/log" | tr '\n' ' '
}
whole_again
ok 'a box' ab create --image played -n one -y
is "$(requests | sed 's/\(exec-create exec-start exec-json \)*$//')" 'ping create start inspect ' \
	'what a create asks beside commands'
n=$(asked exec-start)
[ "$n" -le 2 ] && pass 'a create runs two commands' || fail "a create runs two commands: $n"
whole_again
ok 'a command' ab exec one -n -- true
is "$(requests)" 'exec-create exec-start exec-json ' 'what a command asks'
whole_again
echo 1.44 >"$T/played/api"
echo 1.44 >"$T/played/min-api"
ok 'the engine was replaced' ab exec one -n -- true
is "$(requests)" 'exec-create ping exec-create exec-start exec-json ' 'that is asked for once more'
is "$(sed -n 's,^exec-start POST /v\([0-9.]*\)/.*,\1,p' "$breaks/log")" 1.44 'and spoken'
rm "$T/played/api" "$T/played/min-api"
ab doctor --provider docker >/dev/null 2>&1
chmod 750 "$socket"
whole_again
ok 'a socket that changed' ab exec one -n -- true
is "$(requests)" 'ping exec-create exec-start exec-json ' 'is asked'
ab create --image played -n two -y >/dev/null 2>&1
ab create --image played -n three -y >/dev/null 2>&1
whole_again
ok 'prune' ab prune -y
is "$(requests)" 'list ' 'a list of all boxes is one request'
done_testing
