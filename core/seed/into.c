/* SPDX-License-Identifier: MIT */
/* Sending an inspected workspace into a box, and proving that it arrived. */
#include "core/seed/into.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "core/seed/seed-script.h"
#include "core/seed/seed-state.h"
#include "core/seed/stream.h"

#define PIPE_BYTES (1 << 20)
#define OUTPUT_MAX 4096

/* The stream is made on a thread of its own while the provider reads it. */
struct sender {
	struct abx_seed *seed;
	struct abx_seed_stream stream;
	struct abx_manifest sent;
	bool reader_gone;
	int result;
	struct abx_err err;
};

static void *send_stream(void *arg)
{
	struct sender *s = arg;
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGPIPE);
	(void)pthread_sigmask(SIG_BLOCK, &set, NULL);
	s->result = abx_seed_write_stream(s->seed, &s->stream, &s->sent, &s->reader_gone, &s->err);
	/* The end of the pipe is the end of the stream. */
	(void)close(s->stream.fd);
	return NULL;
}

static void close_pair(int pair[2])
{
	abx_cleanup_close(&pair[0]);
	abx_cleanup_close(&pair[1]);
	pair[0] = pair[1] = -1;
}

/* A provider that fails leaves us writing; one that we fail reads a cut stream.  The reason
 * is the side that did not just see the other one go. */
static int transfer(struct sender *s, const struct abx_box_io *io,
		    const struct abx_seed_target *target, struct abx_err *err)
{
	struct abx_transfer req = {ABX_INIT(struct abx_transfer), .size_bytes = -1,
				   .path = target->dir};
	int data[2] = {-1, -1}, stop[2] = {-1, -1}, r;
	pthread_t thread;

	if (pipe2(data, O_CLOEXEC) < 0 || pipe2(stop, O_CLOEXEC) < 0) {
		r = abx_err_errno(err, errno, "seed: make a pipe");
		close_pair(data);
		return r;
	}
	(void)fcntl(data[1], F_SETPIPE_SZ, PIPE_BYTES);
	s->stream.fd = data[1];
	s->stream.stop_fd = stop[0];
	r = pthread_create(&thread, NULL, send_stream, s);
	if (r) {
		r = abx_err_errno(err, r, "seed: start a thread");
		close_pair(data);
		close_pair(stop);
		return r;
	}
	req.fd = data[0];
	r = io->put_tar(io->ctx, &req, err);
	/* Whoever still holds the reading side does not matter: the sender is told to stop.  It
	 * has ended already when the provider read everything. */
	(void)close(data[0]);
	(void)close(stop[1]);
	(void)pthread_join(thread, NULL);
	(void)close(stop[0]);
	if (s->result < 0 && (!s->reader_gone || r == 0)) {
		*err = s->err;
		return s->result;
	}
	return r;
}

struct output {
	struct abx_buf text;
	struct abx_err *err;
};

static int on_output(void *ctx, const void *data, size_t len)
{
	struct output *o = ctx;

	abx_buf_add(&o->text, data, len);
	if (o->text.failed)
		return abx_err_set(o->err, ABX_EPROTO, "seed: the box answers with too much");
	return 0;
}

/* What `git status` must say in the box: the same, on the box's branch. */
static int expected_status(const struct abx_seed *s, const char *branch, struct abx_err *err)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(ABX_GIT_OUTPUT_MAX);
	int fd;

	abx_buf_addf(&b, "# branch.oid %s", s->status.head);
	abx_buf_addc(&b, '\0');
	abx_buf_addf(&b, "# branch.head %s", branch);
	abx_buf_addc(&b, '\0');
	abx_buf_add(&b, abx_buf_str(&s->status.changes), s->status.changes.len);
	if (b.failed)
		return abx_err_set(err, ABX_ENOMEM, "seed: too many changes in the workspace");
	fd = abx_spool_bytes(s->spool, b.data, b.len);
	return fd < 0 ? abx_err_errno(err, -fd, "write in '%s'", s->spool) : fd;
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
	return abx_err_set(err, ABX_EPROTO, "seed: the box's answer is not understood");
}

static int check_in_box(struct abx_seed *s, const struct abx_box_io *io,
			const struct abx_seed_target *target, char **ret_tree,
			struct abx_err *err)
{
	const bool git = s->info.git;
	const char *state = s->assumed ? "assumed" : git && !s->status.changes.len ? "clean"
										   : "dirty";
	const char *const args[] = {target->dir, git ? "git" : "plain",
				    git ? s->status.head : "-", state, NULL};
	abx_auto(abx_buf) struct abx_buf said = ABX_BUF_INIT(1 << 20);
	abx_autoclose int fd = -1;
	struct output o = {ABX_BUF_INIT(OUTPUT_MAX), err};
	struct abx_box_script script = {"seed", abx_script_seed, args, -1, on_output, &o};
	int code = 0, r = 0;

	if (git) {
		r = fd = expected_status(s, target->branch, err);
		script.stdin_fd = fd;
	}
	if (r >= 0)
		r = abx_box_run(io, &script, &code, &said, err);
	if (r == 0 && code)
		r = abx_box_script_error("seed", code, &said, err);
	if (r == 0)
		r = take_tree(&o, git, ret_tree, err);
	abx_buf_release(&o.text);
	return r;
}

int abx_seed_into_io(struct abx_seed *seed, const struct abx_box_io *io,
		     const struct abx_seed_target *target, struct abx_seed_result *ret,
		     struct abx_err *err)
{
	struct abx_err local = ABX_ERR_INIT;
	struct sender s = {.seed = seed,
			   .stream = {.branch = target->branch,
				      .progress = target->progress,
				      .progress_ctx = target->progress_ctx},
			   .err = ABX_ERR_INIT};
	char *tree = NULL;
	int r;

	err = err ? err : &local;
	r = transfer(&s, io, target, err);
	if (r == 0)
		r = check_in_box(seed, io, target, &tree, err);
	if (r == 0)
		r = abx_manifest_save(&s.sent, target->manifest, err);
	abx_manifest_release(&s.sent);
	if (r < 0) {
		free(tree);
		return r;
	}
	ret->branch = seed->info.git ? abx_xstrdup(target->branch) : NULL;
	ret->base_commit = abx_xstrdup_null(seed->status.head);
	ret->seed_tree = tree;
	return 0;
}

int abx_seed_into(struct abx_seed *seed, struct abx_cloud *cloud, const struct abx_call_opts *o,
		  const struct abx_sandbox *sandbox, const struct abx_seed_target *target,
		  struct abx_seed_result *ret, struct abx_err *err)
{
	struct abx_box_of_cloud box = {cloud, o, sandbox};
	const struct abx_box_io io = abx_box_io_of_cloud(&box);

	return abx_seed_into_io(seed, &io, target, ret, err);
}

void abx_seed_result_release(struct abx_seed_result *r)
{
	free(r->branch);
	free(r->base_commit);
	free(r->seed_tree);
	memset(r, 0, sizeof(*r));
}
