/* SPDX-License-Identifier: MIT */
/* A command in a box. */
#include "core/box/exec.h"

#include <poll.h>
#include <signal.h>
#include <string.h>

#include "abxsdk/fs.h"
#include "core/box/running.h"
#include "core/box/spec.h"
#include "core/util/parse.h"

#define EXIT_TIMED_OUT 124
#define KILL_GRACE_MS 2000

struct sink {
	const struct abx_exec_request *req;
	int write_error;
	bool started;
	struct abx_exec_result got;
};

/* The user's descriptor may be non-blocking: a pipe shared with somebody who made it so. */
static int write_patiently(int fd, const char *data, size_t len)
{
	while (len) {
		ssize_t n = write(fd, data, len);

		if (n >= 0) {
			data += n;
			len -= (size_t)n;
			continue;
		}
		if (errno == EAGAIN) {
			struct pollfd p = {fd, POLLOUT, 0};

			(void)poll(&p, 1, -1);
		} else if (errno != EINTR) {
			return -errno;
		}
	}
	return 0;
}

static int on_output(void *io, int32_t stream, const void *data, size_t len)
{
	struct sink *sink = io;
	int fd = stream == ABX_STREAM_STDERR ? sink->req->fd_err : sink->req->fd_out;
	const uint64_t max = sink->req->max_output, done = sink->got.bytes_out;
	int r;

	if (sink->got.truncated)
		return ABX_ECANCELED;
	if (max && len > max - done) {
		len = (size_t)(max - done);
		sink->got.truncated = true;
	}
	r = fd < 0 ? 0 : write_patiently(fd, data, len);
	if (r < 0)
		sink->write_error = -r;
	else
		sink->got.bytes_out += len;
	return r == 0 && sink->got.truncated ? ABX_ECANCELED : r;
}

/* What a shell would say on the command's own stderr. */
static void say_not_started(const struct abx_exec_request *req, const struct abx_exit *e,
			    const struct abx_err *why)
{
	char text[sizeof(why->text) + 32], shown[200];

	if (!(e->flags & ABX_EXIT_NOT_STARTED) || req->fd_err < 0)
		return;
	abx_quote_text(req->argv[0], shown, sizeof(shown));
	if (why && why->code)
		(void)snprintf(text, sizeof(text), "agentbox: %s\n", why->text);
	else
		(void)snprintf(text, sizeof(text), "agentbox: exec: %s: %s\n", shown,
			       e->code == 127 ? "not found" : "cannot be run");
	(void)write_patiently(req->fd_err, text, strlen(text));
}

static int on_started(void *io, const char *exec_id)
{
	struct sink *sink = io;

	(void)snprintf(sink->got.exec_id, sizeof(sink->got.exec_id), "%s", exec_id);
	sink->started = true;
	if (sink->req->started)
		sink->req->started(sink->req->started_ctx);
	return 0;
}

static int exit_code(const struct abx_exit *e)
{
	if (e->timed_out)
		return EXIT_TIMED_OUT;
	if (e->signo)
		return 128 + (e->signo & 127);
	return e->code & 255;
}

