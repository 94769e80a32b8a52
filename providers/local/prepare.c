/* SPDX-License-Identifier: MIT */
/*
 * Preparing an image under a name: from a suite of Debian or Ubuntu, from a directory or tar
 * file of this machine, or from a tar stream.
 *
 * What is being made has no name yet, images/new-<key>; it gets its key by a rename, and the
 * record gets the key by another.  What dies in between leaves something that no record and
 * no lock has, and that is removed with other unused images.
 */
#include "providers/local/image.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>

#include "abxsdk/suite.h"

#define BOOTSTRAP_TARGET "/tmp/root" /* in the mount namespace of LB_OP_BOOTSTRAP */
#define TAIL_BYTES ((size_t)2048)
#define SHOWN_BYTES ((size_t)600)

struct recipe {
	const struct abx_prepare *req;
	const char *name, *from, *mirror, *packages;
	struct local_source src; /* of a directory, file or stream */
	bool is_suite;
	char fingerprint[LOCAL_PRINT_TEXT];
};

/* The end of what mmdebstrap says, for when it fails. */
struct tail {
	char text[TAIL_BYTES + 1];
	size_t len, line; /* where the last line begins */
};

static int32_t refuse(struct abx_call *call, const struct abx_prepare *p)
{
	const char *what = NULL;

	if ((p->dockerfile && *p->dockerfile) || p->n_steps)
		what = "Dockerfiles (give a suite, a directory or a tar file)";
	else if (p->script && *p->script)
		what = "scripts (run it in a box, and take a checkpoint)";
	else if (p->n_args)
		what = "build arguments";
	else if (p->size && *p->size)
		what = "sizes";
	else if (p->location && *p->location)
		what = "locations";
	else if (p->flags & ~ABX_PREPARE_FORCE)
		what = "these flags of prepare";
	if (!what)
		return ABX_OK;
	return abx_fail(call, ABX_ENOTSUP, NULL, "%s: not supported", what);
}

static const char *option(const struct abx_prepare *p, const char *key, const char *dflt)
{
	for (uint32_t i = 0; i < p->n_options; i++)
		if (strcmp(p->options[i].key, key) == 0 && *p->options[i].value)
			return p->options[i].value;
	return dflt ? dflt : "";
}

/* Names of packages, one after another: they go into a list of mmdebstrap's. */
static int32_t check_packages(struct abx_call *call, const char *packages)
{
	if (abx_suite_packages_ok(packages))
		return ABX_OK;
	return abx_fail(call, ABX_EINVAL, "names of packages, separated by commas",
			"local.packages: %.200s: not a list of packages", packages);
}

static void add_text(struct local_print *p, const char *key, const char *text)
{
	const struct stat nothing = {.st_size = 0};
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(65536);

	abx_buf_addf(&b, "%s=%s", key, text ? text : "");
	local_print_add(p, abx_buf_str(&b), &nothing);
}

