/* SPDX-License-Identifier: MIT */
/* Making the images that boxes boot from. */
#include "core/base/prepare.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/ca.h"
#include "core/base/context.h"
#include "core/base/settings.h"
#include "core/state/attempt.h"
#include "core/state/labels.h"
#include "core/state/lock.h"
#include "core/util/clock.h"
#include "core/util/log.h"
#include "core/util/mem.h"
#include "core/util/parse.h"

#define PREPARE_TIMEOUT_MS 3600000
#define LIST_TIMEOUT_MS 60000
#define LOCK_STEP_MS 200
#define MAX_ARGS 8

static int check_name(const char *name, struct abx_err *err)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789._:-";
	size_t len = strlen(name);
	char shown[80];

	if (len >= 1 && len <= 63 && strspn(name, allowed) == len && !strchr("._:-", name[0]))
		return 0;
	abx_quote_text(name, shown, sizeof(shown));
	return abx_err_set(err, ABX_EUSAGE,
			   "'%s': an image's name is 1 to 63 of a-z, 0-9, '.', '_', ':' and '-', "
			   "beginning with a letter or digit",
			   shown);
}

static bool is_path(const char *from)
{
	return from[0] == '/' || from[0] == '.';
}

/* What to make an image from. */
struct source {
	char *from;	   /* a name, or the real path */
	int fd;		   /* of a file; -1 */
	char *fingerprint; /* changes whenever the file or the context does; NULL: neither */
	struct abx_base_context context;
	struct abx_base_settings settings;
};
#define SOURCE_INIT                                                                            \
	{                                                                                      \
		.fd = -1, .context = ABX_BASE_CONTEXT_INIT, .settings = ABX_BASE_SETTINGS_INIT \
	}

static void release_source(struct source *s)
{
	abx_cleanup_close(&s->fd);
	abx_base_context_release(&s->context);
	abx_base_settings_release(&s->settings);
	free(s->fingerprint);
	free(s->from);
}

static char *fingerprint(const struct stat *st)
{
	return abx_xasprintf("file:%llx:%llx:%llx:%lld.%09ld:%lld.%09ld",
			     (unsigned long long)st->st_dev, (unsigned long long)st->st_ino,
			     (unsigned long long)st->st_size, (long long)st->st_mtim.tv_sec,
			     st->st_mtim.tv_nsec, (long long)st->st_ctim.tv_sec,
			     st->st_ctim.tv_nsec);
}

/* A name stays what it is; a path becomes an open file. */
static int open_from(const struct abx_preparer *p, const char *from, struct source *ret,
		     struct abx_err *err)
{
	abx_autofree char *real = NULL;
	abx_autoclose int fd = -1;
	struct stat st;
	char shown[256];
	int r;

	if (!is_path(from)) {
		ret->from = abx_xstrdup(from);
		return 0;
	}
	abx_quote_text(from, shown, sizeof(shown));
	real = realpath(from, NULL);
	fd = real ? open(real, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK) : -1;
	if (fd < 0 || fstat(fd, &st) < 0) {
		r = errno;
		return abx_err_errno(err, r, "--from '%s'", shown);
	}
	/* On this machine a provider reads a directory itself. */
	if (!S_ISREG(st.st_mode) &&
	    !(S_ISDIR(st.st_mode) && (abx_cloud_caps(p->cloud) & ABX_CAP_LOCAL)))
		return abx_err_set(err, ABX_EINVAL, "--from '%s': not a tar file", shown);
	if (S_ISREG(st.st_mode)) {
		ret->fd = abx_steal_fd(&fd);
		ret->fingerprint = fingerprint(&st);
	}
	ret->from = abx_steal_ptr(&real);
	return 0;
}

static bool has_context(const struct abx_preparer *p)
{
	return abx_cloud_caps(p->cloud) & ABX_CAP_NEEDS_BASE;
}

static int open_context(const struct abx_preparer *p, struct source *src, struct abx_err *err)
{
	abx_auto(abx_buf) struct abx_buf ca = ABX_BUF_INIT(ABX_CA_MAX_BYTES);
	int r = abx_ca_load(p->config, &ca, err);

	src->settings.how.ca = abx_buf_str(&ca);
	if (r == 0)
		r = abx_base_context_open(p->home, &src->settings.how, &src->context, err);
	src->settings.how.ca = NULL;
	return r;
}

