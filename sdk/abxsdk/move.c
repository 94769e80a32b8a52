/* SPDX-License-Identifier: MIT */
/* A script in the box that takes or gives bytes. */
#include "abxsdk/move.h"

#include <poll.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "abxsdk/buf.h"
#include "abxsdk/fs.h"
#include "abxsdk/number.h"

/* A pipe that has room takes this much without waiting. */
#define PIPE_BYTES 4096
#define ARGS_MAX 16

/* $1 directory, $2 "p" when it is to be made, $3 whose files they are to be.  GNU tar takes and
 * writes 10 KiB at a time, unless told so; other tars do not look at the variable. */
static const char unpack_script[] = "[ -z \"$2\" ] || mkdir -p -- \"$1\" || exit 1\n"
				    "cd -- \"$1\" || exit 44\n"
				    "TAR_OPTIONS=--blocking-factor=2048 "
				    "exec tar -x -p \"$3\" -f -\n";

/* $1 a directory, whose contents it is, or something else, which it is itself. */
static const char pack_script[] = "if [ -d \"$1\" ]; then cd -- \"$1\" && exec tar -c -f - .; fi\n"
				  "[ -e \"$1\" ] || [ -L \"$1\" ] || exit 44\n"
				  "case $1 in */*) d=${1%/*} ;; *) d=. ;; esac\n"
				  "cd -- \"${d:-/}\" && exec tar -c -f - \"./${1##*/}\"\n";

static int32_t write_slowly(struct abx_call *call, int fd, const char *what, const char *data,
			    size_t len)
{
	while (len) {
		struct pollfd p = {.fd = fd, .events = POLLOUT};
		int32_t r = abx_call_poll(call, &p, 1, -1);
		ssize_t n;

		if (r != ABX_OK)
			return r;
		if (!p.revents)
			continue;
		n = write(fd, data, len < PIPE_BYTES ? len : PIPE_BYTES);
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return abx_fail_errno(call, errno, "%s: write", what);
		if (n > 0) {
			data += n;
			len -= (size_t)n;
		}
	}
	return ABX_OK;
}

int32_t abx_call_write(struct abx_call *call, int fd, const char *what, const void *data,
		       size_t len)
{
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return write_slowly(call, fd, what, data, len);
	r = abx_fs_write_all(fd, data, len);
	return r < 0 ? abx_fail_errno(call, -r, "%s: write", what) : ABX_OK;
}

/* What cannot be of the mark any more is passed on. */
static int32_t give(struct abx_move *m, const char *data, size_t len)
{
	const size_t all = m->n_held + len,
		     keep = all < ABX_MOVE_MARK_BYTES ? all : ABX_MOVE_MARK_BYTES;
	const size_t n = all - keep, old = n < m->n_held ? n : m->n_held;
	int32_t r = ABX_OK;

	if (old)
		r = abx_call_write(m->call, m->out, m->what, m->held, old);
	m->n_held -= old;
	memmove(m->held, m->held + old, m->n_held);
	if (r == ABX_OK && n > old)
		r = abx_call_write(m->call, m->out, m->what, data, n - old);
	memcpy(m->held + m->n_held, data + (n - old), len - (n - old));
	m->n_held = keep;
	return r;
}

static int32_t on_output(void *io, int32_t stream, const void *data, size_t len)
{
	struct abx_move *m = io;

	if (stream == ABX_STREAM_STDOUT && m->out >= 0) {
		m->failed = m->mark_end ? give(m, data, len)
					: abx_call_write(m->call, m->out, m->what, data, len);
		return m->failed;
	}
	if (len > ABX_MOVE_WORDS_MAX - m->n_words)
		len = ABX_MOVE_WORDS_MAX - m->n_words;
	memcpy(m->words + m->n_words, data, len);
	m->n_words += len;
	return ABX_OK;
}

/* Bytes that are missing in the middle of a file are none that anybody can live with. */
static int32_t on_gap(void *io, int32_t stream, uint64_t lost)
{
	(void)io;
	(void)stream;
	(void)lost;
	return ABX_ENETWORK;
}

static int32_t judge(struct abx_move *m, const char *path, const struct abx_exit *e)
{
	m->words[strcspn(m->words, "\r\n")] = '\0';
	if (e->flags & ABX_EXIT_NOT_STARTED)
		return abx_fail(m->call, ABX_EIO, "use an image that has a shell",
				"%s: /bin/sh cannot be run in the box", m->what);
	if (e->flags & ABX_EXIT_LOST)
		return abx_fail(m->call, ABX_ESTATE, NULL, "%s: the box stopped meanwhile",
				m->what);
	if (e->code == 0 && e->signo == 0)
		return ABX_OK;
	if (e->code == 44)
		return abx_fail(m->call, ABX_ENOTFOUND, NULL, "%.300s: there is no such file",
				path);
	if (e->code == 45)
		return abx_fail(m->call, ABX_EINVAL, NULL, "%.300s: it is a directory", path);
	return abx_fail(m->call, strstr(m->words, "ermission denied") ? ABX_EPERM : ABX_EIO, NULL,
			"%s: %.300s: %s", m->what, path,
			*m->words ? m->words : "it failed in the box");
}

