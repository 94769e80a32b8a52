/* SPDX-License-Identifier: MIT */
/* Sending an inspected workspace into a box, and proving that it arrived. */
#include "core/seed/into.h"

#include <string.h>

#include "core/host/exec-ctl.h"
#include "core/seed/seed-script.h"
#include "core/seed/seed-state.h"
#include "core/seed/stream-git.h"
#include "core/seed/stream.h"
#include "core/util/log.h"
#include "core/util/mem.h"
#include "core/util/parse.h"
#include "core/util/rand.h"

#define OUTPUT_MAX 4096
#define STATUS_MORE ((size_t)1 << 20)
#define PROGRAM_NAME ".agentbox-ctl-"

struct sender {
	struct abx_seed *seed;
	const struct abx_seed_target *target;
	const struct abx_box_io *io;
	struct abx_manifest sent;
	bool last;
};

static int produce(void *ctx, int fd, int stop_fd, struct abx_err *err)
{
	struct sender *s = ctx;
	const struct abx_seed_stream how = {.fd = fd,
					    .stop_fd = stop_fd,
					    .branch = s->target->branch,
					    .program = s->io->program,
					    .program_name = s->io->program_name,
					    .last = s->last,
					    .progress = s->target->progress,
					    .progress_ctx = s->target->progress_ctx};

	return abx_seed_write_stream(s->seed, &how, &s->sent, err);
}

/* The box's answer: its `git status`, which has to be the expected one, and then a line. */
struct output {
	const struct abx_seed *seed;
	const struct abx_buf *status;
	size_t same;	     /* bytes of it that have come */
	struct abx_buf text; /* what comes behind it; all, where files changed all the time */
	struct abx_err *err;
};

static int on_output(void *ctx, const void *data, size_t len)
{
	struct output *o = ctx;
	const size_t left = o->seed->taken.len ? 0 : o->status->len - o->same;
	const size_t n = len < left ? len : left;

	if (n && memcmp(o->status->data + o->same, data, n) != 0)
		return abx_box_script_error("seed", ABX_SCRIPT_DIFFERS, NULL, o->err);
	o->same += n;
	abx_buf_add(&o->text, (const char *)data + n, len - n);
	if (o->text.failed)
		return abx_err_set(o->err, ABX_EPROTO, "seed: the box answers with too much");
	return 0;
}

/* What `git status` must say in the box: the same, on the box's branch. */
static void expect_status(const struct abx_seed_repo *r, const char *branch, struct abx_buf *b)
{
	const char *on = abx_seed_box_branch(r, branch);

	abx_buf_addf(b, "# branch.oid %s", r->status.head ? r->status.head : "(initial)");
	abx_buf_addc(b, '\0');
	abx_buf_addf(b, "# branch.head %s", on ? on : "(detached)");
	abx_buf_addc(b, '\0');
	abx_buf_add(b, abx_buf_str(&r->status.changes), r->status.changes.len);
}

/* A record of git status about a file that changed all the time? */
static bool is_taken(const struct abx_seed *s, const struct abx_seed_repo *r, const char *record)
{
	const char *path = abx_status_path(record);

	if (!path)
		return false;
	for (size_t i = 0; i < s->taken.len; i++) {
		const char *taken = s->taken.items[i];
		const size_t n = strlen(r->path);

		if (n && (strncmp(taken, r->path, n) != 0 || taken[n] != '/'))
			continue;
		if (strcmp(n ? taken + n + 1 : taken, path) == 0)
			return true;
	}
	return false;
}

/* The records of `git status` for each repository, without those.  What follows them is in
 * *ret_end. */
static void without_taken(const struct abx_seed *s, const struct abx_buf *from, struct abx_buf *to,
			  const char **ret_end)
{
	static const char first[] = "# branch.oid ";
	const char *at = abx_buf_str(from), *end = at + from->len;
	size_t repo = 0;

	while (at < end && memchr(at, '\0', (size_t)(end - at))) {
		if (strncmp(at, first, sizeof(first) - 1) == 0)
			repo++;
		if (!repo || repo > s->n_repos || !is_taken(s, s->repos[repo - 1], at))
			abx_buf_add(to, at, strlen(at) + 1);
		at += strlen(at) + 1;
	}
	*ret_end = at;
}

