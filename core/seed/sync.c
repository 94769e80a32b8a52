/* SPDX-License-Identifier: MIT */
/* The host's newer commits and edits into a running box. */
#include "core/seed/sync.h"

#include <string.h>

#include "abxsdk/fs.h"
#include "core/seed/back-path.h"
#include "core/seed/seed-script.h"
#include "core/seed/sync-io.h"
#include "core/util/parse.h"

#define ANSWER_MAX ((size_t)64 << 20)
#define STDERR_MAX ((size_t)1 << 20)

void abx_synced_release(struct abx_synced *s)
{
	abx_strv_release(&s->taken);
	abx_strv_release(&s->conflicts);
	abx_strv_release(&s->unmerged);
	free(s->branch);
	free(s->why);
	free(s->head);
	free(s->host_ref);
	free(s->seed_tree);
	memset(s, 0, sizeof(*s));
}

/* ---- the box's answer: "KIND=VALUE" and NUL, and "end=" ---- */

static int nonsense(struct abx_err *err)
{
	return abx_err_set(err, ABX_EPROTO, "sync: the box's answer is not understood");
}

static bool take_value(struct abx_synced *s, const char *kind, size_t len, const char *value)
{
	static const char *const branches[] = {"none", "same", "forward", "merged", "left"};
	const struct {
		const char *kind;
		struct abx_strv *list;
	} lists[] = {{"taken", &s->taken}, {"conflict", &s->conflicts}, {"unmerged", &s->unmerged}};

	for (size_t i = 0; i < ABX_N_ELEMENTS(lists); i++)
		if (strlen(lists[i].kind) == len && strncmp(kind, lists[i].kind, len) == 0) {
			abx_strv_add(lists[i].list, value);
			return true;
		}
	if (strncmp(kind, "branch=", 7) == 0) {
		for (size_t i = 0; i < ABX_N_ELEMENTS(branches) && !s->branch; i++)
			if (strcmp(value, branches[i]) == 0)
				s->branch = abx_xstrdup(value);
		return s->branch != NULL;
	}
	if (strncmp(kind, "why=", 4) == 0) {
		abx_xreplace(&s->why, *value ? value : NULL);
		return true;
	}
	if (strncmp(kind, "tree=", 5) == 0 && abx_is_oid_hex(value)) {
		abx_xreplace(&s->seed_tree, value);
		return true;
	}
	return false;
}

static int take_answer(const struct abx_buf *answer, struct abx_synced *s, struct abx_err *err)
{
	const char *at = abx_buf_str(answer), *end = at + answer->len;

	while (at < end) {
		const size_t len = strcspn(at, "=");

		if (strcmp(at, "end=") == 0 && at + 5 == end && s->branch && s->seed_tree)
			return 0;
		if (at[len] != '=' || !take_value(s, at, len, at + len + 1))
			return nonsense(err);
		at += strlen(at) + 1;
	}
	return abx_err_set(err, ABX_EPROTO, "sync: the box's answer breaks off");
}

/* ---- what is sent ---- */

struct sync {
	const struct abx_sync_ask *ask;
	struct abx_seed *seed;
	struct abx_manifest sent;
	struct abx_sync_delta delta;
	char *pack; /* a file, or NULL */
};

static bool has_commit(const struct abx_seed_repo *repo, const char *id)
{
	abx_autofree char *commit = abx_xasprintf("%s^{commit}", id);
	const char *const args[] = {"cat-file", "-e", commit, NULL};

	return abx_git_run(&repo->git, args, NULL, NULL, NULL) == 0;
}

/* What the box lacks of HEAD. */
static int make_pack(struct sync *s, const struct abx_seed_repo *root, struct abx_err *err)
{
	abx_autofree char *name = abx_xasprintf("%s/sync", s->ask->spool);
	static const char *const none[] = {NULL};
	const char *base = s->ask->base_commit;
	abx_auto(abx_buf) struct abx_buf in = ABX_BUF_INIT(256);
	abx_auto(abx_buf) struct abx_buf out = ABX_BUF_INIT(256);
	struct abx_git_job job = ABX_GIT_JOB_INIT;
	int r;

	if (base && strcmp(base, root->status.head) == 0)
		return 0;
	abx_buf_addf(&in, "%s\n", root->status.head);
	if (base && has_commit(root, base))
		abx_buf_addf(&in, "^%s\n", base);
	r = abx_git_start_pack(&root->git, none, &in, name, &job, err);
	if (r == 0)
		r = abx_git_finish(&job, &out, err);
	if (r == 0 && out.len > 40)
		s->pack = abx_xasprintf("%s-%.40s.pack", name, out.data);
	return r;
}

/* Names with the byte that the script uses for a line's end are not for it. */
static int check_names(const struct sync *s, struct abx_err *err)
{
	char shown[300];

	for (size_t i = 0; i < s->delta.len; i++) {
		if (!strchr(s->delta.items[i].path, '\001'))
			continue;
		abx_quote_text(s->delta.items[i].path, shown, sizeof(shown));
		return abx_err_set(err, ABX_ENOTSUP, "sync: '%s': a name with the byte 1", shown);
	}
	return 0;
}

