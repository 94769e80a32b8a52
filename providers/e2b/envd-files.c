/* SPDX-License-Identifier: MIT */
/*
 * Files into and out of a sandbox, by envd's /files.
 *
 * It writes and reads as root.  So a file goes to a name of its own in /tmp first, and a command
 * of its owner's puts it in its place: where that user may not write it stays out, and it is
 * there as a whole or not at all.
 */
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "abxsdk/fs.h"
#include "providers/e2b/envd.h"

#define QUIET_MS 60000
#define PATH_BYTES ((size_t)64 << 10)
#define HEADS_MAX 6

/* $1 path, $2 size or nothing, $3 mode, $4 "p" when parents are to be made, $5 what came. */
static const char settle_script[] =
	"p=$1; case $p in */*) d=${p%/*} ;; *) d=. ;; esac\n"
	"trap 'rm -f -- \"$5\" \"$t\"' EXIT; trap 'exit 1' HUP INT TERM; t=$5\n"
	"[ -z \"$4\" ] || mkdir -p -- \"${d:-/}\" || exit 1\n"
	"[ ! -d \"$p\" ] || { echo 'it is a directory' >&2; exit 1; }\n"
	"n=$(wc -c <\"$5\") || exit 1\n"
	"[ \"$n\" -eq \"${2:-$n}\" ] || { echo 'cut short' >&2; exit 1; }\n"
	"t=$(mktemp \"$d/.agentbox-XXXXXX\") || exit 1\n"
	"mv -f -- \"$5\" \"$t\" && chmod \"$3\" \"$t\" && mv -f -- \"$t\" \"$p\"\n";

/* What has no size may have contents all the same: /proc. */
static const char read_script[] = "exec cat -- \"$1\"\n";

int32_t e2b_move_exec(const struct abx_move *m, const struct abx_exec *req, struct abx_exit *ret)
{
	const struct e2b_mover *by = m->ctx;

	return e2b_exec_some(by->s, m->call, by->sb, req, m->in_bytes, ret);
}

static void make_path(struct abx_buf *b, const char *path, const char *user)
{
	abx_buf_adds(b, "/files?path=");
	abx_http_escape(b, path);
	if (user) {
		abx_buf_adds(b, "&username=");
		abx_http_escape(b, user);
	}
}

static const char *const *heads(const struct e2b_envd *envd, const char *more,
				const char *list[HEADS_MAX])
{
	size_t n = 0;

	for (; envd->headers[n] && n < HEADS_MAX - 2; n++)
		list[n] = envd->headers[n];
	list[n++] = more;
	list[n] = NULL;
	return list;
}

struct file {
	struct abx_session *s;
	struct abx_call *call;
	const struct abx_sandbox *sb;
	const struct abx_transfer *t;
	const struct e2b_envd *envd;
	const char *what;
	int32_t status, failed; /* by the sink */
	uint64_t got;
	char text[400], request_id[80];
};

static int32_t fail(struct file *f, int32_t r)
{
	struct abx_failure why = {ABX_INIT(struct abx_failure), .code = r, .retry_after_ms = -1,
				  .http_status = f->status};
	char text[900];

	if (f->failed)
		return f->failed;
	if (r == ABX_ECANCELED)
		return abx_fail_canceled(f->call);
	if (e2b_rpc_is_gone(r, f->status))
		return e2b_envd_gone(f->s, f->call, f->sb, f->text);
	if (f->status == 401 && strstr(f->text, "user"))
		return abx_fail(f->call, ABX_EINVAL, NULL, "user %s: not in the box",
				f->t->owner ? f->t->owner : "");
	if (f->status == 400 && strstr(f->text, "directory"))
		return abx_fail(f->call, ABX_EINVAL, NULL, "%.300s: it is a directory", f->t->path);
	if (f->status == 404)
		return abx_fail(f->call, ABX_ENOTFOUND, NULL, "%.300s: there is no such file",
				f->t->path);
	if (f->status == 507)
		why.remedy = "make room in the box";
	(void)snprintf(text, sizeof(text), "%s: %.300s: %s", f->what, f->t->path, f->text);
	why.text = text;
	why.request_id = *f->request_id ? f->request_id : NULL;
	(void)abx_plugin_host->fail(f->call, &why);
	return r;
}

static int32_t take_reply(struct file *f, int32_t r, struct abx_http_reply *reply)
{
	f->status = reply->status;
	(void)snprintf(f->text, sizeof(f->text), "%s", reply->text);
	(void)snprintf(f->request_id, sizeof(f->request_id), "%s", reply->request_id);
	if (r == ABX_OK && reply->status != 200)
		r = e2b_rest_error(reply->status, &reply->body, f->text, sizeof(f->text));
	if (f->status == 507)
		r = ABX_EIO;
	abx_http_reply_release(reply);
	return r;
}

/* What is at one place in a file can be sent again: it replaces what came of it. */
static bool again(struct file *f, int32_t r, off_t from, uint32_t attempt)
{
	const struct abx_failure why = {ABX_INIT(struct abx_failure), .code = r,
					.http_status = f->status, .retry_after_ms = -1,
					.text = f->text};

	if (from < 0 || (r != ABX_ENETWORK && r != ABX_EREMOTE && r != ABX_ERATE))
		return false;
	return abx_plugin_host->retry(f->call, &why, attempt) &&
	       lseek(f->t->fd, from, SEEK_SET) == from;
}

