/* SPDX-License-Identifier: MIT */
/* Contents from a box by their git ids. */
#include "core/seed/back-fetch.h"

#include <string.h>

#include "core/seed/git.h"
#include "core/seed/seed-script.h"
#include "core/util/parse.h"
#include "core/util/sha1.h"

#define REQUEST_MAX ((size_t)64 << 20)
/* "<id> blob <size>" */
#define HEAD_MAX 80

struct reader {
	const struct abx_fetch *fetch;
	struct abx_err *err;
	size_t i; /* which one comes */
	bool refused;
	enum { HEAD, BODY, TAIL } state;
	char head[HEAD_MAX];
	size_t head_len;
	uint64_t left;
	struct abx_sha1 hash;
};

static int nonsense(struct reader *r)
{
	return abx_err_set(r->err, ABX_EPROTO, "bring back: the box's contents are not understood");
}

static int take_head(struct reader *r)
{
	const char *id = r->fetch->ids[r->i];
	const size_t id_len = strlen(id);

	if (r->head_len < id_len + 7 || memcmp(r->head, id, id_len) != 0 ||
	    memcmp(r->head + id_len, " blob ", 6) != 0 ||
	    !abx_parse_u64(r->head + id_len + 6, (uint64_t)INT64_MAX, &r->left))
		return nonsense(r);
	if (r->fetch->refuse && r->fetch->refuse(r->fetch->ctx, r->i, r->left)) {
		r->refused = true;
		return ABX_ECANCELED;
	}
	abx_blob_id_init(&r->hash, r->left);
	r->state = BODY;
	return r->fetch->begin(r->fetch->ctx, r->i, r->left, r->err);
}

static int take_end(struct reader *r)
{
	char id[ABX_SHA1_HEX_BYTES];

	abx_sha1_hex(&r->hash, id);
	if (strcmp(id, r->fetch->ids[r->i]) != 0)
		return abx_err_set(r->err, ABX_EPROTO,
				   "bring back: the box gives another content than it names");
	r->state = HEAD;
	r->head_len = 0;
	return r->fetch->end(r->fetch->ctx, r->i++, r->err);
}

/* Takes at least one byte, the number in *ret_used. */
static int take_some(struct reader *r, const char *data, size_t len, size_t *ret_used)
{
	size_t n = 1;
	int result;

	*ret_used = 1;
	if (r->i == r->fetch->len)
		return nonsense(r);
	switch (r->state) {
	case HEAD:
		if (data[0] == '\n') {
			r->head[r->head_len] = '\0';
			return take_head(r);
		}
		if (r->head_len + 1 >= sizeof(r->head) || !data[0])
			return nonsense(r);
		r->head[r->head_len++] = data[0];
		return 0;
	case BODY:
		n = len < r->left ? len : (size_t)r->left;
		if (!n) {
			r->state = TAIL;
			*ret_used = 0;
			return 0;
		}
		abx_sha1_update(&r->hash, data, n);
		result = r->fetch->data(r->fetch->ctx, r->i, data, n, r->err);
		r->left -= n;
		*ret_used = n;
		return result;
	case TAIL:
	default:
		return data[0] == '\n' ? take_end(r) : nonsense(r);
	}
}

static int on_output(void *ctx, const void *data, size_t len)
{
	struct reader *r = ctx;
	const char *at = data;

	while (len) {
		size_t used;
		const int result = take_some(r, at, len, &used);

		if (result < 0)
			return result;
		at += used;
		len -= used;
	}
	return 0;
}

/* Those from *at on, which becomes the first one that has not come. */
static int fetch_some(const struct abx_box_io *io, const char *dir, const char *tmp,
		      const struct abx_fetch *fetch, size_t *at, struct abx_err *err)
{
	const char *const args[] = {dir, NULL};
	abx_auto(abx_buf) struct abx_buf request = ABX_BUF_INIT(REQUEST_MAX);
	abx_auto(abx_buf) struct abx_buf said = ABX_BUF_INIT(1 << 20);
	struct reader reader = {.fetch = fetch, .err = err, .i = *at, .hash = ABX_SHA1_INIT};
	struct abx_box_script script = {"bring back", abx_script_contents, args,
					-1,	      on_output,	   &reader};
	abx_autoclose int fd = -1;
	int code = 0, r;

	for (size_t i = *at; i < fetch->len; i++) {
		abx_buf_adds(&request, fetch->ids[i]);
		abx_buf_addc(&request, '\n');
	}
	if (request.failed)
		return abx_err_set(err, ABX_ENOMEM, "bring back: too many changes");
	script.stdin_fd = fd = abx_spool_bytes(tmp, request.data, request.len);
	if (fd < 0)
		return abx_err_errno(err, -fd, "write in '%s'", tmp);
	r = abx_box_run(io, &script, &code, &said, err);
	abx_sha1_release(&reader.hash);
	*at = reader.i;
	if (reader.refused) {
		(*at)++;
		return 0;
	}
	if (r == 0 && code)
		return abx_box_script_error("bring back", code, &said, err);
	if (r == 0 && (reader.i != fetch->len || reader.state != HEAD || reader.head_len))
		return abx_err_set(err, ABX_EPROTO, "bring back: the box's contents break off");
	return r;
}

int abx_back_fetch(const struct abx_box_io *io, const char *dir, const char *tmp,
		   const struct abx_fetch *fetch, struct abx_err *err)
{
	size_t at = 0;
	int r = fetch->len ? abx_sha1_open(err) : 0;

	for (int trips = 0; r == 0 && at < fetch->len; trips++) {
		if (trips > ABX_FETCH_REFUSALS_MAX)
			return abx_err_set(err, ABX_EPROTO,
					   "bring back: the box gives more than %d files that are "
					   "too large",
					   ABX_FETCH_REFUSALS_MAX);
		r = fetch_some(io, dir, tmp, fetch, &at, err);
	}
	return r;
}
