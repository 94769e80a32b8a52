/* SPDX-License-Identifier: MIT */
/* envd of the emulated E2B: filesystem.Filesystem. */
#include <string.h>

#include "abxsdk/json.h"
#include "core/util/mem.h"
#include "tests/cloud/e2b/connect.h"
#include "tests/cloud/e2b/envd.h"

#define ANSWER_MAX ((size_t)64 << 20)
#define PATH_MAX_BYTES 8192
#define FIELDS 10 /* of an entry of the agent's */

cJSON *envd_entry(const char **at, const char *end)
{
	static const char *const keys[FIELDS] = {"name",	 NULL,		 "path",  "size",
						 NULL,		 "permissions",	 "owner", "group",
						 "modifiedTime", "symlinkTarget"};
	const char *field[FIELDS], *p = *at;
	cJSON *doc;

	for (int i = 0; i < FIELDS; i++) {
		size_t n = strnlen(p, (size_t)(end - p));

		if (p + n >= end)
			return NULL;
		field[i] = p;
		p += n + 1;
	}
	*at = p;
	doc = cJSON_CreateObject();
	for (int i = 0; i < FIELDS; i++)
		if (keys[i] && *field[i] && !(i == 3 && strcmp(field[i], "0") == 0))
			(void)abx_json_add_str(doc, keys[i], field[i]);
	if (strcmp(field[1], "file") == 0)
		(void)abx_json_add_str(doc, "type", "FILE_TYPE_FILE");
	else if (strcmp(field[1], "directory") == 0)
		(void)abx_json_add_str(doc, "type", "FILE_TYPE_DIRECTORY");
	if (strcmp(field[4], "0") != 0)
		(void)abx_json_add_i64(doc, "mode", strtoll(field[4], NULL, 10));
	return doc;
}

const char *envd_answer(const struct abx_buf *answer, const char **ret_rest)
{
	const char *kind = abx_buf_str(answer);
	size_t n = strlen(kind);

	*ret_rest = n < answer->len ? kind + n + 1 : "";
	return *kind ? kind : "internal";
}

/* A unary call that the agent does: args are filled in behind the operation and the user. */
struct call {
	struct connect_kind k;
	cJSON *doc;
	char user[ENVD_USER_BYTES];
	const char *args[6];
	struct abx_buf answer;
	const char *rest, *end; /* of the answer, when all is well */
};

static bool begin(struct emu_request *req, const struct proto_message *m, struct call *c)
{
	memset(c, 0, sizeof(*c));
	c->answer = (struct abx_buf)ABX_BUF_INIT(ANSWER_MAX);
	if (!connect_kind(req, false, &c->k))
		return false;
	c->doc = connect_message(req, &c->k, m);
	if (c->doc && !envd_user(req, c->user)) {
		connect_error(req, &c->k, "unauthenticated", "invalid username");
		cJSON_Delete(c->doc);
		c->doc = NULL;
	}
	return c->doc != NULL;
}

static const char *text_of(const struct call *c, const char *key)
{
	const char *s = NULL;

	return abx_json_str(c->doc, key, PATH_MAX_BYTES, &s) == 0 && s ? s : "";
}

/* True: the answer is in rest; else the error is said. */
static bool ask(struct emu_request *req, struct call *c)
{
	const struct e2b_box *b = envd_box(req);
	struct abx_err err = ABX_ERR_INIT;
	const char *kind;

	if (emu_ask(b->e->engine, b->id, c->args, &c->answer, &err) < 0) {
		connect_error(req, &c->k, "internal", "%s", err.text);
		return false;
	}
	kind = envd_answer(&c->answer, &c->rest);
	c->end = abx_buf_str(&c->answer) + c->answer.len;
	if (strcmp(kind, "ok") == 0)
		return true;
	connect_error(req, &c->k, kind, "%s", c->rest);
	return false;
}

static void finish(struct call *c)
{
	abx_buf_release(&c->answer);
	cJSON_Delete(c->doc);
}

static void entry_call(struct emu_request *req, const struct proto_message *m, const char *op,
		       const char *first, const char *second)
{
	struct call c;
	cJSON *doc, *entry;

	if (!begin(req, m, &c))
		return;
	c.args[0] = op;
	c.args[1] = c.user;
	c.args[2] = text_of(&c, first);
	c.args[3] = second ? text_of(&c, second) : NULL;
	if (ask(req, &c)) {
		doc = cJSON_CreateObject();
		entry = envd_entry(&c.rest, c.end);
		if (entry)
			(void)cJSON_AddItemToObject(doc, "entry", entry);
		connect_reply(req, &c.k, &proto_entry_reply, doc);
	}
	finish(&c);
}

void envd_stat(struct emu_request *req)
{
	entry_call(req, &proto_stat, "stat", "path", NULL);
}

void envd_make_dir(struct emu_request *req)
{
	entry_call(req, &proto_stat, "mkdir", "path", NULL);
}

void envd_move(struct emu_request *req)
{
	entry_call(req, &proto_move, "move", "source", "destination");
}

void envd_remove(struct emu_request *req)
{
	struct call c;

	if (!begin(req, &proto_stat, &c))
		return;
	c.args[0] = "remove";
	c.args[1] = c.user;
	c.args[2] = text_of(&c, "path");
	if (ask(req, &c))
		connect_reply(req, &c.k, &proto_empty, cJSON_CreateObject());
	finish(&c);
}

void envd_list_dir(struct emu_request *req)
{
	cJSON *doc, *list, *entry;
	int64_t depth = 1;
	struct call c;
	char text[24];

	if (!begin(req, &proto_list_dir, &c))
		return;
	(void)abx_json_i64(c.doc, "depth", &depth);
	(void)snprintf(text, sizeof(text), "%lld", (long long)depth);
	c.args[0] = "list";
	c.args[1] = c.user;
	c.args[2] = text_of(&c, "path");
	c.args[3] = text;
	if (ask(req, &c)) {
		doc = cJSON_CreateObject();
		list = cJSON_CreateArray();
		while ((entry = envd_entry(&c.rest, c.end)))
			(void)cJSON_AddItemToArray(list, entry);
		if (cJSON_GetArraySize(list))
			(void)cJSON_AddItemToObject(doc, "entries", list);
		else
			cJSON_Delete(list);
		connect_reply(req, &c.k, &proto_entries, doc);
	}
	finish(&c);
}