/* Of the context alone, or of it and the file. */
static int add_print(const struct abx_preparer *p, struct source *src, struct abx_err *err)
{
	abx_autofree char *of_file = abx_steal_ptr(&src->fingerprint);
	char print[ABX_BASE_FINGERPRINT_BYTES];
	int r = abx_base_settings_load(p->config, abx_cloud_name(p->cloud), &src->settings, err);

	if (r == 0)
		r = abx_base_context_print(&src->settings.how, print, err);
	if (r == 0)
		src->fingerprint =
			of_file ? abx_xasprintf("%s+%s", print, of_file) : abx_xstrdup(print);
	return r;
}

static int open_source(const struct abx_preparer *p, const char *from, struct source *ret,
		       struct abx_err *err)
{
	int r;

	if (!from && !has_context(p))
		return abx_err_set(err, ABX_EUSAGE, "prepare: say --from what");
	r = open_from(p, from ? from : ABX_PREPARE_FROM, ret, err);
	return r == 0 && has_context(p) ? add_print(p, ret, err) : r;
}

static char *copy(const char *text)
{
	return abx_xstrdup_null(text);
}

/* A file or directory may have changed since; of a directory only the provider can tell. */
static bool is_same(const struct abx_prepared *one, const struct source *src)
{
	if (!one->from || strcmp(one->from, src->from) != 0)
		return false;
	return src->fingerprint
		       ? one->fingerprint && strcmp(one->fingerprint, src->fingerprint) == 0
		       : !is_path(src->from);
}

int abx_prepare_is_there(const struct abx_preparer *p, const char *ref)
{
	const struct abx_call_opts o = {.timeout_ms = LIST_TIMEOUT_MS};
	struct abx_snapshot_list there = {NULL, 0};
	int found = 0, r = abx_cloud_image_list(p->cloud, &o, NULL, 0, &there, NULL);

	for (size_t i = 0; i < there.len && !found; i++)
		found = strcmp(there.items[i].s.ref, ref) == 0;
	abx_snapshot_list_release(&there);
	return r < 0 ? r : found;
}

/* 1: there is one of that name, made from the same, and the provider still has it. */
static int find_ready(const struct abx_preparer *p, const char *name, const struct source *src,
		      struct abx_prepared *ret, struct abx_err *err)
{
	struct abx_prepared_list list = {NULL, 0};
	const struct abx_prepared *one;
	int r = abx_prepared_load(p->home, abx_cloud_name(p->cloud), &list, err);

	if (r < 0)
		return r;
	one = abx_prepared_find(&list, name);
	r = one && is_same(one, src) && abx_prepare_is_there(p, one->ref) == 1;
	if (r == 1)
		*ret = (struct abx_prepared){copy(one->name),	    copy(one->ref),
					     copy(one->from),	    copy(one->fingerprint),
					     copy(one->created_at), copy(one->attempt)};
	abx_prepared_list_release(&list);
	return r;
}

/* How programs of a build reach the network, from where they reach it here. */
static uint32_t fill_args(const struct source *src, struct abx_kv args[MAX_ARGS])
{
	static const char *const names[] = {"http_proxy", "https_proxy", "no_proxy",
					    "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"};
	uint32_t n = 0;

	args[n++] = (struct abx_kv){"PACKAGES", src->settings.how.packages};
	for (size_t i = 0; i < ABX_N_ELEMENTS(names); i++) {
		const char *value = secure_getenv(names[i]);

		if (value && *value)
			args[n++] = (struct abx_kv){names[i], value};
	}
	return n;
}

static int build(const struct abx_preparer *p, const struct abx_prepare_request *req,
		 const struct abx_attempt *a, const struct source *src, struct abx_prepared *one,
		 struct abx_err *err)
{
	const struct abx_call_opts o = {.timeout_ms = PREPARE_TIMEOUT_MS, .attempt = a->id};
	struct abx_prepare prep = {ABX_INIT(struct abx_prepare)};
	struct abx_kv labels[ABX_N_INSTALL_LABELS + 2], args[MAX_ARGS];
	struct abx_snapshot_copy got = {0};
	char now[ABX_TIME_TEXT_BYTES];
	int r;

