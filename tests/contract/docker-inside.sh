#!/bin/sh
# SPDX-License-Identifier: MIT
# An engine of its own in a box (docker.start_dockerd), and the plugins of the docker program.
# shellcheck source=docker-functions.sh
. "${0%/*}/docker-functions.sh"

docker_engine
command -v iptables >/dev/null || skip_all 'no iptables, which dockerd in a box needs'
mkdir "$T/p" "$T/small" && cd "$T/p" || exit 99

# Debian's docker, not one that comes before it here.
docker_programs="$docker_programs containerd containerd-shim-runc-v2 docker dockerd iptables mount
	runc umount"
docker_root "$T/root.tar" || fail 'a root file system is made'
docker_debian "$T/root" || fail 'packages can be installed in it'
for extensions in /usr/lib/*/xtables /usr/lib/xtables /usr/lib64/xtables; do
	[ ! -d "$extensions" ] || find "$extensions" -name '*.so'
done | docker_add "$T/root"
echo 'docker:x:102:vscode' >>"$T/root/etc/group"
ln -s ../run "$T/root/var/run"
tar -cf "$T/root.tar" -C "$T/root" .
rm -r "$T/root"
{
	printf '%s\n' /bin/sh /bin/sleep
	docker_libraries /bin/sh /bin/sleep
} | docker_add "$T/small"
tar -cf "$T/p/small.tar" -C "$T/small" .
export AGENTBOX_PROVIDER=docker

refused() # CODE ERE DESC COMMAND...
{
	refused_code=$1 refused_ere=$2 refused_what=$3
	shift 3
	run "$@"
	is "$status" "$refused_code" "$refused_what: no"
	like "$(printf '%s\n' "$err" | tail -n 1)" "^agentbox: .*$refused_ere.*\(.*\)\$" \
		"$refused_what: why, and what to do"
}

inspect() # BOX PERL
{
	docker_api GET "/containers/$(ab status "$1" --json |
		sed -n 's/.*"sandbox_id":[[:space:]]*"\(.*\)".*/\1/p')/json" |
		perl -MJSON::PP -e 'my $d = decode_json(join "", <STDIN>); my $h = $d->{HostConfig};
			print join " ", '"$2"
}
# shellcheck disable=SC2016
shape='$h->{Privileged} ? "privileged" : "plain", sort(@{$h->{CapAdd}}), @{$h->{SecurityOpt}},
	@{$h->{DeviceCgroupRules}}, map { $_->{Destination} } @{$d->{Mounts}}'

# What a user gives for the image must be what he meant.
cat >"$T/compose" <<'END'
#!/bin/sh
case $1 in
docker-cli-plugin-metadata) echo '{"SchemaVersion":"0.1.0","Vendor":"a test","Version":"1"}' ;;
*) echo "composed: $*" ;;
esac
END
sum=$(sha256sum <"$T/compose" | cut -d' ' -f1)
prepare()
{
	ab prepare --from "$T/root.tar" "$@"
}
AGENTBOX_DOCKER_COMPOSE=$T/compose@sha256:$(printf '%064d' 0)
export AGENTBOX_DOCKER_COMPOSE
refused 6 "docker-compose: '$T/compose' is not the file that was meant: its SHA-256 is $sum" \
	'another file' prepare
AGENTBOX_DOCKER_COMPOSE=$T/compose
refused 1 'docker\.compose: not /PATH@sha256:HASH' 'a file without its hash' prepare
AGENTBOX_DOCKER_COMPOSE=$T/none@sha256:$sum
refused 1 "docker-compose: '$T/none': No such file" 'a file that is not there' prepare
AGENTBOX_DOCKER_COMPOSE=$T/compose@sha256:$(printf '%s' "$sum" | tr a-f A-F)
code 0 'the file that was meant' prepare
run ab prepare --status
like "$out" ', [^;]*$' 'its image is current'
run env AGENTBOX_DOCKER_COMPOSE="$AGENTBOX_DOCKER_COMPOSE" AGENTBOX_DOCKER_START_DOCKERD=yes \
	"$BUILD/tests/wrapper" agentbox prepare --status
like "$out" '; no longer current$' 'docker.start_dockerd: other packages, another image'

# Without the option a box has nothing of it.
ok 'a box' ab create -n plain -y
is "$(inspect plain "$shape")" plain 'has the usual capabilities'
ok 'away' ab destroy plain -y
mkdir "$T/given"
printf 'defaults:\n  docker:\n    start_dockerd: true\n' >"$T/given/agentbox.yaml"
refused 6 'agentbox\.yaml: .*may not set .docker\.start_dockerd' 'a repository cannot have it' \
	ab create -w "$T/given" -n given -y

ok 'docker.start_dockerd' ab config set --global docker.start_dockerd true
ok 'the image anew' prepare
# Were the layers of an engine in here, they would lie on the overlay of this one.
run ab create -n one -y
is "$status" 0 'a box with an engine' || diag "$err"
like "$err" 'start_dockerd: .*root in it can get at the machine' 'what that means is said'
wanted='plain NET_ADMIN SYS_ADMIN seccomp=unconfined apparmor=unconfined c 10:229 rwm'
is "$(inspect one "$shape")" "$wanted /var/lib/docker" 'has what it needs and is not privileged'
run ab exec one -- docker import small.tar small
is "$status" 0 'an image goes in' || diag "$err"
run ab exec one -- docker run --rm small /bin/sh -c 'echo "in a box in $0"' a-box
is "$out" 'in a box in a-box' 'and runs' || diag "$err"
run ab exec one -- docker info -f '{{.Driver}}'
is "$out" overlay2 'in layers'
run ab exec one -- docker compose up
is "$out" 'composed: compose up' 'the plugin is there'
ok 'stop' ab stop one
ok 'start' ab start one
run ab exec one -- docker run --rm small /bin/sh -c 'echo again'
is "$out" again 'the engine is there again, with its images'

# Where a layer cannot lie on another one they are copied.
run ab exec one --user root -- sh -c 'kill "$(cat /var/run/docker.pid)"
	while kill -0 "$(cat /var/run/docker.pid)"; do sleep 0.1; done
	umount -l /var/lib/docker && exec /usr/local/lib/agentbox/start-dockerd' 2>/dev/null
is "$out" vfs 'storage is chosen by what works'
ok 'destroyed' ab destroy one -y
is "$(docker_api GET /volumes | grep -c '"Name"')" 0 'with its volume'

bare()
{
	docker_api POST '/images/create?fromSrc=-&repo=bare&tag=1' "$T/p/small.tar" >/dev/null
	refused 1 "$@" ab create --image bare:1 -n bare -y
}
bare "no engine is in the box's image" 'an image without one'

# An engine that has not got it itself cannot give it.
docker_through='setpriv --bounding-set -net_admin'
docker_start "$T/less" --bridge none --iptables=false --ip-forward=false
wait_for 30 docker_is_up
bare 'does not give a box what an engine in it needs: .*not permitted' 'an engine that forbids it'
is "$(docker_api GET '/containers/json?all=1')" '[]' 'nothing is left'
done_testing
