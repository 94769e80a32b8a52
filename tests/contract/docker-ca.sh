#!/bin/sh
# SPDX-License-Identifier: MIT
# Behind a proxy that looks into TLS, or with services of a private authority: box.ca_file reaches
# what builds the image of boxes, and curl, git and node in them.
# shellcheck source=docker-functions.sh
. "${0%/*}/docker-functions.sh"

docker_engine
mkdir "$T/tls" "$T/p" && cd "$T/p" || exit 99
"$BUILD/tests/contract/tls-server" "$T/tls" &
server=$!
atexit kill "$server"
wait_for 10 test -s "$T/tls/port"
url=https://172.17.0.1:$(cat "$T/tls/port")
P='--provider docker'

# A root whose apt-get needs what the server has, and no other.
docker_programs="$docker_programs curl"
! have node || docker_programs="$docker_programs node"
docker_fake_suite "$T/root.tar"
docker_root "$T/root.tar" || fail 'a root file system is made'
exec_path=$(git --exec-path)
mkdir -p "$T/root$exec_path" "$T/root/etc/ssl/certs"
cat /etc/ssl/certs/*.crt >"$T/root/etc/ssl/certs/ca-certificates.crt"
cp -L "$exec_path/git-remote-https" "$T/root$exec_path/"
docker_libraries "$exec_path/git-remote-https" | docker_add "$T/root"
docker_debian "$T/root" || fail 'packages can be installed in it'
cat >"$T/root/bin/apt-get" <<END
#!/bin/sh
case " \$* " in
*' clean '*) ;;
*) curl -sS $url/ ;;
esac
END
tar -cf "$T/root.tar" -C "$T/root" .

# shellcheck disable=SC2086
{
	run ab prepare $P --from "$T/root.tar"
	is "$status" 1 'a build that trusts nobody'
	like "$err" '^curl: \(60\) SSL certificate problem' 'fails, and says why'
	like "$err" '^agentbox: .*/[0-9]+ : RUN .*: exit code 60: ' 'and at which step'
	ok 'box.ca_file' ab config set --global box.ca_file "$T/tls/ca.pem"
	run ab prepare $P --from "$T/root.tar" -v
	is "$status" 0 'with it the build works'
	like "$err" '^hello$' 'which got there'
	ok 'a box' ab create $P -n one -y
	run ab exec one -- curl -sS "$url/"
	is "$out" hello 'curl in the box'
	run ab exec one -- git ls-remote "$url/repo"
	like "$out" 'refs/heads/main' 'git'
	if have node; then
		get='require("https").get(process.argv[1], r => console.log(r.statusCode))'
		run ab exec one -- node -e "$get" "$url/"
		is "$out" 200 'node'
	fi
	run ab exec one --user root -- curl -sS "$url/"
	is "$out" hello 'root too'
	ok 'the user has the last word' ab create $P -n two -y -e CURL_CA_BUNDLE=/dev/null
	run ab exec two -- printenv CURL_CA_BUNDLE
	is "$out" /dev/null 'about a variable'
	ok 'without box.ca_file' ab config unset --global box.ca_file
	ok 'a box' ab create $P -n three -y
	code 60 'trusts nobody: nothing of it is in the image' ab exec three -- curl -sS "$url/"
	ok 'a fork' ab fork one -n four
	run ab exec four -- curl -sS "$url/"
	is "$out" hello 'trusts whom its source did'
	ab destroy --all -y >/dev/null 2>&1
	ok 'the image goes' ab image rm default $P -y
}
done_testing