	abx_labels_of_install(p->db, labels);
	labels[ABX_N_INSTALL_LABELS] = (struct abx_kv){ABX_LABEL_NAME, one->name};
	labels[ABX_N_INSTALL_LABELS + 1] = (struct abx_kv){ABX_LABEL_ATTEMPT, a->id};
	prep.flags = req->force ? ABX_PREPARE_FORCE : 0;
	prep.context_fd = src->context.fd;
	prep.dockerfile = src->context.dockerfile;
	prep.args = args;
	prep.n_args = src->context.fd >= 0 ? fill_args(src, args) : 0;
	prep.from_fd = src->fd;
	prep.name = one->name;
	prep.from = src->from;
	prep.fingerprint = src->fingerprint;
	prep.labels = labels;
	prep.n_labels = ABX_N_INSTALL_LABELS + 2;
	prep.options = abx_cloud_box_options(p->cloud, &prep.n_options);
	r = abx_cloud_prepare(p->cloud, &o, &prep, req->log, &got, err);
	if (r < 0)
		return r;
	abx_time_text(abx_wall_ms(), now);
	one->ref = abx_xstrdup(got.s.ref);
	one->from = abx_xstrdup(src->from);
	one->fingerprint = copy(src->fingerprint);
	one->created_at = abx_xstrdup(now);
	one->attempt = abx_xstrdup(a->id);
	abx_snapshot_copy_release(&got);
	return 0;
}

/* The provider's name of the image that another one is about to take the place of. */
static char *find_former(const struct abx_preparer *p, const char *name)
{
	struct abx_prepared_list list = {NULL, 0};
	const struct abx_prepared *one;
	char *ref = NULL;

	if (has_context(p) &&
	    abx_prepared_load(p->home, abx_cloud_name(p->cloud), &list, NULL) == 0) {
		one = abx_prepared_find(&list, name);
		ref = one ? abx_xstrdup(one->ref) : NULL;
		abx_prepared_list_release(&list);
	}
	return ref;
}

/* One that boxes were made of stays: the provider keeps it, or says so. */
static void remove_former(const struct abx_preparer *p, const char *ref, const char *now)
{
	const struct abx_call_opts o = {.timeout_ms = LIST_TIMEOUT_MS};
	struct abx_err why = ABX_ERR_INIT;

	if (ref && strcmp(ref, now) != 0 && abx_cloud_image_delete(p->cloud, &o, ref, &why) < 0)
		abx_log(ABX_LOG_INFO, "prepare", "the former image stays: %s", why.text);
}

static int make(const struct abx_preparer *p, const struct abx_prepare_request *req,
		const char *name, const struct source *src, struct abx_prepared *ret,
		struct abx_err *err)
{
	const char *provider = abx_cloud_name(p->cloud);
	abx_autofree char *file = abx_prepared_file(provider), *former = find_former(p, name);
	const struct abx_attempt_of what = {provider, "image", name, file};
	struct abx_attempt a = ABX_ATTEMPT_INIT;
	struct abx_prepared one = {.name = NULL};
	struct abx_err why = ABX_ERR_INIT;
	int r = abx_attempt_begin(p->home, p->db, &what, &a, err);

	if (r < 0)
		return r;
	one.name = abx_xstrdup(name);
	r = build(p, req, &a, src, &one, &why);
	if (r < 0 && !abx_err_may_have_happened(r, &why)) {
		abx_attempt_end(p->home, p->db, &a, /* gone= */ true);
	} else {
		if (r == 0)
			r = abx_prepared_put(p->home, provider, &one, &why);
		if (r == 0)
			r = abx_attempt_keep(p->db, &a, &why);
		abx_attempt_end(p->home, p->db, &a, /* gone= */ false);
	}
	if (r == 0)
		remove_former(p, former, one.ref);
	if (r == 0)
		*ret = one;
	else
		abx_prepared_release(&one);
	if (r < 0 && err)
		*err = why;
	return r;
}

static bool cancelled(const struct abx_preparer *p, int wait_ms)
{
	struct pollfd fd = {p->cancel_fd, POLLIN, 0};

	return poll(&fd, 1, wait_ms) > 0;
}

/* Whoever comes second waits, and takes what the first one made. */
static int lock(const struct abx_preparer *p, int *ret_fd, struct abx_err *err)
{
	abx_autofree char *id = abx_xasprintf("prepare-%s", abx_cloud_name(p->cloud));
	bool said = false;
	int r = abx_lock_box(p->home, id, 0, ret_fd, NULL);

	while (r == ABX_ESTATE) {
		if (!said)
			abx_note("another agentbox is making an image at %s: waiting for it",
				 abx_cloud_name(p->cloud));
		said = true;
		if (cancelled(p, LOCK_STEP_MS))
			return abx_err_set(err, ABX_ECANCELED, "prepare: interrupted");
		r = abx_lock_box(p->home, id, 0, ret_fd, NULL);
	}
	return r < 0 ? abx_lock_box(p->home, id, 0, ret_fd, err) : 0;
}

