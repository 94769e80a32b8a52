#!/bin/sh
# SPDX-License-Identifier: MIT
# An engine that is spoken with over TLS: a private authority, a certificate of the client's, and
# what is said when one of them is not right.
# shellcheck source=docker-functions.sh
. "${0%/*}/docker-functions.sh"

docker_is_built || skip_all 'configured without the docker provider'
[ -n "$docker_can_start" ] || skip_all 'no Docker engine can be started here'
command -v openssl >/dev/null || skip_all 'no openssl, which makes certificates'

authority() # NAME
{
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 \
		-subj "/CN=$1" -keyout "$T/$1.key" -out "$T/$1.pem" 2>/dev/null
}

certificate() # AUTHORITY NAME EXTENSION DAYS
{
	mkdir "$T/$2" && printf '%s\n' "$3" >"$T/$2/ext" &&
		openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$2" \
			-keyout "$T/$2/key.pem" -out "$T/$2/request" 2>/dev/null &&
		openssl x509 -req -in "$T/$2/request" -CA "$T/$1.pem" -CAkey "$T/$1.key" \
			-set_serial "$4$$" -days "$4" -extfile "$T/$2/ext" \
			-out "$T/$2/cert.pem" 2>/dev/null &&
		cp "$T/$1.pem" "$T/$2/ca.pem"
}
authority ours && authority other &&
	certificate ours server subjectAltName=IP:127.0.0.1 2 &&
	certificate ours client extendedKeyUsage=clientAuth 2 &&
	certificate other stranger extendedKeyUsage=clientAuth 2 || fail 'certificates are made'
# Over since yesterday.
for name in late-server late-client; do
	certificate ours "$name" subjectAltName=IP:127.0.0.1 -1 || fail 'one that is over is made'
done

docker_start "$T/engine" -H tcp://127.0.0.1:2376 --tlsverify --tlscacert "$T/ours.pem" \
	--tlscert "$T/server/cert.pem" --tlskey "$T/server/key.pem"
wait_for 30 docker_is_up
docker_answers || skip_all 'a Docker engine does not start here'
docker_root "$T/root.tar" || fail 'a root file system is made'
export DOCKER_HOST=tcp://127.0.0.1:2376 DOCKER_TLS_VERIFY=1 DOCKER_CERT_PATH="$T/client" \
	AGENTBOX_PROVIDER=docker
mkdir "$T/p" && echo hello >"$T/p/file" && cd "$T/p" || exit 99
code 0 'an image goes there' ab prepare --from "$T/root.tar" -n tls
ok 'a box' ab create --image tls -n far -y
run ab exec far -- cat file
is "$out" hello 'has the project'
head -c 300000 /dev/urandom >"$T/bytes"
ok 'a stream goes in' ab cp "$T/bytes" far:/tmp/bytes
ok 'and out' ab cp far:/tmp/bytes "$T/again"
same "$T/bytes" "$T/again" 'unchanged'
ab exec far -- sh -c 'cat; exit 3' <"$T/bytes" >"$T/echoed"
is "$?" 3 'a command takes its input to the end'
same "$T/echoed" "$T/bytes" 'and gives it back'
ok 'destroyed' ab destroy far -y
code 0 'the image goes' ab image rm tls -y

refuses() # DESC ERE
{
	run ab image ls
	like "$err" "^agentbox: .*: Docker engine at [a-z]*${DOCKER_HOST#tcp}: $2 \(.*\)\$" "$1"
	is "$status" 4 "$1: exit code"
}
cp -r "$T/client" "$T/wrong" && cp "$T/other.pem" "$T/wrong/ca.pem"
DOCKER_CERT_PATH=$T/wrong
refuses 'an engine of another authority' 'its certificate is of none .* that ca\.pem names'
DOCKER_CERT_PATH=$T/none
refuses 'no authority' 'its certificate is of none .* that this machine knows'
DOCKER_CERT_PATH=$T/client
DOCKER_HOST=tcp://localhost:2376
refuses 'an engine with another name' 'its certificate is for another name'
DOCKER_HOST=tcp://127.0.0.1:2376
mkdir "$T/bare" && cp "$T/ours.pem" "$T/bare/ca.pem"
DOCKER_CERT_PATH=$T/bare
refuses 'no certificate of ours' 'it wants a certificate, and there is no cert\.pem'
cp "$T/ours.pem" "$T/stranger/ca.pem"
for name in stranger late-client; do
	DOCKER_CERT_PATH=$T/$name
	refuses "a certificate of ours that does not do: $name" 'it refuses our certificate'
done
cp "$T/client/cert.pem" "$T/bare"
DOCKER_CERT_PATH=$T/bare
refuses 'no key' 'cert\.pem and key\.pem: one is missing, or they do not belong together'
cp "$T/server/key.pem" "$T/bare"
refuses 'the key of another one' 'cert\.pem and key\.pem: .* do not belong together'
unset DOCKER_TLS_VERIFY
refuses 'TLS that was not asked for' 'it wants TLS'
export DOCKER_TLS_VERIFY=1
DOCKER_CERT_PATH=$T/client
DOCKER_HOST=tcp://127.0.0.1:2375
openssl s_server -accept 127.0.0.1:2375 -cert "$T/late-server/cert.pem" \
	-key "$T/late-server/key.pem" -quiet >/dev/null 2>&1 </dev/null &
atexit kill "$!"
listens() # PORT
{
	grep -q ":$(printf %04X "$1") .* 0A " /proc/net/tcp
}
wait_for 10 listens 2375
refuses 'an engine whose certificate is over' 'its certificate is out of date'
done_testing
