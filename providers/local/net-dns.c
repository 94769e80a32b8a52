/* SPDX-License-Identifier: MIT */
/* The little of DNS that a box needs. */
#include "providers/local/net-dns.h"

#include <string.h>
#include <strings.h>

#define HEADER_BYTES 12
#define FLAG_RESPONSE 0x8000
#define FLAG_OPCODE 0x7800
#define FLAG_RECURSION 0x0100
#define FLAG_AVAILABLE 0x0080
#define RCODE_MASK 0x000f
#define CLASS_IN 1
#define TYPE_OPT 41
#define POINTERS_MAX 32
#define CNAMES_MAX 16
#define RECORDS_MAX 256
#define TTL_MAX_S 86400

struct reader {
	const uint8_t *msg;
	size_t len, at;
	bool bad;
};

static uint16_t read16(struct reader *r)
{
	uint16_t v;

	if (r->bad || r->len - r->at < 2) {
		r->bad = true;
		return 0;
	}
	v = (uint16_t)(r->msg[r->at] << 8 | r->msg[r->at + 1]);
	r->at += 2;
	return v;
}

static uint32_t read32(struct reader *r)
{
	uint32_t high = read16(r);

	return high << 16 | read16(r);
}

/* A dot, a NUL or a blank within a label would be another name once it is text. */
static bool is_plain(const uint8_t *label, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (label[i] <= ' ' || label[i] >= 127 || label[i] == '.')
			return false;
	return true;
}

/* A name at r->at, which ends up behind it.  -1 when it is malformed. */
static int read_name(struct reader *r, char name[NET_DNS_NAME_MAX])
{
	size_t at = r->at, n = 0;
	bool jumped = false;

	for (int pointers = 0; !r->bad && at < r->len;) {
		uint8_t c = r->msg[at++];

		if (c >= 0xc0) {
			if (at >= r->len || ++pointers > POINTERS_MAX)
				break;
			if (!jumped)
				r->at = at + 1;
			jumped = true;
			at = (size_t)(c & 0x3f) << 8 | r->msg[at];
			continue;
		}
		if (c == 0) {
			if (!jumped)
				r->at = at;
			name[n ? n - 1 : 0] = '\0';
			return (int)(n ? n - 1 : 0);
		}
		if (c > 63 || r->len - at < c || n + c + 1 >= NET_DNS_NAME_MAX ||
		    !is_plain(r->msg + at, c))
			break;
		memcpy(name + n, r->msg + at, c);
		n += c;
		name[n++] = '.';
		at += c;
	}
	r->bad = true;
	return -1;
}

bool net_dns_read_question(const uint8_t *msg, size_t len, struct net_question *ret)
{
	struct reader r = {.msg = msg, .len = len};
	struct net_question q = {.id = read16(&r)};
	uint16_t flags = read16(&r), questions = read16(&r), answers = read16(&r);
	int n;

	r.at += 4; /* what comes behind the question does not matter */
	if (r.bad || len < HEADER_BYTES || (flags & (FLAG_RESPONSE | FLAG_OPCODE)) ||
	    questions != 1 || answers != 0)
		return false;
	n = read_name(&r, q.name);
	q.type = read16(&r);
	q.class = read16(&r);
	if (r.bad)
		return false;
	q.name_len = (size_t)n;
	q.recursion = flags & FLAG_RECURSION;
	*ret = q;
	return true;
}

struct writer {
	uint8_t *out;
	size_t size, at;
	bool bad;
};

static void write16(struct writer *w, uint32_t v)
{
	if (w->bad || w->size - w->at < 2) {
		w->bad = true;
		return;
	}
	w->out[w->at++] = (uint8_t)(v >> 8);
	w->out[w->at++] = (uint8_t)v;
}

static void write32(struct writer *w, uint32_t v)
{
	write16(w, v >> 16);
	write16(w, v & 0xffff);
}

static void write_name(struct writer *w, const char *name)
{
	while (*name && !w->bad) {
		size_t n = strcspn(name, ".");

		if (w->size - w->at < n + 2) {
			w->bad = true;
			return;
		}
		w->out[w->at++] = (uint8_t)n;
		memcpy(w->out + w->at, name, n);
		w->at += n;
		name += n + (name[n] == '.');
	}
	if (w->bad || w->at >= w->size)
		w->bad = true;
	else
		w->out[w->at++] = 0;
}

