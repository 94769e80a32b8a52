#!/bin/sh
# SPDX-License-Identifier: MIT
# box.ca_file and box.host_ca: certificates that a box trusts beside its own.
. "${0%/*}/functions.sh"

mkdir "$T/p" && cd "$T/p" || exit 99
cat >"$T/ca.pem" <<'END'
-----BEGIN CERTIFICATE-----
b25lIG9mIG91cnM=
-----END CERTIFICATE-----
END
ok 'box.ca_file' ab config set --global box.ca_file "$T/ca.pem"
ok 'a box' ab create -n one -y
# shellcheck disable=SC2016
run ab exec one -- sh -c 'grep -c b25lIG9mIG91cnM= "$NODE_EXTRA_CA_CERTS" "$SSL_CERT_FILE" \
	"$CURL_CA_BUNDLE" "$GIT_SSL_CAINFO" "$REQUESTS_CA_BUNDLE"'
is "$(printf '%s\n' "$out" | grep -c ':1$')" 5 'variables name files that have it'
own=$(grep -c BEGIN /etc/ssl/certs/ca-certificates.crt 2>/dev/null)
# shellcheck disable=SC2016
run ab exec one -- sh -c 'grep -c BEGIN "$SSL_CERT_FILE"'
is "$out" "$((${own:-0} + 1))" 'beside those that the box had'
printf -- '-----BEGIN PRIVATE KEY-----\n' >>"$T/ca.pem"
one_line_error 1 'there is a private key in it' 'a private key goes nowhere' ab create -n two -y
printf 'nothing\n' >"$T/ca.pem"
one_line_error 1 'no certificate' 'what is no certificate is refused' ab create -n two -y
rm "$T/ca.pem"
one_line_error 1 "box.ca_file '.*ca.pem'" 'and what is not there' ab create -n two -y
ok 'no box.ca_file' ab config unset --global box.ca_file
ok 'a box as any' ab create -n two -y
run ab exec two -- printenv SSL_CERT_FILE
is "$status" 1 'is told nothing'
done_testing
