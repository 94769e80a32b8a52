/* SPDX-License-Identifier: MIT */
/* Commands by agentbox-ctl: what comes back from the box, and how it ends. */
#include "core/host/exec-ctl.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>

#include "core/host/exec-ctl-run.h"
#include "core/host/run.h"
#include "core/host/text.h"
#include "core/util/clock.h"
#include "core/util/mem.h"
#include "core/util/rand.h"

/* How often a program of ours may have to be brought before that is hopeless. */
#define MAX_INSTALLS 2

bool abx_exec_needs_ctl(const struct abx_cloud *c, const struct abx_exec *req)
{
	uint64_t needed = ABX_CAP_EXEC_SPLIT | ABX_CAP_EXEC_BINARY | ABX_CAP_EXEC_SIGNAL |
			  ABX_CAP_EXEC_TREE_KILL;

	if (req->stdin_fd >= 0)
		needed |= ABX_CAP_EXEC_STDIN;
	if (req->flags & ABX_EXEC_PTY)
		needed |= ABX_CAP_EXEC_PTY;
	return needed & ~abx_cloud_caps(c);
}

/* What agentbox-ctl says. */

static int on_exit_frame(struct abx_ctl_run *x, const unsigned char *data, size_t len)
{
	if (len < 12)
		return -EPROTO;
	x->end.code = (int32_t)abx_wire_u32(data);
	x->end.signo = (int32_t)abx_wire_u32(data + 4);
	x->end.flags = abx_wire_u32(data + 8);
	abx_text_line((const char *)data + 12, len - 12, x->end.text, sizeof(x->end.text));
	abx_ctl_run_note(x, ABX_CTL_ENDED);
	return 0;
}

static int on_fail_frame(struct abx_ctl_run *x, const unsigned char *data, size_t len)
{
	if (len < 4)
		return -EPROTO;
	x->end.failure = (int32_t)abx_wire_u32(data);
	abx_text_line((const char *)data + 4, len - 4, x->end.text, sizeof(x->end.text));
	abx_ctl_run_note(x, ABX_CTL_ENDED);
	return 0;
}

static int on_frame(void *ctx, enum abx_wire_kind kind, const unsigned char *data, size_t len)
{
	struct abx_ctl_run *x = ctx;
	char id[sizeof(x->id)];

	switch ((unsigned int)kind) {
	case ABX_WIRE_HELLO:
		if (len < 4 || abx_wire_u32(data) != ABX_WIRE_VERSION)
			return -EPROTO;
		abx_ctl_run_note(x, ABX_CTL_HELLO);
		return 0;
	case ABX_WIRE_STARTED:
		(void)snprintf(id, sizeof(id), "%s", x->id);
		return x->req->started ? x->req->started(x->req->io, id) : 0;
	case ABX_WIRE_STDOUT:
	case ABX_WIRE_STDERR:
		if (!x->req->output || !len)
			return 0;
		return x->req->output(
			x->req->io, kind == ABX_WIRE_STDOUT ? ABX_STREAM_STDOUT : ABX_STREAM_STDERR,
			data, len);
	case ABX_WIRE_CREDIT:
		return len < 4 ? -EPROTO : abx_ctl_run_credit(x, abx_wire_u32(data));
	case ABX_WIRE_EXIT:
		return on_exit_frame(x, data, len);
	case ABX_WIRE_FAIL:
		return on_fail_frame(x, data, len);
	default:
		return 0;
	}
}

/* Somebody else's words on our connection: the first of them may say what is wrong. */
static void on_noise(void *ctx, const void *data, size_t len)
{
	struct abx_ctl_run *x = ctx;

	if (x->noise_len && x->noise_len < sizeof(x->noise))
		x->noise[x->noise_len++] = ' ';
	if (len > sizeof(x->noise) - x->noise_len)
		len = sizeof(x->noise) - x->noise_len;
	memcpy(x->noise + x->noise_len, data, len);
	x->noise_len += len;
}