/* The same script with a mark at its end; it has a name of its own, $0. */
static int add_mark(struct abx_move *m, struct abx_buf *script, struct abx_buf *nonce,
		    const char *ret_argv[ARGS_MAX])
{
	unsigned char random[ABX_MOVE_NONCE_BYTES / 2];
	size_t n = 0;

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return -EIO;
	for (size_t i = 0; i < sizeof(random); i++)
		abx_buf_addf(nonce, "%02x", random[i]);
	abx_buf_addf(script, "(\n%s)\nprintf '%%s%%03d' \"$0\" \"$?\"\n", m->argv[2]);
	if (nonce->failed || script->failed)
		return -ENOMEM;
	for (; m->argv[n]; n++) {
		if (n == ARGS_MAX - 1)
			return -E2BIG;
		ret_argv[n] = m->argv[n];
	}
	ret_argv[n] = NULL;
	ret_argv[2] = script->data;
	ret_argv[3] = nonce->data;
	return 0;
}

/* What the mark says is what the script ended with. */
static int32_t read_mark(struct abx_move *m, const char *nonce, struct abx_exit *e)
{
	const char *at = m->held + ABX_MOVE_NONCE_BYTES;
	uint64_t code;

	m->held[m->n_held] = '\0';
	if (m->n_held == ABX_MOVE_MARK_BYTES && strncmp(m->held, nonce, strlen(nonce)) == 0 &&
	    abx_parse_digits(&at, 255, &code) && !*at) {
		*e = (struct abx_exit){ABX_INIT(struct abx_exit), .code = (int32_t)code};
		return ABX_OK;
	}
	/* It never came so far. */
	if (e->code || e->signo || e->flags)
		return ABX_OK;
	return abx_fail(m->call, ABX_ENETWORK, "try it again",
			"%s: what came from the box is not whole: its end is missing", m->what);
}

int32_t abx_move(struct abx_move *m, const struct abx_transfer *t)
{
	abx_auto(abx_buf) struct abx_buf script = ABX_BUF_INIT(65536), nonce = ABX_BUF_INIT(128);
	const char *marked[ARGS_MAX];
	struct abx_exec req = {
		ABX_INIT(struct abx_exec), .flags = ABX_EXEC_BULK, .argv = m->argv,  .cwd = "/",
		.user = t->owner,	   .stdin_fd = m->in,	   .control_fd = -1, .io = m,
		.output = on_output,	   .gap = on_gap};
	struct abx_exit e = {ABX_INIT(struct abx_exit)};
	int32_t r;

	if (t->flags & ~(ABX_XFER_CREATE_PARENTS | ABX_XFER_NO_OWNER))
		return abx_fail(m->call, ABX_ENOTSUP, NULL, "%s: unknown flags %#x", m->what,
				t->flags);
	if (!t->path || t->path[0] != '/')
		return abx_fail(m->call, ABX_EINVAL, NULL, "%s: %s: not an absolute path", m->what,
				t->path ? t->path : "(none)");
	if (m->mark_end) {
		int failed = add_mark(m, &script, &nonce, marked);

		if (failed)
			return abx_fail_errno(m->call, -failed, "%s", m->what);
		req.argv = marked;
	}
	r = m->exec(m, &req, &e);
	if (m->failed)
		return m->failed;
	if (r == ABX_OK && m->mark_end)
		r = read_mark(m, nonce.data, &e);
	return r == ABX_OK ? judge(m, t->path, &e) : r;
}

int32_t abx_move_put_tar(struct abx_move *m, const struct abx_transfer *t)
{
	const char *const argv[] = {"/bin/sh",
				    "-c",
				    unpack_script,
				    "agentbox",
				    t->path,
				    t->flags & ABX_XFER_CREATE_PARENTS ? "p" : "",
				    t->flags & ABX_XFER_NO_OWNER ? "--same-owner" : "-o",
				    NULL};

	m->what = "put_tar";
	m->argv = argv;
	m->out = -1;
	m->in = t->fd;
	m->in_bytes = t->size_bytes;
	return abx_move(m, t);
}

int32_t abx_move_get_tar(struct abx_move *m, const struct abx_transfer *t)
{
	const char *const argv[] = {"/bin/sh", "-c", pack_script, "agentbox", t->path, NULL};

	m->what = "get_tar";
	m->argv = argv;
	m->in = -1;
	m->in_bytes = 0;
	m->out = t->fd;
	return abx_move(m, t);
}
