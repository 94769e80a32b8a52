/* SPDX-License-Identifier: MIT */
/* Files in and out of a box: the work is done inside, as the user whose files they are. */
#include "providers/local/local.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* Run a helper to its end.  It has written to, or read from, the caller's descriptor. */
static int32_t run_helper(struct abx_session *s, struct abx_call *call, const char *id,
			  struct local_helper_args *a, uint32_t *ret_kind)
{
	struct local_box b = LOCAL_BOX_INIT;
	struct local_run run = LOCAL_RUN_INIT;
	struct local_helper h = LOCAL_HELPER_INIT;
	struct lb_msg m = {.kind = 0};
	int32_t r = local_box_enter(s, call, id, &b, &run, a);

	if (r == ABX_OK)
		r = local_helper_start(s, call, a, &h);
	if (r == ABX_OK) {
		r = local_helper_next(call, &h, &m);
		if (r == ABX_OK)
			local_helper_wait(&h);
		else
			local_helper_kill(&h);
		*ret_kind = m.kind;
	}
	local_run_release(&run);
	local_box_release(&b);
	return r;
}

/* By the small helper as far as it gets: nearly always to the end. */
static int32_t put_tar(struct abx_session *s, struct abx_call *call, const char *id,
		       struct local_helper_args *a)
{
	abx_autoclose int rest = memfd_create("agentbox-rest", MFD_CLOEXEC);
	uint32_t kind = 0;
	int32_t r;

	if (rest < 0)
		return abx_fail_errno(call, errno, "transfer: memory");
	a->program = s->box_helper;
	a->fd_out = rest;
	r = run_helper(s, call, id, a, &kind);
	if (r != ABX_OK || kind != LB_MSG_MORE)
		return r;
	if (lseek(rest, 0, SEEK_SET) < 0)
		return abx_fail_errno(call, errno, "transfer: memory");
	a->program = s->tar_helper;
	a->req.flags |= LB_F_REST;
	return run_helper(s, call, id, a, &kind);
}

static int32_t transfer(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
			const struct abx_transfer *t, enum lb_op op)
{
	const uint32_t known = ABX_XFER_CREATE_PARENTS | ABX_XFER_NO_OWNER;
	bool in = op == LB_OP_UPLOAD || op == LB_OP_PUT_TAR;
	bool tar = op == LB_OP_PUT_TAR || op == LB_OP_GET_TAR;
	struct local_helper_args a = {LOCAL_HELPER_ARGS_INIT, .req.op = op};
	uint32_t kind;
	struct stat st;

	if (t->flags & ~known)
		return abx_fail(call, ABX_ENOTSUP, NULL, "transfer: unknown flags %#x", t->flags);
	if (!t->path || t->path[0] != '/')
		return abx_fail(call, ABX_EINVAL, NULL, "transfer: %s: not an absolute path",
				t->path ? t->path : "(none)");
	if (fstat(t->fd, &st) < 0 || S_ISDIR(st.st_mode))
		return abx_fail(call, ABX_EINVAL, NULL, "transfer: no stream to %s",
				in ? "read" : "write");
	a.program = tar ? s->tar_helper : s->box_helper;
	a.path = t->path;
	a.user = t->owner;
	a.req.size_bytes = t->size_bytes;
	a.req.file_mode = t->mode;
	if (t->flags & ABX_XFER_CREATE_PARENTS)
		a.req.flags |= LB_F_CREATE_PARENTS;
	if (t->flags & ABX_XFER_NO_OWNER)
		a.req.flags |= LB_F_KEEP_OWNER;
	if (in)
		a.fd_in = t->fd;
	else
		a.fd_out = t->fd;
	/* The other one counts bytes and knows owners. */
	if (op == LB_OP_PUT_TAR && t->size_bytes < 0 && !(t->flags & ABX_XFER_NO_OWNER))
		return put_tar(s, call, sb->id, &a);
	return run_helper(s, call, sb->id, &a, &kind);
}

int32_t local_upload(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		     const struct abx_transfer *t)
{
	return transfer(s, call, sb, t, LB_OP_UPLOAD);
}

int32_t local_download(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		       const struct abx_transfer *t)
{
	return transfer(s, call, sb, t, LB_OP_DOWNLOAD);
}

int32_t local_put_tar(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		      const struct abx_transfer *t)
{
	return transfer(s, call, sb, t, LB_OP_PUT_TAR);
}

int32_t local_get_tar(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		      const struct abx_transfer *t)
{
	return transfer(s, call, sb, t, LB_OP_GET_TAR);
}

/* Emit the whole entries that `b` holds; what is left of it moves to the front. */
static int32_t emit_entries(struct abx_call *call, char *b, size_t *len)
{
	size_t at = 0;

	while (*len - at >= sizeof(struct lb_entry)) {
		struct lb_entry e;
		char name[NAME_MAX + 1];
		struct abx_file f = {ABX_INIT(struct abx_file), .name = name};
		int32_t r;

		memcpy(&e, b + at, sizeof(e));
		if (e.name_len == 0 || e.name_len > NAME_MAX)
			return abx_fail(call, ABX_EPROTO, NULL, "list: nonsense from the box");
		if (*len - at - sizeof(e) < e.name_len)
			break;
		memcpy(name, b + at + sizeof(e), e.name_len);
		name[e.name_len] = '\0';
		f.mode = e.mode;
		f.size_bytes = e.size_bytes;
		f.mtime_s = e.mtime_s;
		r = abx_plugin_host->emit_file(call, &f);
		if (r)
			return r;
		at += sizeof(e) + e.name_len;
	}
	memmove(b, b + at, *len - at);
	*len -= at;
	return ABX_OK;
}

static int32_t read_entries(struct abx_call *call, int fd)
{
	char b[65536];
	size_t len = 0;

	for (;;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		int32_t r = abx_call_poll(call, &p, 1, -1);
		ssize_t n;

		if (r != ABX_OK)
			return r;
		n = read(fd, b + len, sizeof(b) - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return abx_fail_errno(call, errno, "list");
		if (n == 0)
			return len ? abx_fail(call, ABX_EPROTO, NULL, "list: cut short") : ABX_OK;
		len += (size_t)n;
		r = emit_entries(call, b, &len);
		if (r != ABX_OK)
			return r;
	}
}

int32_t local_list_files(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
			 const char *dir)
{
	struct local_helper_args a = {LOCAL_HELPER_ARGS_INIT, .req.op = LB_OP_LIST};
	struct local_box b = LOCAL_BOX_INIT;
	struct local_run run = LOCAL_RUN_INIT;
	struct local_helper h = LOCAL_HELPER_INIT;
	struct lb_msg m;
	int p[2] = {-1, -1};
	int32_t r;

	if (!dir || dir[0] != '/')
		return abx_fail(call, ABX_EINVAL, NULL, "list: not an absolute path");
	if (pipe2(p, O_CLOEXEC) < 0)
		return abx_fail_errno(call, errno, "list: pipe");
	a.program = s->box_helper;
	a.path = dir;
	r = local_box_enter(s, call, sb->id, &b, &run, &a);
	a.fd_out = p[1];
	if (r == ABX_OK)
		r = local_helper_start(s, call, &a, &h);
	abx_cleanup_close(&p[1]);
	if (r == ABX_OK) {
		r = read_entries(call, p[0]);
		if (r == ABX_OK)
			r = local_helper_next(call, &h, &m);
		if (r == ABX_OK)
			local_helper_wait(&h);
		else
			local_helper_kill(&h);
	}
	abx_cleanup_close(&p[0]);
	local_run_release(&run);
	local_box_release(&b);
	return r;
}
