/* SPDX-License-Identifier: MIT */
/*
 * Layers: what boxes have written before, shared by whoever was made over it.
 *
 * A box is made over the layers that box.json names.  chain.json takes the place of that
 * once what the box wrote itself has become a layer: by the rename of its writable layer,
 * which is announced here as "sealing" before it is done.  So the chain is right at any
 * moment: that layer belongs to it from when its directory is there.
 */
#include "providers/local/local.h"

#include <fcntl.h>
#include <string.h>

#include "abxsdk/fs.h"
#include "abxsdk/json.h"

int local_chain_parse(const char *text, struct local_chain *ret)
{
	struct local_chain c = {.n = 0};

	while (text && *text) {
		size_t n = strspn(text, "0123456789abcdef");

		if (n != LOCAL_LID_SIZE - 1 || (text[n] && text[n] != ' '))
			return -EPROTO;
		if (c.n == LOCAL_CHAIN_MAX)
			return -E2BIG;
		memcpy(c.lid[c.n++], text, n);
		text += text[n] ? n + 1 : n;
	}
	*ret = c;
	return 0;
}

int local_chain_text(const struct local_chain *c, struct abx_buf *b)
{
	for (size_t i = 0; i < c->n; i++)
		abx_buf_addf(b, "%s%s", i ? " " : "", c->lid[i]);
	return b->failed ? -ENOMEM : 0;
}

static int read_file(const struct abx_session *s, const cJSON *doc, bool announced,
		     struct local_chain *ret)
{
	struct local_chain c, sealing = {.n = 0};
	const char *layers, *top;
	char path[64];
	int r = abx_json_str(doc, "layers", LOCAL_CHAIN_MAX * LOCAL_LID_SIZE, &layers);

	if (r == 0)
		r = abx_json_str(doc, "sealing", LOCAL_LID_SIZE, &top);
	if (r == 0)
		r = local_chain_parse(layers, &c);
	if (r == 0)
		r = local_chain_parse(top, &sealing);
	if (r == 0 && sealing.n) {
		(void)snprintf(path, sizeof(path), "layers/%s", sealing.lid[0]);
		if (announced || faccessat(s->store_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
			r = local_chain_push(&c, sealing.lid[0]);
	}
	if (r == 0)
		*ret = c;
	return r;
}

int local_chain_push(struct local_chain *c, const char *lid)
{
	if (c->n == LOCAL_CHAIN_MAX)
		return -E2BIG;
	memmove(c->lid[1], c->lid[0], c->n * LOCAL_LID_SIZE);
	(void)snprintf(c->lid[0], LOCAL_LID_SIZE, "%s", lid);
	c->n++;
	return 0;
}

static int read_chain(const struct abx_session *s, const struct local_box *b, bool announced,
		      struct local_chain *ret)
{
	cJSON *doc = NULL;
	int r = local_read_json(b->dir_fd, "chain.json", &doc);

	if (r == -ENOENT)
		return local_chain_parse(b->layers, ret);
	if (r == 0)
		r = read_file(s, doc, announced, ret);
	cJSON_Delete(doc);
	return r;
}

int local_chain_read(const struct abx_session *s, const struct local_box *b,
		     struct local_chain *ret)
{
	return read_chain(s, b, false, ret);
}

int local_chain_named(const struct abx_session *s, const struct local_box *b,
		      struct local_chain *ret)
{
	return read_chain(s, b, true, ret);
}

int local_chain_write(const struct local_box *b, const struct local_chain *chain,
		      const char *sealing)
{
	abx_auto(abx_buf) struct abx_buf text = ABX_BUF_INIT(4096);
	int r;

	abx_buf_adds(&text, "{\"layers\": \"");
	(void)local_chain_text(chain, &text);
	abx_buf_addf(&text, "\", \"sealing\": \"%s\"}\n", sealing);
	r = text.failed ? -ENOMEM : 0;
	/* Before the rename that it speaks of, on disk too. */
	if (r == 0)
		r = abx_fs_write_atomic(b->dir_fd, "chain.json", text.data, text.len, 0600, true);
	return r;
}