static int32_t make_recipe(struct abx_session *s, struct abx_call *call, struct recipe *rc)
{
	const struct abx_prepare *p = rc->req;
	struct local_print print = {s->ids.uid_base, s->ids.gid_base};
	char key[LOCAL_PRINT_TEXT] = "";
	int32_t r = ABX_OK;

	rc->src = (struct local_source){.path = "stream", .fd = -1};
	rc->from = p->from && *p->from ? p->from : "";
	rc->is_suite = p->from_fd < 0 && abx_suite_is(rc->from);
	rc->name = p->name && *p->name ? p->name : rc->from;
	rc->mirror = option(p, "mirror", s->mirror);
	rc->packages = option(p, "packages", s->packages ? s->packages : abx_suite_packages);
	r = local_prepared_check_name(call, rc->name);
	if (r == ABX_OK && p->from_fd < 0 && !rc->is_suite && rc->from[0] != '/')
		r = abx_fail(call, ABX_EINVAL,
			     "debian:SUITE, ubuntu:SUITE, a directory or a tar file",
			     "prepare: %.200s: not something to prepare from", rc->from);
	if (r == ABX_OK && rc->is_suite)
		r = check_packages(call, rc->packages);
	if (r == ABX_OK && rc->is_suite && s->ids.map == LB_MAP_SINGLE)
		r = abx_fail(call, ABX_EPERM,
			     "install the package uidmap and give your user 65536 ids in "
			     "/etc/subuid and /etc/subgid",
			     "prepare: %s: its packages need more than one user id", rc->from);
	if (r == ABX_OK && rc->is_suite && !local_in_path("mmdebstrap"))
		r = abx_fail(call, ABX_EPERM, "install the package mmdebstrap",
			     "prepare: %s: mmdebstrap is not installed", rc->from);
	if (r == ABX_OK && p->from_fd < 0 && !rc->is_suite) {
		r = local_source_open(call, rc->from, &rc->src);
		if (r == ABX_OK)
			local_source_key(s, &rc->src, key);
	}
	if (p->from_fd >= 0)
		rc->src.fd = p->from_fd;
	add_text(&print, "from", rc->from);
	add_text(&print, "source", key);
	add_text(&print, "fingerprint", p->fingerprint);
	add_text(&print, "mirror", rc->is_suite ? rc->mirror : NULL);
	add_text(&print, "packages", rc->is_suite ? rc->packages : NULL);
	local_print_text(&print, rc->fingerprint);
	return r;
}

/* Say what came, and remember its end. */
static int32_t take_output(struct abx_call *call, int fd, struct tail *t, bool *ret_more)
{
	char b[4096];
	ssize_t n = read(fd, b, sizeof(b));
	int32_t r;

	*ret_more = n > 0;
	if (n <= 0)
		return ABX_OK;
	r = abx_plugin_host->emit_log(call, ABX_STREAM_STDERR, b, (size_t)n);
	for (ssize_t i = 0; i < n && r == ABX_OK; i++) {
		if (t->len == TAIL_BYTES) {
			size_t drop = TAIL_BYTES / 2;

			memmove(t->text, t->text + drop, t->len - drop);
			t->len -= drop;
			t->line = t->line > drop ? t->line - drop : 0;
		}
		t->text[t->len++] = b[i];
		t->text[t->len] = '\0';
		if (b[i] != '\n')
			continue;
		if (strncmp(t->text + t->line, "I: ", 3) == 0) {
			t->text[t->len - 1] = '\0';
			r = abx_plugin_host->progress(call, 0, 0, t->text + t->line + 3);
			t->text[t->len - 1] = '\n';
		}
		t->line = t->len;
	}
	return r == ABX_OK ? ABX_OK : abx_fail_canceled(call);
}

static const char *remedy_of(const struct tail *t, const char *from)
{
	if (strstr(t->text, "NO_PUBKEY") || strstr(t->text, "is not signed"))
		return strncmp(from, "ubuntu", 6) == 0 ? "install the package ubuntu-keyring"
						       : "install debian-archive-keyring anew";
	if (strstr(t->text, "404 ") || strstr(t->text, "does not have a Release file"))
		return "is there such a suite?  See local.mirror";
	if (strstr(t->text, "resolv") || strstr(t->text, "connect") ||
	    strstr(t->text, "Failed to fetch"))
		return "look at the network and the proxy, or set local.mirror";
	return NULL;
}

/* Its last lines as one, with the reason of the helper before them. */
static int32_t fail_bootstrap(struct abx_call *call, const struct lb_msg *m, struct tail *t,
			      const char *from)
{
	const char *remedy = *m->remedy ? m->remedy : remedy_of(t, from);
	char text[SHOWN_BYTES + 1] = "";
	size_t start = sizeof(text) - 1;

	while (t->len) {
		size_t end = t->len;
		const char *line;

		while (t->len && t->text[t->len - 1] != '\n')
			t->len--;
		line = t->text + t->len;
		end -= t->len;
		t->len -= t->len > 0;
		/* What it goes on with is not why it stopped. */
		if (!end || strncmp(line, "I: ", 3) == 0)
			continue;
		if (end + 2 > start)
			break;
		start -= end + 2;
		memcpy(text + start, ": ", 2);
		memcpy(text + start + 2, line, end);
	}
	for (char *at = text + start; *at; at++)
		if ((unsigned char)*at < ' ')
			*at = ' ';
	return abx_fail(call, m->code < 0 ? m->code : ABX_EIO, remedy, "prepare: %s: %s%s", from,
			m->text, text + start);
}

