/* SPDX-License-Identifier: MIT */
/* Commands in sandboxes, through the agent. */
#include "tests/cloud/command.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "abxsdk/fs.h"
#include "abxsdk/json.h"
#include "core/util/mem.h"

#define SETUP_MAX ((size_t)16 << 20)

void emu_frame_add(struct abx_buf *to, char kind, const void *data, size_t len)
{
	unsigned char head[AGENT_HEAD_BYTES];

	agent_head(head, kind, len);
	abx_buf_add(to, head, sizeof(head));
	abx_buf_add(to, data, len);
}

void emu_frame_add_text(struct abx_buf *to, char kind, const char *text)
{
	emu_frame_add(to, kind, text, strlen(text));
}

void emu_frame_add_env(struct abx_buf *to, const char *key, const char *value)
{
	unsigned char head[AGENT_HEAD_BYTES];
	size_t n = strlen(key) + 1 + strlen(value);

	agent_head(head, AGENT_ENV, n);
	abx_buf_add(to, head, sizeof(head));
	abx_buf_addf(to, "%s=%s", key, value);
}

bool emu_frames_take(struct abx_buf *in, const void *data, size_t len,
		     void (*fn)(void *ctx, char kind, const char *data, size_t len), void *ctx)
{
	size_t at = 0;

	abx_buf_add(in, data, len);
	if (in->failed)
		return false;
	while (in->len - at >= AGENT_HEAD_BYTES) {
		const unsigned char *head = (const unsigned char *)in->data + at;
		size_t n = agent_head_len(head);

		if (n > AGENT_FRAME_MAX)
			return false;
		if (in->len - at - AGENT_HEAD_BYTES < n)
			break;
		fn(ctx, (char)head[0], in->data + at + AGENT_HEAD_BYTES, n);
		at += AGENT_HEAD_BYTES + n;
	}
	memmove(in->data, in->data + at, in->len - at);
	in->len -= at;
	return true;
}

/* A command under way. */
struct running {
	const struct emu_command *c;
	struct abx_buf frames;
	char *failure;
	int code, signo;
	bool ended;
};

static void on_frame(void *ctx, char kind, const char *data, size_t len)
{
	struct running *x = ctx;
	char *text, *at;

	switch (kind) {
	case AGENT_STDOUT:
	case AGENT_STDERR:
		if (x->c->output)
			x->c->output(x->c->ctx, kind, data, len);
		break;
	case AGENT_FAIL:
		free(x->failure);
		at = memchr(data, 0, len);
		len -= at ? (size_t)(at + 1 - data) : 0;
		x->failure = abx_xstrndup(at ? at + 1 : data, len);
		break;
	case AGENT_EXIT:
		text = abx_xstrndup(data, len);
		x->code = (int)strtol(text, &at, 10);
		x->signo = (int)strtol(at, NULL, 10);
		x->ended = true;
		free(text);
		break;
	default:
		break;
	}
}

static int32_t on_output(void *ctx, const void *data, size_t len)
{
	struct running *x = ctx;

	return emu_frames_take(&x->frames, data, len, on_frame, x) ? 0 : ABX_EPROTO;
}

static int add_pair(void *ctx, const char *key, const char *value)
{
	emu_frame_add_env(ctx, key, value);
	return 0;
}

/* What the agent is to do, in a file to read; -errno. */
static int describe(const struct emu_command *c)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(SETUP_MAX);
	abx_autoclose int fd = memfd_create("command", MFD_CLOEXEC);
	int r;

	emu_frame_add_text(&b, AGENT_USER, c->user);
	if (c->cwd)
		emu_frame_add_text(&b, AGENT_CWD, c->cwd);
	for (size_t i = 0; c->argv[i]; i++)
		emu_frame_add_text(&b, AGENT_ARG, c->argv[i]);
	(void)abx_json_each_str(c->env, add_pair, &b);
	emu_frame_add(&b, AGENT_NO_STDIN, "", 0);
	emu_frame_add(&b, AGENT_GO, "", 0);
	if (fd < 0)
		return -errno;
	r = b.failed ? -E2BIG : abx_fs_write_all(fd, b.data, b.len);
	if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
		r = -errno;
	return r < 0 ? r : abx_steal_fd(&fd);
}

int emu_command(struct emu_engine *e, const char *id, const struct emu_command *c, int *ret_code,
		struct abx_err *err)
{
	static const char *const args[] = {"run", NULL};
	abx_autoclose int fd = -1;
	struct running x = {.c = c, .frames = ABX_BUF_INIT(2 * AGENT_FRAME_MAX)};
	struct emu_exec exec = {.args = args, .network = true, .output = on_output, .ctx = &x};
	int code = 0, r;

	if (emu_engine_light(e)) {
		*ret_code = 0;
		return 0;
	}
	fd = describe(c);
	if (fd < 0)
		return abx_err_errno(err, -fd, "sandbox %s: command", id);
	exec.in_fd = fd;
	r = emu_exec(e, id, &exec, &code, err);
	if (r == 0 && x.failure)
		r = abx_err_set(err, ABX_EINVAL, "%s", x.failure);
	else if (r == 0 && !x.ended)
		r = abx_err_set(err, ABX_EINTERNAL, "sandbox %s: the command was lost", id);
	if (r == 0)
		*ret_code = x.signo ? 128 + x.signo : x.code;
	free(x.failure);
	abx_buf_release(&x.frames);
	return r;
}