static int find_or_make(const struct abx_preparer *p, const struct abx_prepare_request *req,
			const char *name, struct source *src, struct abx_prepared *ret,
			bool *ret_made, struct abx_err *err)
{
	abx_autoclose int locked = -1;
	int r = req->force ? 0 : find_ready(p, name, src, ret, err);

	if (r == 0 && has_context(p)) {
		r = lock(p, &locked, err);
		if (r == 0 && !req->force)
			r = find_ready(p, name, src, ret, err);
	}
	*ret_made = r == 0;
	if (r)
		return r;
	if (has_context(p))
		r = open_context(p, src, err);
	return r < 0 ? r : make(p, req, name, src, ret, err);
}

int abx_prepare_image(const struct abx_preparer *p, const struct abx_prepare_request *req,
		      struct abx_prepared *ret, bool *ret_made, struct abx_err *err)
{
	const char *name = req->name			      ? req->name
			   : !req->from || is_path(req->from) ? ABX_PREPARED_DEFAULT
							      : req->from;
	struct source src = SOURCE_INIT;
	int r = req->name ? check_name(name, err) : 0;

	if (r == 0 && !abx_cloud_table(p->cloud)->prepare)
		r = abx_err_set(err, ABX_ENOTSUP, "provider '%s': cannot prepare images",
				abx_cloud_name(p->cloud));
	if (r == 0)
		r = open_source(p, req->from, &src, err);
	if (r == 0)
		r = find_or_make(p, req, name, &src, ret, ret_made, err);
	release_source(&src);
	return r < 0 ? r : 0;
}

int abx_prepare_is_current(const struct abx_preparer *p, const struct abx_prepared *one, bool *ret,
			   struct abx_err *err)
{
	struct source src = SOURCE_INIT;
	int r = 0;

	*ret = true;
	if (has_context(p) && one->from && one->fingerprint) {
		r = open_source(p, one->from, &src, err);
		if (r == 0)
			*ret = is_same(one, &src);
		/* What it was made from is no longer here. */
		else if (is_path(one->from))
			*ret = false, r = 0;
	}
	release_source(&src);
	return r;
}

int abx_prepare_list(const struct abx_preparer *p, struct abx_snapshot_list *ret,
		     struct abx_err *err)
{
	const struct abx_call_opts o = {.timeout_ms = LIST_TIMEOUT_MS};
	struct abx_kv labels[ABX_N_INSTALL_LABELS];

	abx_labels_of_install(p->db, labels);
	return abx_cloud_image_list(p->cloud, &o, labels, ABX_N_INSTALL_LABELS, ret, err);
}

int abx_prepare_find(const struct abx_preparer *p, const char *what, char **ret_ref,
		     bool *ret_there, struct abx_err *err)
{
	const char *provider = abx_cloud_name(p->cloud), *ref = what;
	struct abx_prepared_list prepared = {NULL, 0};
	struct abx_snapshot_list list = {NULL, 0};
	const struct abx_prepared *one;
	bool there = false;
	char shown[80];
	int r = abx_prepared_load(p->home, provider, &prepared, err);

	if (r < 0)
		return r;
	one = abx_prepared_find(&prepared, what);
	if (one)
		ref = one->ref;
	r = abx_prepare_list(p, &list, err);
	for (size_t i = 0; i < list.len && r == 0; i++)
		there = there || strcmp(list.items[i].s.ref, ref) == 0;
	if (r == 0 && (there || one)) {
		*ret_ref = abx_xstrdup(ref);
		*ret_there = there;
	} else if (r == 0) {
		abx_quote_text(what, shown, sizeof(shown));
		r = abx_err_set(err, ABX_ENOBOX, "no image '%s' of this install at %s", shown,
				provider);
		(void)abx_err_remedy(err, "agentbox image ls shows all");
	}
	abx_snapshot_list_release(&list);
	abx_prepared_list_release(&prepared);
	return r;
}

int abx_prepare_remove(const struct abx_preparer *p, const char *ref, bool there,
		       struct abx_err *err)
{
	const struct abx_call_opts o = {.timeout_ms = LIST_TIMEOUT_MS};
	int r = there ? abx_cloud_image_delete(p->cloud, &o, ref, err) : 0;

	return r < 0 ? r : abx_prepared_drop(p->home, abx_cloud_name(p->cloud), ref, err);
}
