#!/bin/sh
# SPDX-License-Identifier: MIT
# A suite of Debian becomes an image of local, and a box of it is a whole Debian.
. "${0%/*}/functions.sh"

have mmdebstrap || skip_all 'mmdebstrap is not installed'
mkdir "$T/p" && cd "$T/p" || exit 99
P='--provider local'
no_net='--egress none'
# shellcheck disable=SC2086
{
	one_line_error 1 'prepare --provider local --from debian:bookworm' \
		'a suite is prepared first' ab create $P $no_net -n early --image debian:bookworm -y
	ok 'fewer packages' ab config set local.packages sudo,git
	run ab prepare $P --from debian:bookworm
	if [ "$status" -ne 0 ] &&
		printf '%s\n' "$err" | grep -Eq 'Could not connect|resolving|Failed to fetch'; then
		diag "$err"
		skip_all 'no mirror of Debian answers'
	fi
	is "$status" 0 'prepare'
	diag "$err"
	run ab prepare $P --from debian:bookworm
	like "$out" 'there already' 'once is enough'
	run ab image ls $P
	like "$out" '^debian:bookworm ' 'image ls'
	ok 'create' ab create $P $no_net -n deb --image debian:bookworm -y
}
run ab exec deb -- sh -c 'id -un; sudo -n id -u; git --version; . /etc/os-release; echo $ID'
is "$(printf '%s' "$out" | sed 's/ [0-9.]*$//' | tr '\n' ' ')" 'vscode 0 git version debian' \
	'user, sudo, git'
cat >build.sh <<'END'
set -e
mkdir -p t/DEBIAN t/opt/there
printf 'Package: there\nVersion: 1\nArchitecture: all\nMaintainer: A <a@b.c>\nDescription: x\n' \
	>t/DEBIAN/control
{
	echo '#!/bin/sh'
	echo 'set -e'
	echo 'id there >/dev/null 2>&1 || useradd -r there'
	echo 'chown there /opt/there/f'
} >t/DEBIAN/postinst
chmod 755 t/DEBIAN/postinst
echo content >t/opt/there/f
dpkg-deb --build t t.deb >/dev/null
sudo -n dpkg -i t.deb >/dev/null
stat -c %U /opt/there/f
sudo -n apt-get -qqy install --reinstall ./t.deb >/dev/null
dpkg-query -W -f '${Status}\n' there
sudo -n apt-get -qqy purge there >/dev/null
test ! -e /opt/there/f && echo gone
END
run ab cp build.sh deb:/tmp/build.sh
run ab exec deb -- sh /tmp/build.sh
diag "$err"
is "$out" "there
install ok installed
gone" 'dpkg and apt install and remove'
no 'an image in use stays' ab image rm $P debian:bookworm -y
run ab destroy deb -y
ok 'image rm' ab image rm $P debian:bookworm -y
no 'nothing of it is left' sh -c "ls '$AGENTBOX_HOME'/providers/local/store/images | grep -qv lock"
done_testing