static int prepare(struct sync *s, struct abx_err *err)
{
	const struct abx_seed_options look = {.keep_out = s->ask->keep_out, .look_only = true};
	const struct abx_seed_repo *root;
	int r = abx_seed_inspect(s->ask->workspace, s->ask->spool, &look, &s->seed, err);

	if (r == 0)
		r = abx_manifest_load(s->ask->manifest, &s->sent, err);
	if (r == 0)
		r = abx_sync_delta(s->seed, &s->sent, &s->delta, err);
	if (r == 0)
		r = check_names(s, err);
	root = r == 0 ? abx_seed_root(s->seed) : NULL;
	if (!root || !root->status.head)
		return r;
	r = make_pack(s, root, err);
	return r < 0 || !s->pack ? r : abx_sync_mark_committed(root, &s->delta, err);
}

static const char *state_of(const struct abx_seed_repo *root)
{
	return root && root->attrs.n_raw ? "raw" : "dirty";
}

static int on_answer(void *ctx, const void *data, size_t len)
{
	struct abx_buf *answer = ctx;

	abx_buf_add(answer, data, len);
	return answer->failed ? ABX_EPROTO : 0;
}

static int ask_box(struct sync *s, const struct abx_box_io *io, struct abx_synced *ret,
		   struct abx_err *err)
{
	const struct abx_seed_repo *root = abx_seed_root(s->seed);
	const char *head = root ? root->status.head : NULL;
	const char *name = root && root->head_branch ? root->head_branch : "HEAD";
	const char *const args[] = {s->ask->dir,
				    s->ask->seed_tree,
				    s->ask->dry_run ? "dry" : "do",
				    head ? head : "-",
				    name,
				    state_of(root),
				    NULL};
	abx_auto(abx_buf) struct abx_buf answer = ABX_BUF_INIT(ANSWER_MAX);
	abx_auto(abx_buf) struct abx_buf said = ABX_BUF_INIT(STDERR_MAX);
	struct abx_box_script script = {"sync", abx_script_sync, args, -1, on_answer, &answer};
	abx_autoclose int fd = abx_fs_open_scratch(s->ask->spool);
	int code = 0, r;

	if (fd < 0)
		return abx_err_errno(err, -fd, "write in '%s'", s->ask->spool);
	r = abx_sync_write(s->seed, &s->delta, s->pack, fd, err);
	if (r < 0)
		return r;
	if (lseek(fd, 0, SEEK_SET) < 0)
		return abx_err_errno(err, errno, "read in '%s'", s->ask->spool);
	script.stdin_fd = fd;
	r = abx_box_run(io, &script, &code, &said, err);
	if (r < 0)
		return answer.failed ? nonsense(err) : r;
	if (code)
		return abx_box_script_error("sync", code, &said, err);
	r = take_answer(&answer, ret, err);
	if (r == 0 && !head && strcmp(ret->branch, "none") != 0)
		r = nonsense(err);
	ret->head = abx_xstrdup_null(head);
	if (r == 0 && strcmp(ret->branch, "none") != 0)
		ret->host_ref = abx_xasprintf("host/%s", name);
	ret->base_moved = r == 0 && head && strcmp(ret->branch, "left") != 0 &&
			  strcmp(ret->branch, "none") != 0;
	return r;
}

/* ---- what is known here afterwards ---- */

static bool is_in(const struct abx_strv *list, const char *path)
{
	for (size_t i = 0; i < list->len; i++)
		if (strcmp(list->items[i], path) == 0)
			return true;
	return false;
}

/* The manifest first: where only that is written, what came counts as the box's own change, which
 * download finds here already.  The reverse would be a conflict with each later edit of the box. */
static int settle(struct sync *s, const struct abx_synced *done, struct abx_err *err)
{
	int r;

	for (size_t i = 0; i < s->delta.len; i++) {
		const struct abx_sync_item *item = &s->delta.items[i];

		if (is_in(&done->conflicts, item->path))
			continue;
		abx_manifest_set(&s->sent, item->path, item->new_mode ? &item->st : NULL,
				 item->new_mode ? item->new_oid : NULL);
		/* The tree that the box says now has it so. */
		abx_manifest_unbring(&s->sent, item->path);
	}
	r = abx_manifest_save(&s->sent, s->ask->manifest, err);
	return r < 0 || !s->ask->record ? r : s->ask->record(s->ask->ctx, done, err);
}

int abx_sync_io(const struct abx_box_io *io, const struct abx_sync_ask *ask, struct abx_synced *ret,
		struct abx_err *err)
{
	struct abx_err local = ABX_ERR_INIT;
	struct abx_synced done = {.branch = NULL};
	struct sync s = {.ask = ask};
	int r;

	err = err ? err : &local;
	r = prepare(&s, err);
	if (r == 0)
		r = ask_box(&s, io, &done, err);
	if (r == 0 && !ask->dry_run)
		r = settle(&s, &done, err);
	abx_sync_delta_release(&s.delta);
	abx_manifest_release(&s.sent);
	abx_seed_free(s.seed);
	free(s.pack);
	if (r < 0)
		abx_synced_release(&done);
	else
		*ret = done;
	return r;
}

int abx_sync(struct abx_cloud *cloud, const struct abx_call_opts *o,
	     const struct abx_sandbox *sandbox, const struct abx_sync_ask *ask,
	     struct abx_synced *ret, struct abx_err *err)
{
	struct abx_box_of_cloud box = {cloud, o, sandbox};
	const struct abx_box_io io = abx_box_io_of_cloud(&box);

	return abx_sync_io(&io, ask, ret, err);
}