static int32_t follow(struct abx_call *call, const struct local_helper *h, int log_fd,
		      const char *from, int64_t *ret_bytes)
{
	struct tail t = {.len = 0};
	struct lb_msg m = {.kind = 0};
	bool more = true;
	int32_t r = ABX_OK;
	int got = -EAGAIN;

	while (r == ABX_OK && got == -EAGAIN) {
		struct pollfd p[] = {{.fd = h->status_fd, .events = POLLIN},
				     {.fd = more ? log_fd : -1, .events = POLLIN}};

		r = abx_call_poll(call, p, ABX_N_ELEMENTS(p), -1);
		if (r == ABX_OK && p[1].revents)
			r = take_output(call, log_fd, &t, &more);
		if (r == ABX_OK && p[0].revents)
			got = local_helper_read(h, &m);
	}
	/* What was said before the end is in the pipe by now. */
	while (r == ABX_OK && more) {
		struct pollfd p = {.fd = log_fd, .events = POLLIN};

		if (poll(&p, 1, 0) <= 0)
			break;
		r = take_output(call, log_fd, &t, &more);
	}
	if (r != ABX_OK)
		return r;
	if (got != 1)
		(void)snprintf(m.text, sizeof(m.text), "it was ended");
	if (got != 1 || m.kind != LB_MSG_DONE)
		return fail_bootstrap(call, &m, &t, from);
	*ret_bytes = m.value;
	return ABX_OK;
}

static int32_t bootstrap(struct abx_session *s, struct abx_call *call, int dir_fd, void *ctx,
			 int64_t *ret_bytes)
{
	const struct recipe *rc = ctx;
	struct local_helper_args a = {LOCAL_HELPER_ARGS_INIT, .req.op = LB_OP_BOOTSTRAP};
	struct local_helper h = LOCAL_HELPER_INIT;
	struct abx_suite su = ABX_SUITE_INIT;
	/* Root of a user namespace with all ids of a box, see box-bootstrap.c. */
	const struct abx_suite_how how = {.from = rc->from,
					  .mirror = rc->mirror,
					  .packages = rc->packages,
					  .proxy = s->proxy,
					  .no_proxy = s->no_proxy,
					  .mode = "root",
					  .format = "directory",
					  .target = BOOTSTRAP_TARGET};
	int p[2] = {-1, -1};
	int32_t r = ABX_OK;
	int e = abx_suite_make(&su, &how);

	if (e == 0 && pipe2(p, O_CLOEXEC) < 0)
		e = -errno;
	if (e < 0)
		r = abx_fail_errno(call, -e, "prepare: %s", rc->from);
	a.program = s->box_helper;
	a.path = rc->from;
	a.argv = (const char *const *)su.argv;
	a.env = su.pairs;
	a.n_env = (uint32_t)su.n_env;
	a.fd_out = a.fd_err = p[1];
	a.fd_box = dir_fd;
	if (r == ABX_OK)
		r = local_helper_start(s, call, &a, &h);
	abx_cleanup_close(&p[1]);
	if (r == ABX_OK) {
		r = follow(call, &h, p[0], rc->from, ret_bytes);
		if (r == ABX_OK)
			local_helper_wait(&h);
	}
	local_helper_kill(&h);
	abx_cleanup_close(&p[0]);
	abx_suite_release(&su);
	return r;
}

static int random_key(char key[LOCAL_PRINT_TEXT])
{
	struct local_print p;

	if (getrandom(&p, sizeof(p), 0) != (ssize_t)sizeof(p))
		return -EIO;
	local_print_text(&p, key);
	return 0;
}

