/* SPDX-License-Identifier: MIT */
/* agentbox-ctl on its way into a box. */
#include <fcntl.h>
#include <string.h>
#include <sys/utsname.h>

#include "core/ctl/sum.h"
#include "core/host/exec-ctl.h"
#include "core/host/run.h"
#include "core/host/text.h"

#ifndef ABX_LIBEXECDIR
#define ABX_LIBEXECDIR "/usr/libexec/agentbox"
#endif
#define FORGET_MS 10000

#if defined(__x86_64__)
#define ARCH "x86-64"
static const char *const arch_names[] = {"x86_64", "amd64", "x86-64"};
#elif defined(__aarch64__)
#define ARCH "arm64"
static const char *const arch_names[] = {"aarch64", "arm64"};
#else
#define ARCH "this machine's"
static const char *const arch_names[] = {""};
#endif

static int check_arch(struct abx_cloud *c, const struct abx_sandbox *s, struct abx_err *err)
{
	char text[40];

	if (!s->arch || !*s->arch)
		return 0;
	for (size_t i = 0; i < ABX_N_ELEMENTS(arch_names); i++)
		if (strcmp(s->arch, arch_names[i]) == 0)
			return 0;
	abx_text_line(s->arch, strlen(s->arch), text, sizeof(text));
	return abx_run_fail(c, "exec", ABX_ENOTSUP, err,
			    "the box is %s, and this agentbox has agentbox-ctl for %s only", text,
			    ARCH);
}

int abx_ctl_place_init(struct abx_cloud *c, const struct abx_sandbox *s, struct abx_ctl_place *ret,
		       struct abx_err *err)
{
	const char *given = secure_getenv("AGENTBOX_CTL");
	struct abx_sum sum;
	int r = check_arch(c, s, err);

	if (r < 0)
		return r;
	(void)snprintf(ret->file, sizeof(ret->file), "%s",
		       given && *given ? given : ABX_LIBEXECDIR "/agentbox-ctl");
	r = abx_sum_file(ret->file, &sum);
	if (r < 0) {
		(void)abx_err_set(err, ABX_EPROVIDER, "program for boxes: %s: %s", ret->file,
				  strerror(-r));
		return abx_err_remedy(err, "reinstall agentbox, or set AGENTBOX_CTL");
	}
	(void)snprintf(ret->name, sizeof(ret->name), "agentbox-ctl-%s", sum.text);
	(void)snprintf(ret->path, sizeof(ret->path), "%s/%s", ABX_CTL_DIR, ret->name);
	return 0;
}

bool abx_ctl_travels(struct abx_cloud *c, const struct abx_sandbox *s, struct abx_ctl_place *ret)
{
	const struct abx_exec script = {ABX_INIT(struct abx_exec), .stdin_fd = -1};

	/* What is in the way of that is said when it is needed. */
	return abx_exec_needs_ctl(c, &script) && abx_ctl_place_init(c, s, ret, NULL) == 0;
}

struct words {
	char text[1024];
	size_t len;
};

static int32_t on_output(void *io, int32_t stream, const void *data, size_t len)
{
	struct words *w = io;

	(void)stream;
	len = len < sizeof(w->text) - 1 - w->len ? len : sizeof(w->text) - 1 - w->len;
	memcpy(w->text + w->len, data, len);
	w->len += len;
	return 0;
}

/* A few words from the box by the provider's own exec; the code, or a negative one. */
static int ask(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_sandbox *s,
	       const char *const *argv, const char *user, struct words *ret, struct abx_err *err)
{
	struct abx_call_opts plain = *o;
	struct abx_exec req = {ABX_INIT(struct abx_exec)};
	struct abx_exit e = {ABX_INIT(struct abx_exit)};
	int r;

	memset(ret, 0, sizeof(*ret));
	plain.plain_exec = true;
	req.flags = ABX_EXEC_OFFLINE;
	req.argv = argv;
	req.cwd = "/";
	req.user = user;
	req.stdin_fd = req.control_fd = -1;
	req.io = ret;
	req.output = on_output;
	r = abx_cloud_exec(c, &plain, s, &req, &e, err);
	if (r < 0)
		return r;
	ret->text[strcspn(ret->text, "\r\n")] = '\0';
	return e.signo || e.flags & ABX_EXIT_LOST ? 128 : e.code;
}