/* Where files changed all the time, their records may be any; all others are as expected. */
static int compare_the_rest(struct output *o)
{
	abx_auto(abx_buf) struct abx_buf want = ABX_BUF_INIT(o->status->len + 1);
	abx_auto(abx_buf) struct abx_buf have = ABX_BUF_INIT(o->text.len + 1);
	abx_autofree char *line = NULL;
	const char *end;

	without_taken(o->seed, o->status, &want, &end);
	without_taken(o->seed, &o->text, &have, &end);
	if (want.len != have.len || memcmp(abx_buf_str(&want), abx_buf_str(&have), want.len) != 0)
		return abx_box_script_error("seed", ABX_SCRIPT_DIFFERS, NULL, o->err);
	line = abx_xstrdup(end);
	abx_buf_reset(&o->text);
	abx_buf_adds(&o->text, line);
	return 0;
}

static int take_tree(const struct output *o, bool needed, char **ret, struct abx_err *err)
{
	const char *text = abx_buf_str(&o->text);
	abx_autofree char *id = NULL;

	if (!o->text.len && !needed)
		return 0;
	if (strncmp(text, "tree ", 5) == 0 && o->text.len == 5 + 40 + 1 && text[45] == '\n') {
		id = abx_xstrndup(text + 5, 40);
		if (abx_is_oid_hex(id)) {
			*ret = abx_steal_ptr(&id);
			return 0;
		}
	}
	/* More than was expected of its status: there is more in the box. */
	if (o->same && o->text.len && strncmp(text, "tree ", 5) != 0)
		return abx_box_script_error("seed", ABX_SCRIPT_DIFFERS, NULL, err);
	return abx_err_set(err, ABX_EPROTO, "seed: the box's answer is not understood");
}

struct state {
	char text[sizeof("clean:") + 2 * ABX_OID_BYTES];
};

/* With the tree of the commit, where the index has it: it is one process less in the box. */
static const char *clean_state(const struct abx_seed_repo *r, struct state *room)
{
	char tree[2 * ABX_OID_BYTES + 1];

	if (!r->index.has_tree)
		return "clean";
	abx_oid_hex(r->index.tree, tree);
	(void)snprintf(room->text, sizeof(room->text), "clean:%s", tree);
	return room->text;
}

static const char *state_of(const struct abx_seed *s, const struct abx_seed_repo *r,
			    struct state *room)
{
	if (r->want.commit)
		return r->attrs.n_raw ? "commit-raw" : "commit";
	if (r->attrs.n_raw)
		return "raw";
	if (r->assumed)
		return "assumed";
	/* Where git does not look at modes, the index need not have those of the files. */
	return r->status.head && !r->status.changes.len && r->config.filemode && !s->taken.len
		       ? clean_state(r, room)
		       : "dirty";
}

/* What the script is told, and what it must say first. */
static void script_args(const struct abx_seed *s, const struct abx_seed_target *target,
			const char **args, struct state *states, struct abx_buf *status)
{
	size_t n = 0;

	args[n++] = target->dir;
	if (!s->info.git) {
		static const char *const plain[] = {"", "plain", "-", "dirty"};

		memcpy(args + n, plain, sizeof(plain));
		n += ABX_N_ELEMENTS(plain);
	}
	for (size_t i = 0; i < s->n_repos; i++) {
		const struct abx_seed_repo *r = s->repos[i];

		args[n++] = r->path;
		args[n++] = r->config.promisor ? "partial" : "git";
		args[n++] = r->status.head ? r->status.head : "-";
		args[n++] = state_of(s, r, &states[i]);
		expect_status(r, target->branch, status);
	}
}

static int check_in_box(struct abx_seed *s, const struct abx_box_io *io,
			const struct abx_seed_target *target, char **ret_tree, struct abx_err *err)
{
	abx_autofree const char **args = abx_xcalloc(2 + 4 * (s->n_repos + 1), sizeof(*args));
	abx_autofree struct state *states = abx_xcalloc(s->n_repos + 1, sizeof(*states));
	abx_auto(abx_buf) struct abx_buf said = ABX_BUF_INIT(1 << 20);
	abx_auto(abx_buf) struct abx_buf status = ABX_BUF_INIT(ABX_GIT_OUTPUT_MAX);
	struct output o = {s, &status, 0, ABX_BUF_INIT(OUTPUT_MAX), err};
	const struct abx_box_script script = {"seed", abx_script_seed, args, -1, on_output, &o};
	int code = 0, r;

	script_args(s, target, args, states, &status);
	if (status.failed)
		return abx_err_set(err, ABX_ENOMEM, "seed: too many changes in the workspace");
	if (s->taken.len)
		o.text = (struct abx_buf)ABX_BUF_INIT(2 * status.len + STATUS_MORE);
	r = abx_box_run(io, &script, &code, &said, err);
	if (r == 0 && code)
		r = abx_box_script_error("seed", code, &said, err);
	if (r == 0 && s->taken.len)
		r = compare_the_rest(&o);
	if (r == 0)
		r = take_tree(&o, s->n_repos > 0, ret_tree, err);
	abx_buf_release(&o.text);
	return r;
}

