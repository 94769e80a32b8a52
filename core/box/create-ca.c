/* SPDX-License-Identifier: MIT */
/*
 * Certificates that a box is to trust beside its own.
 *
 * Two files in the box, and variables that name them, which every system and most programs
 * understand.  Programs that start without these variables, as by sudo, find the certificates
 * among Debian's too, where those can be added to.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "abxsdk/fs.h"
#include "core/box/create-io.h"
#include "core/util/mem.h"

#define EXTRA "/etc/agentbox/ca.pem"
#define BUNDLE "/etc/agentbox/ca-bundle.pem"
#define SEND_TIMEOUT_MS 60000

static const struct abx_kv variables[] = {{"SSL_CERT_FILE", BUNDLE},
					  {"GIT_SSL_CAINFO", BUNDLE},
					  {"CURL_CA_BUNDLE", BUNDLE},
					  {"REQUESTS_CA_BUNDLE", BUNDLE},
					  {"NODE_EXTRA_CA_CERTS", EXTRA}};

static const char script[] =
	"set -eu\n"
	"umask 022\n"
	"as=\n"
	"[ -w /etc ] || as='sudo -n'\n"
	"$as mkdir -p /etc/agentbox\n"
	"$as tee " EXTRA " >/dev/null\n"
	"own=\n"
	"for f in /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt"
	" /etc/ssl/ca-bundle.pem /etc/ssl/cert.pem; do\n"
	"	[ -n \"$own\" ] || [ ! -s $f ] || own=$f\n"
	"done\n"
	"cat $own " EXTRA " | $as tee " BUNDLE " >/dev/null\n"
	"debian=/usr/local/share/ca-certificates system=/etc/ssl/certs/ca-certificates.crt\n"
	"[ -d $debian ] && [ -s $system ] || exit 0\n"
	"{ $as cp " EXTRA " $debian/agentbox.crt &&\n"
	"	$as tee -a $system <" EXTRA "; } >/dev/null 2>&1 || :\n";

static bool has(const struct abx_env *env, const char *key)
{
	for (size_t i = 0; i < env->len; i++)
		if (strcmp(env->items[i].key, key) == 0)
			return true;
	return false;
}

int abx_create_load_ca(struct abx_creating *c, struct abx_err *err)
{
	int r;

	/* A fork has all of it. */
	if (c->req->from)
		return 0;
	c->ca = (struct abx_buf)ABX_BUF_INIT(ABX_CA_MAX_BYTES);
	r = abx_ca_load(c->config, &c->ca, err);
	for (size_t i = 0; i < ABX_N_ELEMENTS(variables) && r == 0 && c->ca.len; i++)
		if (!has(&c->env, variables[i].key))
			abx_env_set(&c->env, variables[i].key, variables[i].value);
	return r;
}

static int spool(const struct abx_creating *c, struct abx_err *err)
{
	abx_autoclose int fd = memfd_create("ca", MFD_CLOEXEC);
	int r = fd < 0 ? -errno : abx_fs_write_all(fd, c->ca.data, c->ca.len);

	if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
		r = -errno;
	return r < 0 ? abx_err_errno(err, r, "certificates for the box") : abx_steal_fd(&fd);
}

static int send_as(struct abx_creating *c, const char *user, int *ret_code, struct abx_err *err)
{
	const char *const argv[] = {"/bin/sh", "-c", script, NULL};
	const struct abx_call_opts o = {
		.timeout_ms = SEND_TIMEOUT_MS,
		.box_id = c->box.id,
		.plain_exec = abx_cloud_caps(c->cloud) & ABX_CAP_EXEC_STDIN,
	};
	const struct abx_sandbox s = abx_cloud_sandbox(&c->box);
	abx_autoclose int fd = spool(c, err);
	const struct abx_exec_request req = {
		.argv = argv, .cwd = "/", .user = user, .fd_in = fd, .fd_out = -1, .fd_err = -1};

	return fd < 0 ? fd : abx_exec_on(c->cloud, &o, &s, &req, ret_code, err);
}

int abx_create_send_ca(struct abx_creating *c, struct abx_err *err)
{
	int code = 0, r;

	if (!c->ca.len)
		return 0;
	r = send_as(c, "root", &code, NULL);
	/* Not everywhere does a command run as somebody else; sudo may be there. */
	if ((r < 0 && r != ABX_ECANCELED) || code)
		r = send_as(c, NULL, &code, err);
	if (r < 0)
		return r;
	if (!code)
		return 0;
	(void)abx_err_set(err, ABX_ENOTSUP,
			  "box '%s': the certificates of box.ca_file cannot be put into it",
			  c->box.name);
	return abx_err_remedy(err, "use an image with sudo, or unset box.ca_file and box.host_ca");
}