static int put(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_sandbox *s,
	       const struct abx_ctl_place *place, const char *owner, struct abx_err *err)
{
	struct abx_transfer t = {ABX_INIT(struct abx_transfer)};
	abx_autoclose int fd = open(place->file, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return abx_err_errno(err, errno, "open '%s'", place->file);
	t.flags = ABX_XFER_CREATE_PARENTS;
	t.fd = fd;
	t.mode = 0755;
	t.size_bytes = -1;
	t.path = place->path;
	t.owner = owner;
	return abx_cloud_upload(c, o, s, &t, err);
}

/* Another agentbox may be at it, or at work with it: what counts is what is there. */
static int is_there(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_sandbox *s,
		    const char *user, const struct abx_ctl_place *place, struct words *w,
		    struct abx_err *err)
{
	const char *const argv[] = {place->path, "sum", NULL};
	int r = ask(c, o, s, argv, user, w, err);

	if (r < 0 && r != ABX_ENOTFOUND && r != ABX_EINVAL && r != ABX_EIO)
		return r;
	return r == 0 && strcmp(w->text, place->name + strlen("agentbox-ctl-")) == 0;
}

static bool is_final(int r)
{
	return r == ABX_ECANCELED || r == ABX_ETIMEDOUT || r == ABX_EAUTH || r == ABX_ESTATE ||
	       r == ABX_ENETWORK || r == ABX_ENOTFOUND /* the box itself */;
}

static int home_of(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_sandbox *s,
		   const char *user, struct words *w, struct abx_err *err)
{
	static const char *const argv[] = {"/bin/sh", "-c", "cd && pwd -P", NULL};
	int r = ask(c, o, s, argv, user, w, err);

	if (r < 0)
		return r;
	return r > 0 || *w->text != '/' || strlen(w->text) > 256 ? ABX_ENOTFOUND : 0;
}

int abx_ctl_install(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_sandbox *s,
		    const char *user, struct abx_ctl_place *place, struct abx_err *err)
{
	struct abx_err why = ABX_ERR_INIT;
	struct words w;
	char said[200];
	int r;

	for (int in_home = 0; in_home < 2; in_home++) {
		if (in_home) {
			r = home_of(c, o, s, user, &w, &why);
			if (r < 0)
				break;
			(void)snprintf(place->path, sizeof(place->path),
				       "%s" ABX_CTL_HOME_DIR "/%s", w.text, place->name);
		}
		r = put(c, o, s, place, in_home ? user : "root", &why);
		if (is_final(r)) {
			if (err)
				*err = why;
			return r;
		}
		r = is_there(c, o, s, user, place, &w, &why);
		if (r == 1)
			return 0;
		if (r < 0) {
			if (err)
				*err = why;
			return r;
		}
	}
	abx_text_line(w.text, strlen(w.text), said, sizeof(said));
	(void)abx_run_fail(c, "exec", ABX_ENOTSUP, err,
			   "agentbox-ctl (%s) does not run in the box: %s", ARCH,
			   *said      ? said
			   : why.code ? why.text
				      : "it says nothing");
	return ABX_ENOTSUP;
}

void abx_ctl_forget(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_sandbox *s,
		    const char *base)
{
	struct abx_call_opts last = {.timeout_ms = FORGET_MS, .cleanup = true};
	char path[ABX_CTL_PATH_MAX];
	const char *const argv[] = {"rm", "-f", "--", path, NULL};
	struct words w;

	last.box_id = o->box_id;
	(void)snprintf(path, sizeof(path), "%s.0", base);
	(void)ask(c, &last, s, argv, NULL, &w, NULL);
}