static int send(struct sender *s, bool last, char **ret_tree, struct abx_err *err)
{
	int r;

	s->last = last;
	abx_manifest_release(&s->sent);
	r = s->io->put_stream(s->io->ctx, s->target->dir, produce, s, err);
	if (r == 0)
		r = check_in_box(s->seed, s->io, s->target, ret_tree, err);
	return r;
}

/* Nothing of what was sent before stays in the box. */
static int clear_box(const struct sender *s, struct abx_err *err)
{
	const char *const args[] = {s->target->dir, NULL};
	const struct abx_box_script script = {"seed", abx_script_clear, args, -1, NULL, NULL};
	abx_auto(abx_buf) struct abx_buf said = ABX_BUF_INIT(1 << 20);
	int code = 0, r = abx_box_run(s->io, &script, &code, &said, err);

	return r == 0 && code ? abx_box_script_error("seed", code, &said, err) : r;
}

/* Was the failure that somebody worked in the workspace? */
static bool is_to_repeat(const struct abx_seed *s, int r)
{
	return r < 0 && r != ABX_ECANCELED && (s->moved || abx_seed_is_outdated(s));
}

/* As one state, which it has at some moment, or as the last one. */
static int send_steadily(struct sender *s, char **ret_tree, struct abx_err *err)
{
	int r = send(s, false, ret_tree, err);

	for (int i = 2; i <= ABX_SEED_ROUNDS && is_to_repeat(s->seed, r); i++) {
		abx_log(ABX_LOG_INFO, "seed", "again: %s", err->text);
		r = abx_seed_look_again(s->seed, err);
		if (r == 0)
			r = clear_box(s, err);
		if (r == 0)
			r = send(s, i == ABX_SEED_ROUNDS, ret_tree, err);
	}
	return r;
}

static void say_taken(const struct abx_seed *s)
{
	char text[256], more[48] = "";

	if (!s->taken.len)
		return;
	abx_quote_text(s->taken.items[0], text, sizeof(text));
	if (s->taken.len > 1)
		(void)snprintf(more, sizeof(more), " and %zu more", s->taken.len - 1);
	abx_warn("'%s'%s changed all the time: the box has what was read last", text, more);
}

int abx_seed_into_io(struct abx_seed *seed, const struct abx_box_io *io,
		     const struct abx_seed_target *target, struct abx_seed_result *ret,
		     struct abx_err *err)
{
	struct abx_err local = ABX_ERR_INIT;
	struct sender s = {.seed = seed, .target = target, .io = io};
	const struct abx_seed_repo *root;
	char *tree = NULL;
	int r;

	err = err ? err : &local;
	r = send_steadily(&s, &tree, err);
	if (r == 0)
		r = abx_manifest_save(&s.sent, target->manifest, err);
	abx_manifest_release(&s.sent);
	if (r < 0) {
		free(tree);
		return r;
	}
	say_taken(seed);
	root = abx_seed_root(seed);
	ret->branch = root ? abx_xstrdup_null(abx_seed_box_branch(root, target->branch)) : NULL;
	ret->base_commit = abx_xstrdup_null(seed->info.base_commit);
	ret->seed_tree = tree;
	return 0;
}

int abx_seed_into(struct abx_seed *seed, struct abx_cloud *cloud, const struct abx_call_opts *o,
		  const struct abx_sandbox *sandbox, const struct abx_seed_target *target,
		  struct abx_seed_result *ret, struct abx_err *err)
{
	struct abx_call_opts opts = *o;
	struct abx_box_of_cloud box = {cloud, &opts, sandbox};
	struct abx_box_io io = abx_box_io_of_cloud(&box);
	struct abx_ctl_place ctl;
	char name[sizeof(PROGRAM_NAME) + 32];
	abx_autofree char *came_as = NULL;

	if (abx_ctl_travels(cloud, sandbox, &ctl)) {
		memcpy(name, PROGRAM_NAME, sizeof(PROGRAM_NAME));
		abx_rand_hex(name + sizeof(PROGRAM_NAME) - 1, 32);
		opts.ctl_came_as = came_as = abx_xasprintf("%s/%s", target->dir, name);
		io.program = ctl.file;
		io.program_name = name;
	}
	return abx_seed_into_io(seed, &io, target, ret, err);
}

void abx_seed_result_release(struct abx_seed_result *r)
{
	free(r->branch);
	free(r->base_commit);
	free(r->seed_tree);
	memset(r, 0, sizeof(*r));
}
