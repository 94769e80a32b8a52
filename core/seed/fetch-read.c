/* SPDX-License-Identifier: MIT */
/* Reading what a box says of its commits, without trust. */
#include <fcntl.h>
#include <string.h>

#include "abxsdk/fs.h"
#include "core/seed/back-path.h"
#include "core/seed/fetch-io.h"
#include "core/util/parse.h"
#include "core/util/rand.h"
#include "core/util/room.h"

#define FIELD_MAX 8192
#define N_FIELDS 8 /* repo PATH HEAD BRANCH UNDER-WAY UNCOMMITTED STASHES SIZE */

void abx_fetch_reader_init(struct abx_fetch_reader *r, const struct abx_fetch_ask *ask,
			   struct abx_fetched *out, struct abx_err *err)
{
	memset(r, 0, sizeof(*r));
	r->ask = ask;
	r->out = out;
	r->err = err;
	r->field = (struct abx_buf)ABX_BUF_INIT(FIELD_MAX);
	r->fd = -1;
}

static void drop_fields(struct abx_fetch_reader *r)
{
	for (unsigned int i = 0; i < r->n_fields; i++)
		free(r->fields[i]);
	r->n_fields = 0;
}

void abx_fetch_reader_release(struct abx_fetch_reader *r)
{
	drop_fields(r);
	abx_buf_release(&r->field);
	if (r->fd >= 0)
		(void)close(r->fd);
	r->fd = -1;
}

static int nonsense(struct abx_fetch_reader *r)
{
	return abx_err_set(r->err, ABX_EPROTO, "fetch: the box's answer is not understood");
}

static const char *operation(const char *name)
{
	static const char *const names[][2] = {{"rebase-merge", "a rebase"},
					       {"rebase-apply", "a rebase or am"},
					       {"MERGE_HEAD", "a merge"},
					       {"CHERRY_PICK_HEAD", "a cherry-pick"},
					       {"REVERT_HEAD", "a revert"}};

	for (size_t i = 0; i < ABX_N_ELEMENTS(names); i++)
		if (strcmp(names[i][0], name) == 0)
			return names[i][1];
	return NULL;
}

/* The workspace's own comes first, and each once. */
static bool is_known_place(const struct abx_fetch_reader *r, const char *path)
{
	if (!r->out->len)
		return !*path;
	if (abx_back_path_problem(path))
		return false;
	for (size_t i = 0; i < r->out->len; i++)
		if (strcmp(r->out->items[i].path, path) == 0)
			return false;
	return true;
}

/* git index-pack writes it a second time beside it, and all of them stay until the end. */
static int check_room(const struct abx_fetch_reader *r)
{
	abx_autoclose int fd = abx_fs_open_dir(AT_FDCWD, r->ask->spool);
	const int code = fd < 0 ? abx_err_errno(r->err, -fd, "open '%s'", r->ask->spool)
				: abx_room_check(fd, 2 * r->left, r->ask->spool, r->err);

	return code < 0 ? abx_err_wrap(r->err, "fetch") : 0;
}

static int open_pack(struct abx_fetch_reader *r)
{
	abx_autofree char *path = abx_xasprintf("%s/%zu.pack", r->ask->spool, r->out->len - 1);

	r->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	return r->fd < 0 ? abx_err_errno(r->err, errno, "fetch: write '%s'", path) : 0;
}

static void set_problem(struct abx_fetched_repo *repo, const char *why)
{
	char shown[300];

	abx_show_text(why, shown, sizeof(shown));
	repo->problem =
		abx_xasprintf("git in the box does not take the repository there: %s", shown);
	repo->remedy = abx_xstrdup("mend it there; agentbox download brings the files");
}

