/* SPDX-License-Identifier: MIT */
/*
 * The request: records of a tag, a u32 length and so many bytes with a NUL behind them.
 * Numbers are decimal text.
 */
#include <string.h>

#include "abxsdk/number.h"
#include "core/ctl/wire.h"

static void put(struct abx_buf *to, char tag, const char *s)
{
	const size_t len = strlen(s);
	const unsigned char head[5] = {(unsigned char)tag, (unsigned char)len,
				       (unsigned char)(len >> 8), (unsigned char)(len >> 16),
				       (unsigned char)(len >> 24)};

	abx_buf_add(to, head, sizeof(head));
	abx_buf_add(to, s, len + 1);
}

static void put_number(struct abx_buf *to, char tag, uint32_t v)
{
	char text[16];

	(void)snprintf(text, sizeof(text), "%u", v);
	put(to, tag, text);
}

int abx_wire_encode_request(const struct abx_wire_request *r, struct abx_buf *to)
{
	put_number(to, 'f', r->flags);
	put_number(to, 'r', r->rows);
	put_number(to, 'c', r->cols);
	put_number(to, 't', r->timeout_ms);
	put_number(to, 'g', r->grace_ms);
	put_number(to, 'b', r->beat_ms);
	put_number(to, 's', r->silence_ms);
	if (r->id)
		put(to, 'i', r->id);
	if (r->cwd)
		put(to, 'd', r->cwd);
	if (r->user)
		put(to, 'u', r->user);
	for (size_t i = 0; i < r->n_argv; i++)
		put(to, 'a', r->argv[i]);
	for (size_t i = 0; i < r->n_env; i++)
		put(to, 'e', r->env[i]);
	return to->failed ? -E2BIG : 0;
}

static bool number(const char *s, uint32_t *ret)
{
	uint64_t v;

	if (!abx_parse_u64(s, UINT32_MAX, &v))
		return false;
	*ret = (uint32_t)v;
	return true;
}

/* The next record, or NULL at the end and for one that is cut short. */
static char *next(char **at, const char *end, char *ret_tag)
{
	char *s = *at + 5;
	uint32_t len;

	if (end - *at < 6)
		return NULL;
	len = abx_wire_u32((unsigned char *)*at + 1);
	if (len >= (size_t)(end - s) || s[len] || memchr(s, '\0', len))
		return NULL;
	*ret_tag = **at;
	*at = s + len + 1;
	return s;
}

static bool take(struct abx_wire_request *r, char tag, char *s)
{
	switch (tag) {
	case 'f':
		return number(s, &r->flags);
	case 'r':
		return number(s, &r->rows);
	case 'c':
		return number(s, &r->cols);
	case 't':
		return number(s, &r->timeout_ms);
	case 'g':
		return number(s, &r->grace_ms);
	case 'b':
		return number(s, &r->beat_ms);
	case 's':
		return number(s, &r->silence_ms);
	case 'i':
		r->id = s;
		return !strchr(s, '/') && *s && *s != '.' && strlen(s) < 128;
	case 'd':
		r->cwd = s;
		return true;
	case 'u':
		r->user = s;
		return true;
	case 'a':
		r->argv[r->n_argv++] = s;
		return true;
	case 'e':
		r->env[r->n_env++] = s;
		return strchr(s, '=') && *s != '=';
	default:
		return true; /* of a later version */
	}
}

int abx_wire_decode_request(char *data, size_t len, struct abx_wire_request *ret)
{
	char *const end = data + len, *at = data, *s;
	size_t n = 0;
	char tag;

	memset(ret, 0, sizeof(*ret));
	while (next(&at, end, &tag))
		n++;
	if (at != end)
		return -EPROTO;
	ret->argv = calloc(n + 1, sizeof(*ret->argv));
	ret->env = calloc(n + 1, sizeof(*ret->env));
	if (!ret->argv || !ret->env)
		return -ENOMEM;
	at = data;
	while ((s = next(&at, end, &tag)))
		if (!take(ret, tag, s))
			return -EPROTO;
	return ret->n_argv && ret->id ? 0 : -EPROTO;
}
