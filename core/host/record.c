/* SPDX-License-Identifier: MIT */
/* The structs of the ABI, as data: checking and copying them. */
#include "core/host/record.h"

#include <stdalign.h>
#include <string.h>

#include "core/host/text.h"
#include "core/util/mem.h"

#define RECORD_MAX_BYTES 512
#define MAX_PAIRS 1024
#define MAX_STRINGS 65536
#define MAX_MOUNTS 256
#define MAX_STEPS 4096

/*
 * The memory behind a copy is one block.  It is measured in a first walk and filled in a
 * second one, where `base` is set.  A provider that changes its memory meanwhile only makes
 * the second walk fail, for it never passes `size`.
 */
struct pack {
	char *base;
	size_t at, size;
	bool overrun;
	const struct abx_record_type *type;
	struct abx_err *err;
};

static void *pack_take(struct pack *p, size_t len, size_t align)
{
	size_t at = (p->at + align - 1) / align * align;

	p->at = at + len;
	if (!p->base)
		return NULL;
	if (p->at > p->size) {
		p->overrun = true;
		return NULL;
	}
	return p->base + at;
}

static int broken(const struct pack *p, const struct abx_field *f, const char *why)
{
	return abx_err_set(p->err, ABX_EPROTO, "%s: member '%s' %s", p->type->name, f->name, why);
}

static int pack_str(struct pack *p, const struct abx_field *f, const char *s, const void **ret)
{
	size_t len = s ? strnlen(s, f->max + 1) : 0;
	char *copy;

	if (!len && (f->flags & ABX_FIELD_REQUIRED))
		return broken(p, f, "is missing");
	if (!s) {
		*ret = NULL;
		return 0;
	}
	if (len > f->max && !(f->flags & ABX_FIELD_CUT))
		return broken(p, f, "is too long");
	if (len > f->max)
		len = f->max;
	copy = pack_take(p, len + 1, 1);
	if (copy) {
		memcpy(copy, s, len);
		copy[len] = '\0';
		if ((f->flags & ABX_FIELD_LINE) && !abx_text_is_line(copy))
			return broken(p, f, "has characters that are not allowed");
	}
	*ret = copy;
	return 0;
}

static int pack_kv(struct pack *p, const struct abx_field *f, const struct abx_kv *kv, uint32_t n,
		   const void **ret)
{
	static const size_t max_key = 256;
	struct abx_field key = *f;
	struct abx_kv *copy;
	int r = 0;

	key.max = max_key;
	key.flags = ABX_FIELD_REQUIRED;
	if (n > MAX_PAIRS)
		return broken(p, f, "has too many pairs");
	if (n && !kv)
		return broken(p, f, "is missing");
	copy = pack_take(p, n * sizeof(*copy), alignof(struct abx_kv));
	for (uint32_t i = 0; i < n && r == 0; i++) {
		const void *name = NULL, *value = NULL;

		r = pack_str(p, &key, kv[i].key, &name);
		if (r == 0 && !kv[i].value)
			r = broken(p, f, "has a pair without a value");
		if (r == 0)
			r = pack_str(p, f, kv[i].value, &value);
		if (copy) {
			copy[i].key = name;
			copy[i].value = value;
		}
	}
	*ret = copy;
	return r;
}

static int pack_strv(struct pack *p, const struct abx_field *f, const char *const *list,
		     const void **ret)
{
	const char **copy;
	size_t n = 0;
	int r = 0;

	*ret = NULL;
	if (!list)
		return f->flags & ABX_FIELD_REQUIRED ? broken(p, f, "is missing") : 0;
	while (n <= MAX_STRINGS && list[n])
		n++;
	if (n > MAX_STRINGS)
		return broken(p, f, "has too many strings");
	if (!n && (f->flags & ABX_FIELD_REQUIRED))
		return broken(p, f, "is empty");
	copy = pack_take(p, (n + 1) * sizeof(*copy), alignof(char *));
	for (size_t i = 0; i < n && r == 0; i++) {
		struct abx_field item = *f;
		const void *s = NULL;

		item.flags = 0;
		r = pack_str(p, &item, list[i], &s);
		if (copy)
			copy[i] = s;
	}
	if (copy)
		copy[n] = NULL;
	*ret = copy;
	return r;
}