/* A new image under a key of its own: the one that the name had stays for those who use it. */
static int32_t make(struct abx_session *s, struct abx_call *call, struct recipe *rc,
		    struct local_prepared *ret, char key[LOCAL_PRINT_TEXT], int *ret_lock)
{
	bool is_path = !rc->is_suite && rc->req->from_fd < 0;
	abx_autoclose int lock = -1;
	int32_t r;

	/* The same key as without a name: it is unpacked once. */
	if (is_path && !(rc->req->flags & ABX_PREPARE_FORCE)) {
		local_source_key(s, &rc->src, key);
		return local_image_from(s, call, &rc->src, key, &ret->size_bytes, ret_lock);
	}
	if (random_key(key) < 0)
		return abx_fail_errno(call, EIO, "random number");
	lock = local_image_lock_fd(s, key);
	if (lock < 0)
		return abx_fail_errno(call, errno, "image: lock");
	r = local_image_lock(call, lock, LOCK_EX);
	if (r == ABX_OK)
		r = local_image_make(s, call, key, rc->is_suite ? bootstrap : local_source_unpack,
				     rc->is_suite ? (void *)rc : (void *)&rc->src,
				     &ret->size_bytes);
	if (r == ABX_OK)
		*ret_lock = abx_steal_fd(&lock);
	return r;
}

/* The name's lock is held. */
static int32_t make_and_record(struct abx_session *s, struct abx_call *call, struct recipe *rc)
{
	struct local_prepared p = {
		.name = rc->name, .from = rc->from, .fingerprint = rc->fingerprint};
	abx_autoclose int lock = -1;
	char key[LOCAL_PRINT_TEXT], created[32];
	int32_t r = make(s, call, rc, &p, key, &lock);
	int e;

	if (r != ABX_OK)
		return r;
	local_time_text(created, sizeof(created));
	p.created_at = created;
	p.key = key;
	e = local_prepared_write(s, &p, rc->req->labels, rc->req->n_labels);
	if (e < 0)
		return abx_fail_errno(call, -e, "prepare: %s: write its record", rc->name);
	local_image_collect(s, call, key);
	return ABX_OK;
}

/* Is what the name means what is asked for? */
static bool is_current(const struct abx_session *s, const struct recipe *rc)
{
	struct local_prepared p = LOCAL_PREPARED_INIT;
	bool same = false;

	if (rc->req->from_fd >= 0 && !(rc->req->fingerprint && *rc->req->fingerprint))
		return false;
	if (local_prepared_open(s, rc->name, &p) == 0)
		same = strcmp(p.fingerprint, rc->fingerprint) == 0 &&
		       faccessat(s->images_fd, p.key, F_OK, 0) == 0;
	local_prepared_release(&p);
	return same;
}

int32_t local_prepare(struct abx_session *s, struct abx_call *call, const struct abx_prepare *req)
{
	struct abx_prepare p = {.from_fd = -1, .context_fd = -1};
	struct recipe rc = {.req = &p};
	struct local_prepared done = LOCAL_PREPARED_INIT;
	abx_autoclose int lock = -1;
	int32_t r;

	memcpy(&p, req, req->struct_size < sizeof(p) ? req->struct_size : sizeof(p));
	r = refuse(call, &p);
	if (r == ABX_OK)
		r = local_ids_check(s, call, "prepare");
	if (r == ABX_OK)
		r = make_recipe(s, call, &rc);
	if (r == ABX_OK)
		r = local_prepared_lock(s, call, rc.name, &lock);
	if (r == ABX_OK && ((p.flags & ABX_PREPARE_FORCE) || !is_current(s, &rc)))
		r = make_and_record(s, call, &rc);
	if (rc.src.fd >= 0 && rc.src.fd != p.from_fd)
		(void)close(rc.src.fd);
	if (r != ABX_OK)
		return r;
	if (local_prepared_open(s, rc.name, &done) < 0)
		return abx_fail(call, ABX_EIO, NULL, "prepare: %s: its record", rc.name);
	r = local_prepared_emit(s, call, &done);
	local_prepared_release(&done);
	return r;
}