static int32_t on_output(void *io, int32_t stream, const void *data, size_t len)
{
	struct abx_ctl_run *x = io;
	int r;

	abx_ctl_run_heard(x, /* busy= */ true);
	if (stream != ABX_STREAM_STDOUT) {
		on_noise(x, data, len);
		r = 0;
	} else if (x->broken) {
		r = 0;
	} else {
		r = abx_wire_feed(&x->in, data, len);
		if (r == -EPROTO) {
			/* Until ctl has said hello it may be a shell that did not find it. */
			x->broken = true;
			r = x->said & ABX_CTL_HELLO ? ABX_EPROTO : 0;
		}
	}
	abx_ctl_run_heard(x, /* busy= */ false);
	return r;
}

/* Whether something of ours was lost is in the numbers of the frames. */
static int32_t on_gap(void *io, int32_t stream, uint64_t lost)
{
	struct abx_ctl_run *x = io;

	(void)stream;
	(void)lost;
	x->gap = true;
	return 0;
}

/* One try. */

#define FIND                                                   \
	"for d in " ABX_CTL_DIR " ~" ABX_CTL_HOME_DIR "; do\n" \
	"	[ -x \"$d/$0\" ] && exec \"$d/$0\" \"$@\"\n"         \
	"done\n"                                               \
	"exit 127\n"

const char abx_ctl_find_script[] = FIND;

/* The same, behind $1: the file that came with the project.  It leaves the project in any
 * case, and is in its place as a whole or not at all. */
static const char settle_script[] =
	"f=$1; shift\n"
	"put() {\n"
	"	$1 mkdir -p \"$2\" && $1 cp \"$f\" \"$2/.$0.$$\" &&\n"
	"	$1 chmod 755 \"$2/.$0.$$\" && $1 mv -f \"$2/.$0.$$\" \"$2/$0\"\n"
	"}\n"
	"s=; [ \"$(id -u)\" = 0 ] || s='sudo -n'\n"
	"{ put \"$s\" " ABX_CTL_DIR " || put '' ~" ABX_CTL_HOME_DIR "; } >/dev/null 2>&1\n"
	"rm -f \"$f\"\n" FIND;

static void make_argv(struct abx_ctl_run *x, const struct abx_ctl_place *place, const char *ret[12])
{
	const char *came = x->o->ctl_came_as;
	size_t n = 0;

	ret[n++] = "/bin/sh";
	ret[n++] = "-c";
	ret[n++] = came ? settle_script : abx_ctl_find_script;
	ret[n++] = place->name;
	if (came)
		ret[n++] = came;
	ret[n++] = "exec";
	if (x->in.text)
		ret[n++] = "--text";
	if (x->spool) {
		ret[n++] = "--spool";
		ret[n++] = x->base;
	}
	ret[n] = NULL;
}

static int attempt(struct abx_ctl_run *x, const struct abx_ctl_place *place, struct abx_err *err)
{
	const char *argv[12];
	struct abx_call_opts plain = *x->o;
	struct abx_exec req = {ABX_INIT(struct abx_exec)};
	struct abx_kv given = {ABX_WIRE_GIVEN, NULL};
	int r = abx_ctl_run_open(x, err);

	if (r < 0)
		return r;
	make_argv(x, place, argv);
	plain.plain_exec = true;
	plain.abort_fd = &x->abort_fd;
	req.argv = argv;
	req.cwd = "/";
	req.user = x->req->user;
	req.stdin_fd = x->child_fd;
	req.control_fd = -1;
	req.io = x;
	req.output = on_output;
	req.gap = on_gap;
	x->asked = x->given.len > 0;
	if (x->asked) {
		given.value = x->given.data;
		req.env = &given;
		req.n_env = 1;
	}
	x->left = (struct abx_exit){ABX_INIT(struct abx_exit)};
	r = abx_cloud_exec(x->c, &plain, x->s, &req, &x->left, err);
	abx_ctl_run_close(x);
	return r;
}