static void write_header(struct writer *w, uint16_t id, uint32_t flags, size_t answers,
			 size_t additional)
{
	write16(w, id);
	write16(w, flags);
	write16(w, 1);
	write16(w, (uint32_t)answers);
	write16(w, 0);
	write16(w, (uint32_t)additional);
}

size_t net_dns_write_answer(const struct net_question *q, const struct net_answer *a, uint8_t *out,
			    size_t size)
{
	struct writer w = {.out = out, .size = size};
	uint32_t flags = FLAG_RESPONSE | FLAG_AVAILABLE | (q->recursion ? FLAG_RECURSION : 0u);

	write_header(&w, q->id, flags | (uint32_t)a->rcode, a->n, 0);
	write_name(&w, q->name);
	write16(&w, q->type);
	write16(&w, q->class);
	for (size_t i = 0; i < a->n; i++) {
		write16(&w, 0xc000 | HEADER_BYTES); /* the name of the question */
		write16(&w, NET_DNS_A);
		write16(&w, CLASS_IN);
		write32(&w, a->ttl_s);
		write16(&w, 4);
		write32(&w, a->addr[i]);
	}
	return w.bad ? 0 : w.at;
}

size_t net_dns_write_question(const struct net_question *q, uint16_t id, uint8_t *out, size_t size)
{
	struct writer w = {.out = out, .size = size};

	write_header(&w, id, FLAG_RECURSION, 0, 1);
	write_name(&w, q->name);
	write16(&w, NET_DNS_A);
	write16(&w, CLASS_IN);
	/* An OPT record: room for long answers. */
	write_name(&w, "");
	write16(&w, TYPE_OPT);
	write16(&w, NET_DNS_MAX_BYTES);
	write32(&w, 0);
	write16(&w, 0);
	return w.bad ? 0 : w.at;
}

/* One pass over the answers for what is said of `name`: its addresses, or in `name` what it is
 * another name of.  True for the latter. */
static bool scan(struct reader r, uint16_t records, char name[NET_DNS_NAME_MAX],
		 struct net_answer *a)
{
	for (uint16_t i = 0; i < records && i < RECORDS_MAX; i++) {
		char owner[NET_DNS_NAME_MAX], target[NET_DNS_NAME_MAX];
		uint16_t type, class, bytes;
		uint32_t ttl;
		size_t end;

		(void)read_name(&r, owner);
		type = read16(&r);
		class = read16(&r);
		ttl = read32(&r);
		bytes = read16(&r);
		if (r.bad || r.len - r.at < bytes)
			return false;
		end = r.at + bytes;
		if (class == CLASS_IN && strcasecmp(owner, name) == 0) {
			if ((type == NET_DNS_A || type == NET_DNS_CNAME) && ttl < a->ttl_s)
				a->ttl_s = ttl;
			if (type == NET_DNS_CNAME && read_name(&r, target) >= 0) {
				memcpy(name, target, NET_DNS_NAME_MAX);
				return true;
			}
			if (type == NET_DNS_A && bytes == 4 && a->n < NET_DNS_ADDRESSES_MAX)
				a->addr[a->n++] = read32(&r);
		}
		r.at = end;
	}
	return false;
}

bool net_dns_read_answer(const uint8_t *msg, size_t len, const struct net_question *q, uint16_t id,
			 struct net_answer *ret)
{
	struct reader r = {.msg = msg, .len = len};
	struct net_answer a = {.ttl_s = TTL_MAX_S};
	char name[NET_DNS_NAME_MAX] = "";
	bool same_id = read16(&r) == id;
	uint16_t flags = read16(&r), questions = read16(&r), records = read16(&r);

	r.at += 4;
	if (r.bad || len < HEADER_BYTES || !same_id || !(flags & FLAG_RESPONSE) || questions != 1)
		return false;
	(void)read_name(&r, name);
	if (read16(&r) != NET_DNS_A || read16(&r) != CLASS_IN || r.bad ||
	    strcasecmp(name, q->name) != 0)
		return false;
	a.rcode = flags & RCODE_MASK;
	for (int i = 0; i < CNAMES_MAX; i++)
		if (!scan(r, records, name, &a))
			break;
	*ret = a;
	return true;
}
