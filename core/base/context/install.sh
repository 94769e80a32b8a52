#!/bin/sh
# SPDX-License-Identifier: MIT
# What a box of an agent's has, as root in an image that is being built: the packages that
# PACKAGES lists (separated by commas), a user with sudo, a workspace.  Exit code 43: nothing can
# be installed in it.
set -eu

here=$(dirname "$0")
say()
{
	printf 'agentbox: %s\n' "$*"
}

command -v apt-get >/dev/null && command -v dpkg-query >/dev/null || {
	say 'there is no apt-get in it, so nothing can be installed'
	exit 43
}
export DEBIAN_FRONTEND=noninteractive LC_ALL=C

missing=
for package in $(printf '%s' "${PACKAGES:?}" | tr ',' ' '); do
	status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) || status=
	[ "$status" = installed ] || missing="$missing $package"
done

# Certificates that are needed to get at packages; boxes are given theirs when they are made.
if [ -s "$here/ca.pem" ]; then
	bundle=$here/ca-bundle.pem
	cat /etc/ssl/certs/ca-certificates.crt >"$bundle" 2>/dev/null || :
	cat "$here/ca.pem" >>"$bundle"
	mkdir -p /etc/apt/apt.conf.d
	printf 'Acquire::https::CAInfo "%s";\n' "$bundle" >/etc/apt/apt.conf.d/99agentbox-build
	export SSL_CERT_FILE="$bundle" CURL_CA_BUNDLE="$bundle"
fi

get()
{
	apt-get -qy -o Acquire::Retries=3 -o Dpkg::Options::=--force-unsafe-io \
		install --no-install-recommends "$@"
}

# Some releases have the program that speaks with the engine in a package of its own.
command -v dockerd >/dev/null && ! command -v docker >/dev/null && missing="$missing docker-cli"
if [ -n "$missing" ]; then
	say "installing$missing"
	apt-get -q -o Acquire::Retries=3 update
	# shellcheck disable=SC2086
	get $missing
	command -v dockerd >/dev/null && ! command -v docker >/dev/null && get docker-cli
	apt-get clean
	rm -rf /var/lib/apt/lists/*
else
	say 'all packages are there'
fi

getent passwd vscode >/dev/null || useradd -m -s /bin/bash vscode
if [ -d /etc/sudoers.d ]; then
	printf 'vscode ALL=(ALL) NOPASSWD:ALL\n' >/etc/sudoers.d/agentbox
	chmod 0440 /etc/sudoers.d/agentbox
fi
! getent group docker >/dev/null || usermod -aG docker vscode
mkdir -p /workspace /etc/agentbox /var/log/agentbox
chown vscode: /workspace /var/log/agentbox
install -m 755 "$here/start-dockerd.sh" "${here%/*}/start-dockerd"
rm -rf /etc/apt/apt.conf.d/99agentbox-build "$here"
