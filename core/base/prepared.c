/* SPDX-License-Identifier: MIT */
/* The images that `prepare` made. */
#include "core/base/prepared.h"

#include <string.h>

#include "abxsdk/fs.h"
#include "abxsdk/json.h"
#include "core/state/aside.h"
#include "core/state/lock.h"
#include "core/util/mem.h"

#define FILE_MAX_BYTES ((size_t)1 << 20)
#define TEXT_MAX_BYTES 4096
#define SCHEMA 1

void abx_prepared_release(struct abx_prepared *p)
{
	free(p->name);
	free(p->ref);
	free(p->from);
	free(p->fingerprint);
	free(p->created_at);
	free(p->attempt);
	memset(p, 0, sizeof(*p));
}

void abx_prepared_list_release(struct abx_prepared_list *l)
{
	for (size_t i = 0; i < l->len; i++)
		abx_prepared_release(&l->items[i]);
	free(l->items);
	memset(l, 0, sizeof(*l));
}

const struct abx_prepared *abx_prepared_find(const struct abx_prepared_list *l, const char *name)
{
	for (size_t i = 0; i < l->len; i++)
		if (strcmp(l->items[i].name, name) == 0)
			return &l->items[i];
	return NULL;
}

char *abx_prepared_file(const char *provider)
{
	return abx_xasprintf("%s-prepared.json", provider);
}

static int get_text(const cJSON *o, const char *key, bool required, char **ret)
{
	const char *text = NULL;
	int r = abx_json_str(o, key, TEXT_MAX_BYTES, &text);

	if (r == 0 && required && (!text || !*text))
		r = -EPROTO;
	if (r == 0)
		*ret = abx_xstrdup_null(text);
	return r;
}

static int parse_one(const cJSON *o, struct abx_prepared *p)
{
	int r = get_text(o, "name", true, &p->name);

	if (r == 0)
		r = get_text(o, "ref", true, &p->ref);
	if (r == 0)
		r = get_text(o, "from", false, &p->from);
	if (r == 0)
		r = get_text(o, "fingerprint", false, &p->fingerprint);
	if (r == 0)
		r = get_text(o, "created_at", false, &p->created_at);
	return r < 0 ? r : get_text(o, "attempt", false, &p->attempt);
}

static int parse(const cJSON *doc, struct abx_prepared_list *ret)
{
	const cJSON *images = cJSON_GetObjectItemCaseSensitive(doc, "images"), *one;
	int r = images && !cJSON_IsArray(images) ? -EPROTO : 0;

	cJSON_ArrayForEach(one, images) {
		if (r < 0)
			break;
		ret->items = abx_xreallocarray(ret->items, ret->len + 1, sizeof(*ret->items));
		memset(&ret->items[ret->len], 0, sizeof(*ret->items));
		r = parse_one(one, &ret->items[ret->len++]);
	}
	return r;
}

int abx_prepared_load(const struct abx_home *home, const char *provider,
		      struct abx_prepared_list *ret, struct abx_err *err)
{
	abx_auto(abx_buf) struct abx_buf text = ABX_BUF_INIT(FILE_MAX_BYTES);
	abx_autofree char *file = abx_prepared_file(provider);
	struct abx_prepared_list list = {NULL, 0};
	cJSON *doc = NULL;
	int r = abx_fs_read(home->fd, file, &text);

	if (r == -ENOENT) {
		*ret = list;
		return 0;
	}
	if (r < 0 && r != -EFBIG)
		return abx_err_errno(err, r, "read '%s/%s'", home->path, file);
	if (r == 0)
		r = abx_json_parse(abx_buf_str(&text), text.len, FILE_MAX_BYTES, &doc);
	if (r == 0)
		r = parse(doc, &list);
	cJSON_Delete(doc);
	if (r < 0) {
		abx_prepared_list_release(&list);
		r = abx_set_aside(home, file, NULL, "not a list of prepared images", err);
		if (r < 0)
			return r;
	}
	*ret = list;
	return 0;
}

static int store(const struct abx_home *home, const char *provider,
		 const struct abx_prepared_list *list, struct abx_err *err)
{
	abx_auto(abx_buf) struct abx_buf text = ABX_BUF_INIT(FILE_MAX_BYTES);
	abx_autofree char *file = abx_prepared_file(provider);
	cJSON *doc = cJSON_CreateObject(), *images;
	int r;

	(void)cJSON_AddNumberToObject(doc, "schema", SCHEMA);
	(void)cJSON_AddStringToObject(doc, "provider", provider);
	images = cJSON_AddArrayToObject(doc, "images");
	for (size_t i = 0; i < list->len; i++) {
		const struct abx_prepared *p = &list->items[i];
		cJSON *o = cJSON_CreateObject();

		(void)abx_json_add_str(o, "name", p->name);
		(void)abx_json_add_str(o, "ref", p->ref);
		(void)abx_json_add_str(o, "from", p->from);
		(void)abx_json_add_str(o, "fingerprint", p->fingerprint);
		(void)abx_json_add_str(o, "created_at", p->created_at);
		(void)abx_json_add_str(o, "attempt", p->attempt);
		(void)cJSON_AddItemToArray(images, o);
	}
	r = abx_json_print(doc, &text);
	cJSON_Delete(doc);
	if (r == 0)
		r = abx_fs_write_atomic(home->fd, file, abx_buf_str(&text), text.len, 0600, true);
	return r < 0 ? abx_err_errno(err, r, "write '%s/%s'", home->path, file) : 0;
}

/* Take out what fits; `ref` or `name` may be NULL. */
static void remove_from(struct abx_prepared_list *list, const char *name, const char *ref)
{
	size_t n = 0;

	for (size_t i = 0; i < list->len; i++) {
		struct abx_prepared *p = &list->items[i];

		if ((name && strcmp(p->name, name) == 0) || (ref && strcmp(p->ref, ref) == 0))
			abx_prepared_release(p);
		else
			list->items[n++] = *p;
	}
	list->len = n;
}

int abx_prepared_put(const struct abx_home *home, const char *provider,
		     const struct abx_prepared *one, struct abx_err *err)
{
	struct abx_prepared_list list = {NULL, 0};
	abx_autoclose int lock_fd = abx_lock_home(home, err);
	int r;

	if (lock_fd < 0)
		return lock_fd;
	r = abx_prepared_load(home, provider, &list, err);
	if (r < 0)
		return r;
	remove_from(&list, one->name, NULL);
	list.items = abx_xreallocarray(list.items, list.len + 1, sizeof(*list.items));
	/* Borrowed: the caller's strings are not the list's to free. */
	list.items[list.len++] = *one;
	r = store(home, provider, &list, err);
	list.len--;
	abx_prepared_list_release(&list);
	return r;
}

int abx_prepared_drop(const struct abx_home *home, const char *provider, const char *ref,
		      struct abx_err *err)
{
	struct abx_prepared_list list = {NULL, 0};
	abx_autoclose int lock_fd = abx_lock_home(home, err);
	size_t before;
	int r;

	if (lock_fd < 0)
		return lock_fd;
	r = abx_prepared_load(home, provider, &list, err);
	if (r < 0)
		return r;
	before = list.len;
	remove_from(&list, NULL, ref);
	if (list.len != before)
		r = store(home, provider, &list, err);
	abx_prepared_list_release(&list);
	return r;
}