static int pack_mounts(struct pack *p, const struct abx_field *f,
		       const struct abx_mount *const *list, uint32_t n, const void **ret)
{
	const struct abx_mount **copy;
	int r = 0;

	if (n > MAX_MOUNTS)
		return broken(p, f, "has too many mounts");
	if (n && !list)
		return broken(p, f, "is missing");
	copy = pack_take(p, n * sizeof(*copy), alignof(void *));
	for (uint32_t i = 0; i < n && r == 0; i++) {
		struct abx_mount *m = pack_take(p, sizeof(*m), alignof(struct abx_mount));
		const void *source = NULL, *target = NULL;

		r = pack_str(p, f, list[i]->source, &source);
		if (r == 0)
			r = pack_str(p, f, list[i]->target, &target);
		if (m)
			*m = (struct abx_mount){ABX_INIT(struct abx_mount), list[i]->flags, source,
						target};
		if (copy)
			copy[i] = m;
	}
	*ret = copy;
	return r;
}

static int pack_u16(struct pack *p, const struct abx_field *f, const uint16_t *list, uint32_t n,
		    const void **ret)
{
	uint16_t *copy;

	if (n > UINT16_MAX)
		return broken(p, f, "has too many numbers");
	if (n && !list)
		return broken(p, f, "is missing");
	copy = pack_take(p, n * sizeof(*copy), alignof(uint16_t));
	if (copy && n)
		memcpy(copy, list, n * sizeof(*copy));
	*ret = copy;
	return 0;
}

static int pack_steps(struct pack *p, const struct abx_field *f, const struct abx_build_step *list,
		      uint32_t n, const void **ret)
{
	struct abx_field op = *f;
	struct abx_build_step *copy;
	int r = 0;

	op.flags = ABX_FIELD_REQUIRED;
	if (n > MAX_STEPS)
		return broken(p, f, "has too many steps");
	if (n && !list)
		return broken(p, f, "is missing");
	copy = pack_take(p, n * sizeof(*copy), alignof(struct abx_build_step));
	for (uint32_t i = 0; i < n && r == 0; i++) {
		const void *name = NULL, *args = NULL;

		r = pack_str(p, &op, list[i].op, &name);
		if (r == 0)
			r = pack_strv(p, f, list[i].args, &args);
		if (copy) {
			copy[i].op = name;
			copy[i].args = args;
		}
	}
	*ret = copy;
	return r;
}

static int pack_field(struct pack *p, const struct abx_field *f, const char *src, char *dst)
{
	const void *from, *to = NULL;
	uint32_t n = 0;
	int r = 0;

	memcpy(&from, src + f->offset, sizeof(from));
	if (f->count_offset)
		memcpy(&n, src + f->count_offset, sizeof(n));
	switch ((enum abx_field_kind)f->kind) {
	case ABX_FIELD_STR:
		r = pack_str(p, f, from, &to);
		break;
	case ABX_FIELD_KV:
		r = pack_kv(p, f, from, n, &to);
		break;
	case ABX_FIELD_STRV:
		r = pack_strv(p, f, from, &to);
		break;
	case ABX_FIELD_MOUNTS:
		r = pack_mounts(p, f, from, n, &to);
		break;
	case ABX_FIELD_U16:
		r = pack_u16(p, f, from, n, &to);
		break;
	case ABX_FIELD_STEPS:
		r = pack_steps(p, f, from, n, &to);
		break;
	}
	memcpy(dst + f->offset, &to, sizeof(to));
	return r;
}

static int pack_all(struct pack *p, const char *src, char *dst)
{
	int r = 0;

	for (size_t i = 0; i < p->type->n_fields && r == 0; i++)
		r = pack_field(p, &p->type->fields[i], src, dst);
	return r;
}

int abx_record_copy(const struct abx_record_type *t, const void *src, void *ret, void **ret_memory,
		    struct abx_err *err)
{
	alignas(8) char own[RECORD_MAX_BYTES] = {0}, copy[RECORD_MAX_BYTES];
	struct pack p = {.type = t, .err = err};
	uint32_t size;
	int r;

	if (!src)
		return abx_err_set(err, ABX_EPROTO, "%s: is missing", t->name);
	memcpy(&size, src, sizeof(size));
	if (size < t->min_size || size > ABX_STRUCT_MAX_BYTES)
		return abx_err_set(err, ABX_EPROTO, "%s: struct_size %u is impossible", t->name,
				   size);
	memcpy(own, src, size < t->size ? size : t->size);
	memcpy(own, &t->size, sizeof(t->size));
	memcpy(copy, own, t->size);
	r = pack_all(&p, own, copy);
	if (r < 0)
		return r;
	p.size = p.at;
	p.base = abx_xcalloc(1, p.size + 1);
	p.at = 0;
	r = pack_all(&p, own, copy);
	if (r == 0 && p.overrun)
		r = abx_err_set(err, ABX_EPROTO, "%s: changed while it was read", t->name);
	if (r < 0) {
		free(p.base);
		return r;
	}
	memcpy(ret, copy, t->size);
	*ret_memory = p.base;
	return 0;
}