/* Its last word decides, whatever became of the connection afterwards. */
static int judge(struct abx_ctl_run *x, int r, struct abx_exit *ret, struct abx_err *err)
{
	struct abx_exit e = {.struct_size = ret->struct_size};
	char text[200];

	if (x->said & ABX_CTL_ENDED && x->end.failure) {
		int code = x->end.failure;

		if (code != ABX_EINVAL && code != ABX_ENOTSUP && code != ABX_EPROTO)
			code = ABX_EIO;
		return abx_run_fail(x->c, "exec", code, err, "%s", x->end.text);
	}
	if (x->said & ABX_CTL_ENDED) {
		e.code = x->end.code;
		e.signo = x->end.signo;
		e.timed_out = x->end.flags & ABX_WIRE_EXIT_TIMED_OUT ? 1 : 0;
		if (x->end.flags & ABX_WIRE_EXIT_DETACHED)
			e.flags |= ABX_EXIT_DETACHED;
		if (x->end.flags & ABX_WIRE_EXIT_NOT_STARTED) {
			e.flags |= ABX_EXIT_NOT_STARTED;
			(void)abx_err_set(err, ABX_ENOTFOUND, "%s", x->end.text);
		}
		*ret = e;
		return 0;
	}
	if (x->silent)
		return abx_run_fail(x->c, "exec", ABX_ENETWORK, err,
				    "no sign of life from the box for %d s",
				    ABX_CTL_SILENCE_MS / 1000);
	if (r < 0)
		return r;
	abx_text_line(x->noise, x->noise_len, text, sizeof(text));
	(void)abx_run_fail(x->c, "exec", ABX_ENETWORK, err,
			   "the connection to the command ended before it did%s%s",
			   *text ? ": " : "", text);
	return abx_err_remedy(err, "see whether the box still runs: agentbox status");
}

/* Nothing of ours answered, and the provider has no better reason for that. */
static bool may_be_missing(const struct abx_ctl_run *x, int r)
{
	if (x->said & ABX_CTL_HELLO || x->gap)
		return false;
	if (r == 0 && x->asked)
		return !x->left.signo && !(x->left.flags & ABX_EXIT_LOST) &&
		       (x->left.code == 126 || x->left.code == 127);
	if (r == 0 || r == ABX_ENOTFOUND || r == ABX_EINVAL || r == ABX_EPERM)
		return true;
	/* It may have begun all the same, and what had its request with it would be done twice. */
	return !x->asked &&
	       (r == ABX_EIO || r == ABX_EINTERNAL || r == ABX_EPROTO || r == ABX_EREMOTE);
}

static int run(struct abx_ctl_run *x, struct abx_exit *ret, struct abx_err *err)
{
	struct abx_ctl_place place;
	struct abx_err why = ABX_ERR_INIT;
	int r = abx_ctl_place_init(x->c, x->s, &place, err);

	if (r < 0)
		return r;
	for (int installs = 0;; installs++) {
		r = attempt(x, &place, &why);
		if (!may_be_missing(x, r) || installs == MAX_INSTALLS)
			break;
		r = abx_ctl_install(x->c, x->o, x->s, x->req->user, &place, &why);
		if (r < 0)
			break;
	}
	if (!(x->said & ABX_CTL_HELLO) && x->spool)
		abx_ctl_forget(x->c, x->o, x->s, x->base);
	if (r < 0 && err)
		*err = why;
	if (r < 0 && !(x->said & ABX_CTL_HELLO))
		return r;
	return judge(x, r, ret, err);
}

int abx_exec_ctl(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_sandbox *s,
		 const struct abx_exec *req, struct abx_exit *ret, struct abx_err *err)
{
	static const struct abx_call_opts none = {0};
	const uint64_t exact = ABX_CAP_EXEC_BINARY | ABX_CAP_EXEC_SPLIT;
	struct abx_ctl_run *x = abx_xcalloc(1, sizeof(*x));
	char name[33];
	int r;

	x->c = c;
	x->o = o ? o : &none;
	x->s = s;
	x->req = req;
	x->early = x->o->early ? x->o->early : &x->own_early;
	x->in.text = (abx_cloud_caps(c) & exact) != exact;
	x->in.frame = on_frame;
	x->in.noise = on_noise;
	x->in.ctx = x;
	x->spool = !(abx_cloud_caps(c) & ABX_CAP_EXEC_STDIN);
	abx_rand_hex(x->id, 16);
	abx_rand_hex(name, 32);
	(void)snprintf(x->base, sizeof(x->base), "/tmp/.agentbox-%s", name);
	if (x->spool && c->plugin->table.thread_model < ABX_THREADS_PARALLEL &&
	    req->stdin_fd >= 0) {
		r = abx_run_fail(c, "exec", ABX_ENOTSUP, err,
				 "this provider cannot give a command anything to read");
		(void)abx_err_remedy(err, "run it with -n");
	} else {
		r = run(x, ret, err);
	}
	abx_ctl_run_release(x);
	free(x);
	return r;
}