/* ret_started: the command ran, or may have: it must not be run again. */
static int run_on(struct abx_cloud *cloud, const struct abx_call_opts *o,
		  const struct abx_sandbox *s, const struct abx_exec_request *req, int *ret_code,
		  bool *ret_started, struct abx_err *err)
{
	struct sink sink = {.req = req};
	struct abx_exec x = {ABX_INIT(struct abx_exec)};
	struct abx_exit e = {ABX_INIT(struct abx_exit)};
	abx_autofree struct abx_kv *env = req->env ? abx_env_kv(req->env) : NULL;
	int r;

	x.flags = (req->detached ? ABX_EXEC_DETACHED : 0) | (req->tty ? ABX_EXEC_PTY : 0);
	x.rows = req->rows;
	x.cols = req->cols;
	x.argv = req->argv;
	x.cwd = req->cwd;
	x.user = req->user;
	x.env = env;
	x.n_env = req->env ? (uint32_t)req->env->len : 0;
	x.stdin_fd = req->fd_in;
	x.control_fd = req->control_fd ? *req->control_fd : -1;
	x.timeout_ms = req->timeout_ms;
	x.grace_ms = KILL_GRACE_MS;
	x.io = &sink;
	x.started = on_started;
	x.output = on_output;
	r = abx_cloud_exec(cloud, o, s, &x, &e, err);
	*ret_started = sink.started;
	sink.got.detached = r == 0 && e.flags & ABX_EXIT_DETACHED;
	sink.got.timed_out = r == 0 && e.timed_out;
	sink.got.signo = r == 0 ? e.signo : 0;
	if (req->result)
		*req->result = sink.got;
	/* `agentbox exec -- yes | head`: the reader had enough, which is no failure. */
	if (sink.write_error == EPIPE || (sink.got.truncated && !sink.write_error)) {
		*ret_code = 128 + SIGPIPE;
		return 0;
	}
	if (sink.write_error)
		return abx_err_errno(err, sink.write_error, "write the command's output");
	if (r < 0)
		return r;
	if (e.flags & ABX_EXIT_LOST)
		return abx_err_set(err, ABX_ENETWORK,
				   "the command's end was lost; it may still "
				   "be running");
	say_not_started(req, &e, err);
	*ret_code = exit_code(&e);
	return 0;
}

int abx_exec_on(struct abx_cloud *cloud, const struct abx_call_opts *o, const struct abx_sandbox *s,
		const struct abx_exec_request *req, int *ret_code, struct abx_err *err)
{
	bool started = false;

	return run_on(cloud, o, s, req, ret_code, &started, err);
}

/* Where the commands of this box start. */
static int default_cwd(const struct abx_box *box, char **ret, struct abx_err *err)
{
	struct abx_box_spec spec = {0};
	int r = abx_box_spec_parse(box->spec, &spec, err);

	*ret = r == 0 ? abx_box_spec_cwd(&spec) : NULL;
	abx_box_spec_release(&spec);
	return r;
}

static int run_in(struct abx_app *app, struct abx_box *box, const struct abx_exec_request *req,
		  struct abx_early_input *early, int *ret_code, struct abx_err *err)
{
	struct abx_call_opts o = {.box_id = box->id, .early = early};
	struct abx_exec_request start = *req;
	abx_autofree char *cwd = NULL;
	struct abx_sandbox s;
	struct abx_cloud *cloud;
	bool started = false;
	int r = abx_box_ensure_running(app, box, err);

	if (r == 0 && !start.cwd)
		r = default_cwd(box, &cwd, err);
	if (cwd)
		start.cwd = cwd;

	if (r == 0)
		r = abx_app_cloud_of(app, box, &cloud, err);
	if (r < 0)
		return r;
	o.box_id = box->id;
	s = abx_cloud_sandbox(box);
	r = run_on(cloud, &o, &s, &start, ret_code, &started, err);
	/* The word that it started may have been lost with whoever had to say it. */
	if (r == ABX_ESTATE && (started || err->outcome_unknown))
		return abx_err_set(err, ABX_ESTATE,
				   "box '%s' was stopped while the command ran in it, or what "
				   "supervised the command was killed",
				   box->name);
	r = abx_box_blame(app, box, r, err);
	/* The machine restarted, or the box was stopped behind our back: nothing ran yet. */
	if (r == ABX_ESTATE) {
		r = abx_box_start_again(app, box, err);
		if (r < 0)
			return r;
		o.box_id = box->id;
		s = abx_cloud_sandbox(box);
		r = abx_exec_on(cloud, &o, &s, &start, ret_code, err);
	}
	return r;
}

int abx_box_exec(struct abx_app *app, struct abx_box *box, const struct abx_exec_request *req,
		 int *ret_code, struct abx_err *err)
{
	struct abx_early_input early = {.read = false};
	int r = run_in(app, box, req, &early, ret_code, err);

	abx_early_input_release(&early);
	return r;
}