static int take_repo(struct abx_fetch_reader *r)
{
	const uint64_t max = r->ask->max_bytes ? r->ask->max_bytes : ABX_FETCH_BYTES_MAX;
	char **f = r->fields;
	struct abx_fetched_repo repo = {0};
	const bool id = abx_is_oid_hex(f[2]);
	int code;

	if (!is_known_place(r, f[1]) || (!id && strcmp(f[2], "-") != 0 && strcmp(f[2], "?") != 0) ||
	    !abx_parse_u64(f[5], UINT32_MAX, &repo.uncommitted) ||
	    !abx_parse_u64(f[6], UINT32_MAX, &repo.stashes) ||
	    !abx_parse_u64(f[7], (uint64_t)INT64_MAX, &repo.pack_bytes) || (!id && repo.pack_bytes))
		return nonsense(r);
	if (r->out->len >= ABX_FETCH_REPOS_MAX)
		return abx_err_set(r->err, ABX_EPROTO,
				   "fetch: the box names more than %d "
				   "repositories",
				   ABX_FETCH_REPOS_MAX);
	if (repo.pack_bytes > max - r->bytes) {
		(void)abx_err_set(r->err, ABX_EPROTO,
				  "fetch: the box's new commits take more than %llu MiB",
				  (unsigned long long)(max >> 20));
		return abx_err_remedy(r->err, "--max-size SIZE, if that is right");
	}
	r->bytes += r->left = repo.pack_bytes;
	repo.path = abx_xstrdup(f[1]);
	if (f[2][0] == '?')
		set_problem(&repo, f[3]);
	else
		repo.branch = *f[3] ? abx_xstrdup(f[3]) : NULL;
	repo.under_way = operation(f[4]);
	repo.new_id = id ? abx_xstrdup(f[2]) : NULL;
	r->out->items = abx_xreallocarray(r->out->items, r->out->len + 1, sizeof(repo));
	r->out->items[r->out->len++] = repo;
	drop_fields(r);
	if (!r->left)
		return 0;
	code = check_room(r);
	return code < 0 ? code : open_pack(r);
}

static int take_field(struct abx_fetch_reader *r)
{
	r->fields[r->n_fields++] = abx_xstrdup(abx_buf_str(&r->field));
	abx_buf_reset(&r->field);
	if (r->n_fields == 1 && strcmp(r->fields[0], "end") == 0) {
		r->ended = true;
		return 0;
	}
	if (strcmp(r->fields[0], "repo") != 0)
		return nonsense(r);
	return r->n_fields == N_FIELDS ? take_repo(r) : 0;
}

static int take_pack(struct abx_fetch_reader *r, const char *data, size_t len)
{
	const struct abx_fetch_ask *ask = r->ask;
	int code = abx_fs_write_all(r->fd, data, len);

	if (code < 0)
		return abx_err_errno(r->err, -code, "fetch: write in '%s'", ask->spool);
	r->left -= len;
	if (ask->progress &&
	    ask->progress(ask->progress_ctx, r->bytes - r->left, r->bytes, "fetching commits") != 0)
		return abx_err_set(r->err, ABX_ECANCELED, "fetch: given up");
	if (r->left)
		return 0;
	code = close(r->fd) < 0 ? -errno : 0;
	r->fd = -1;
	return code < 0 ? abx_err_errno(r->err, -code, "fetch: write in '%s'", ask->spool) : 0;
}

int abx_fetch_reader_feed(void *reader, const void *data, size_t len)
{
	struct abx_fetch_reader *r = reader;
	const char *at = data;
	int code = 0;

	while (len && code == 0) {
		size_t n = len;
		const char *nul;

		if (r->ended)
			return nonsense(r);
		if (r->left) {
			n = n < r->left ? n : (size_t)r->left;
			code = take_pack(r, at, n);
		} else {
			nul = memchr(at, '\0', len);
			n = nul ? (size_t)(nul - at) : len;
			abx_buf_add(&r->field, at, n);
			if (r->field.failed)
				return nonsense(r);
			if (nul) {
				n++;
				code = take_field(r);
			}
		}
		at += n;
		len -= n;
	}
	return code;
}

int abx_fetch_reader_end(struct abx_fetch_reader *r)
{
	return r->ended ? 0 : abx_err_set(r->err, ABX_EPROTO, "fetch: the box's answer breaks off");
}
