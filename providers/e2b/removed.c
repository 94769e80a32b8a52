/* SPDX-License-Identifier: MIT */
/*
 * Snapshots and templates that are to go.
 *
 * The service keeps what sandboxes were made from.  One that is not wanted any more meanwhile is
 * on a list of ours, removed/ in the state directory, is none of ours any more, and goes with the
 * last of these sandboxes.
 */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "abxsdk/fs.h"
#include "providers/e2b/e2b.h"

#define SWEEP_MAX 64

/* A reference as the name of a file: escaped, so without a slash. */
static int path_of(const struct abx_session *s, const char *ref, struct abx_buf *b)
{
	abx_buf_addf(b, "%s/removed/", s->state_dir);
	abx_http_escape(b, ref);
	return b->failed ? -ENOMEM : 0;
}

bool e2b_removed_is(const struct abx_session *s, const char *ref)
{
	abx_auto(abx_buf) struct abx_buf path = ABX_BUF_INIT(4096);

	return path_of(s, ref, &path) == 0 && access(path.data, F_OK) == 0;
}

static int mark(const struct abx_session *s, const char *ref)
{
	abx_auto(abx_buf) struct abx_buf dir = ABX_BUF_INIT(4096);
	abx_auto(abx_buf) struct abx_buf path = ABX_BUF_INIT(4096);
	abx_autoclose int fd = -1;

	abx_buf_addf(&dir, "%s/removed", s->state_dir);
	if (dir.failed || path_of(s, ref, &path) < 0)
		return -ENOMEM;
	if (mkdir(dir.data, 0700) < 0 && errno != EEXIST)
		return -errno;
	fd = open(path.data, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

/* *ret_used: it stays, since sandboxes stand on it. */
static int32_t delete_it(struct abx_session *s, struct abx_call *call, const char *escaped,
			 bool *ret_used)
{
	const struct e2b_request q = {.method = "DELETE", .idempotent = true};
	struct e2b_answer a;
	int32_t r = e2b_ask(s, call, &q, &a, "/templates/%s", escaped);

	*ret_used = r == ABX_OK && a.status == 400 && strstr(a.message, "using it");
	if (r == ABX_OK && a.status != 404 && !*ret_used)
		r = e2b_expect(call, &a, "remove a template");
	e2b_answer_release(&a);
	return r;
}

int32_t e2b_remove(struct abx_session *s, struct abx_call *call, const char *ref)
{
	abx_auto(abx_buf) struct abx_buf escaped = ABX_BUF_INIT(4096);
	bool used = false;
	int32_t r;
	int e;

	abx_http_escape(&escaped, ref);
	if (escaped.failed || !escaped.len)
		return abx_fail(call, ABX_EINVAL, NULL, "not a reference");
	r = delete_it(s, call, escaped.data, &used);
	if (r != ABX_OK || !used)
		return r;
	e = mark(s, ref);
	return e < 0 ? abx_fail_errno(call, -e, "note that %.200s is to go", ref) : ABX_OK;
}

void e2b_removed_sweep(struct abx_session *s, struct abx_call *call)
{
	abx_auto(abx_buf) struct abx_buf path = ABX_BUF_INIT(4096);
	const struct dirent *e;
	int tries = 0;
	DIR *dir;

	abx_buf_addf(&path, "%s/removed", s->state_dir);
	dir = path.failed ? NULL : opendir(path.data);
	while (dir && tries < SWEEP_MAX && (e = readdir(dir))) {
		bool used = false;

		if (e->d_name[0] == '.')
			continue;
		tries++;
		if (delete_it(s, call, e->d_name, &used) == ABX_OK && !used)
			(void)unlinkat(dirfd(dir), e->d_name, 0);
	}
	if (dir)
		(void)closedir(dir);
}
