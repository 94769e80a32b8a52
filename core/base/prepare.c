/* SPDX-License-Identifier: MIT */
/* Making the images that boxes boot from. */
#include "core/base/prepare.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "core/state/attempt.h"
#include "core/state/labels.h"
#include "core/util/clock.h"
#include "core/util/mem.h"
#include "core/util/parse.h"

#define PREPARE_TIMEOUT_MS 3600000
#define LIST_TIMEOUT_MS 60000

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
	char *fingerprint; /* of a file, which changes whenever the file does; NULL */
};

static void release_source(struct source *s)
{
	abx_cleanup_close(&s->fd);
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

/* 1: there is one of that name, made from the same, and the provider still has it. */
static int find_ready(const struct abx_preparer *p, const char *name, const struct source *src,
		      struct abx_prepared *ret, struct abx_err *err)
{
	const struct abx_call_opts o = {.timeout_ms = LIST_TIMEOUT_MS};
	struct abx_prepared_list list = {NULL, 0};
	struct abx_snapshot_list there = {NULL, 0};
	const struct abx_prepared *one;
	int r = abx_prepared_load(p->home, abx_cloud_name(p->cloud), &list, err);

	if (r < 0)
		return r;
	one = abx_prepared_find(&list, name);
	if (one && is_same(one, src) &&
	    abx_cloud_image_list(p->cloud, &o, NULL, 0, &there, NULL) == 0) {
		for (size_t i = 0; i < there.len && r == 0; i++)
			r = strcmp(there.items[i].s.ref, one->ref) == 0;
		abx_snapshot_list_release(&there);
	}
	if (r == 1)
		*ret = (struct abx_prepared){copy(one->name),	    copy(one->ref),
					     copy(one->from),	    copy(one->fingerprint),
					     copy(one->created_at), copy(one->attempt)};
	abx_prepared_list_release(&list);
	return r;
}

static bool surely_not_made(int r, const struct abx_err *why)
{
	return r < 0 && !why->outcome_unknown && r != ABX_ECANCELED && r != ABX_EPROTO;
}

static int build(const struct abx_preparer *p, const struct abx_prepare_request *req,
		 const struct abx_attempt *a, const struct source *src, struct abx_prepared *one,
		 struct abx_err *err)
{
	const struct abx_call_opts o = {.timeout_ms = PREPARE_TIMEOUT_MS, .attempt = a->id};
	struct abx_prepare prep = {ABX_INIT(struct abx_prepare)};
	struct abx_kv labels[ABX_N_INSTALL_LABELS + 2];
	struct abx_snapshot_copy got = {0};
	char now[ABX_TIME_TEXT_BYTES];
	int r;

	abx_labels_of_install(p->db, labels);
	labels[ABX_N_INSTALL_LABELS] = (struct abx_kv){ABX_LABEL_NAME, one->name};
	labels[ABX_N_INSTALL_LABELS + 1] = (struct abx_kv){ABX_LABEL_ATTEMPT, a->id};
	prep.flags = req->force ? ABX_PREPARE_FORCE : 0;
	prep.context_fd = -1;
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

static int make(const struct abx_preparer *p, const struct abx_prepare_request *req,
		const char *name, const struct source *src, struct abx_prepared *ret,
		struct abx_err *err)
{
	const char *provider = abx_cloud_name(p->cloud);
	abx_autofree char *file = abx_prepared_file(provider);
	const struct abx_attempt_of what = {provider, "image", name, file};
	struct abx_attempt a = ABX_ATTEMPT_INIT;
	struct abx_prepared one = {.name = NULL};
	struct abx_err why = ABX_ERR_INIT;
	int r = abx_attempt_begin(p->home, p->db, &what, &a, err);

	if (r < 0)
		return r;
	one.name = abx_xstrdup(name);
	r = build(p, req, &a, src, &one, &why);
	if (surely_not_made(r, &why)) {
		abx_attempt_end(p->home, p->db, &a, /* gone= */ true);
	} else {
		if (r == 0)
			r = abx_prepared_put(p->home, provider, &one, &why);
		if (r == 0)
			r = abx_attempt_keep(p->db, &a, &why);
		abx_attempt_end(p->home, p->db, &a, /* gone= */ false);
	}
	if (r == 0)
		*ret = one;
	else
		abx_prepared_release(&one);
	if (r < 0 && err)
		*err = why;
	return r;
}

int abx_prepare_image(const struct abx_preparer *p, const struct abx_prepare_request *req,
		      struct abx_prepared *ret, bool *ret_made, struct abx_err *err)
{
	const char *name = req->name		? req->name
			   : is_path(req->from) ? ABX_PREPARED_DEFAULT
						: req->from;
	struct source src = {.fd = -1};
	int r = req->name ? check_name(name, err) : 0;

	if (r == 0 && !abx_cloud_table(p->cloud)->prepare)
		r = abx_err_set(err, ABX_ENOTSUP, "provider '%s': cannot prepare images",
				abx_cloud_name(p->cloud));
	if (r == 0)
		r = open_from(p, req->from, &src, err);
	if (r == 0 && !req->force)
		r = find_ready(p, name, &src, ret, err);
	if (r >= 0)
		*ret_made = r == 0;
	if (r == 0)
		r = make(p, req, name, &src, ret, err);
	release_source(&src);
	return r < 0 ? r : 0;
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