static int32_t send_file(struct file *f, const char *path, int64_t size)
{
	const struct abx_transfer *t = f->t;
	const char *list[HEADS_MAX];
	const struct abx_http_request req = {.method = "POST",
					     .path = path,
					     .content_type = "application/octet-stream",
					     .body_fd = t->fd,
					     .body_size = size,
					     .quiet_ms = QUIET_MS,
					     .once = true,
					     .headers = heads(f->envd, "Accept: */*", list)};
	const off_t from = size >= 0 ? lseek(t->fd, 0, SEEK_CUR) : -1;

	for (uint32_t attempt = 1;; attempt++) {
		struct abx_http_reply reply;
		int32_t r =
			take_reply(f, abx_http_do(f->envd->http, f->call, &req, &reply), &reply);

		if (r == ABX_OK || !again(f, r, from, attempt))
			return r;
	}
}

/* Half of a file is of no use, in /tmp neither. */
static void forget(struct file *f, const char *name)
{
	abx_auto(abx_buf) struct abx_buf msg = ABX_BUF_INIT(256);
	struct e2b_aside *a;
	struct e2b_rpc rpc = {.method = "filesystem.Filesystem/Remove", .body_fd = -1};

	if (e2b_aside_open(f->envd, f->call, -1, E2B_LAST_WORDS_MS, &a) != ABX_OK)
		return;
	e2b_pb_put_str(&msg, 1, name);
	rpc.http = e2b_aside_http(a);
	rpc.call = e2b_aside_call(a);
	(void)e2b_rpc_call(f->envd, &rpc, &msg);
	e2b_aside_close(a, f->call);
}

static int32_t settle(struct file *f, const char *name, int64_t size)
{
	const struct abx_transfer *t = f->t;
	char bytes[32] = "", mode[16];
	const char *const argv[] = {"/bin/sh", "-c", settle_script, "agentbox", t->path,
				    bytes,     mode, NULL,	    name,	NULL};
	const char *words[ABX_N_ELEMENTS(argv)];
	struct e2b_mover by = {f->s, f->sb};
	struct abx_move m = {.call = f->call,
			     .what = f->what,
			     .argv = words,
			     .in = -1,
			     .out = -1,
			     .exec = e2b_move_exec,
			     .ctx = &by};

	if (size >= 0)
		(void)snprintf(bytes, sizeof(bytes), "%lld", (long long)size);
	(void)snprintf(mode, sizeof(mode), "%o", t->mode ? t->mode & 07777 : 0644);
	memcpy(words, argv, sizeof(words));
	words[7] = t->flags & ABX_XFER_CREATE_PARENTS ? "p" : "";
	return abx_move(&m, t);
}

int32_t e2b_upload(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		   const struct abx_transfer *t)
{
	abx_auto(abx_buf) struct abx_buf path = ABX_BUF_INIT(PATH_BYTES);
	const int64_t size = t->size_bytes >= 0 ? t->size_bytes : abx_fs_rest(t->fd);
	struct file f = {.s = s, .call = call, .sb = sb, .t = t, .what = "upload"};
	struct e2b_envd envd;
	uint64_t random[2];
	char name[64];
	int32_t r;

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return abx_fail_errno(call, errno, "random numbers");
	(void)snprintf(name, sizeof(name), "/tmp/.agentbox-%016llx%016llx",
		       (unsigned long long)random[0], (unsigned long long)random[1]);
	make_path(&path, name, t->owner);
	r = e2b_envd_of(s, call, sb, &envd);
	if (r != ABX_OK)
		return r;
	f.envd = &envd;
	r = send_file(&f, abx_buf_str(&path), size);
	r = r == ABX_OK ? settle(&f, name, size) : fail(&f, r);
	if (r != ABX_OK)
		forget(&f, name);
	e2b_envd_release(&envd);
	return r;
}

static int32_t on_data(void *ctx, const void *data, size_t len)
{
	struct file *f = ctx;

	f->got += len;
	e2b_keep(f->s, f->call, f->sb);
	f->failed = abx_call_write(f->call, f->t->fd, f->what, data, len);
	return f->failed;
}

static int32_t read_empty(struct file *f)
{
	const char *const argv[] = {"/bin/sh", "-c", read_script, "agentbox", f->t->path, NULL};
	struct e2b_mover by = {f->s, f->sb};
	struct abx_move m = {.call = f->call,
			     .what = f->what,
			     .argv = argv,
			     .in = -1,
			     .out = f->t->fd,
			     .exec = e2b_move_exec,
			     .ctx = &by};

	return abx_move(&m, f->t);
}

int32_t e2b_download(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		     const struct abx_transfer *t)
{
	abx_auto(abx_buf) struct abx_buf path = ABX_BUF_INIT(PATH_BYTES);
	struct file f = {.s = s, .call = call, .sb = sb, .t = t, .what = "download"};
	struct abx_http_request req = {ABX_HTTP_REQUEST_INIT, .method = "GET", .quiet_ms = QUIET_MS,
				       .sink = on_data, .sink_ctx = &f};
	const char *list[HEADS_MAX];
	struct abx_http_reply reply;
	struct e2b_envd envd;
	int32_t r = e2b_envd_of(s, call, sb, &envd);

	if (r != ABX_OK)
		return r;
	f.envd = &envd;
	make_path(&path, t->path, NULL);
	req.path = abx_buf_str(&path);
	req.headers = heads(&envd, "Accept-Encoding: identity", list);
	r = take_reply(&f, abx_http_do(envd.http, call, &req, &reply), &reply);
	if (r != ABX_OK)
		r = fail(&f, r);
	else if (!f.got)
		r = read_empty(&f);
	e2b_envd_release(&envd);
	return r;
}
