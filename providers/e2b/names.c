/* SPDX-License-Identifier: MIT */
/* Labels in names. */
#include "providers/e2b/names.h"

#include <stdio.h>
#include <string.h>

#define PREFIX "agentbox-"
#define HEX "0123456789abcdef"
#define TAG_LETTERS "abcdefghijklmnopqrstuvwxyz0123456789-_."
#define INSTALL_LEN 32

static const char *label(const struct abx_kv *labels, uint32_t n, const char *key)
{
	for (uint32_t i = 0; i < n; i++)
		if (strcmp(labels[i].key, key) == 0)
			return labels[i].value;
	return "";
}

static bool is_of(const char *text, const char *letters, size_t max)
{
	size_t len = strlen(text);

	return len && len <= max && strspn(text, letters) == len;
}

/* A UUID without its dashes. */
static bool take_install(const char *text, char out[40])
{
	size_t n = 0;

	for (; *text; text++) {
		if (*text == '-')
			continue;
		if (n == INSTALL_LEN || !strchr(HEX, *text))
			return false;
		out[n++] = *text;
	}
	out[n] = '\0';
	return n == INSTALL_LEN;
}

/* Names of images have colons, which tags have not: "_c", and "__" for what begins that. */
static bool escape(const char *name, char out[E2B_NAME_PART])
{
	size_t n = 0;

	for (; *name; name++) {
		if (n + 3 > E2B_NAME_PART)
			return false;
		if (*name == ':' || *name == '_')
			out[n++] = '_';
		out[n++] = *name == ':' ? 'c' : *name;
	}
	out[n] = '\0';
	return true;
}

static void unescape(char *name)
{
	char *to = name;

	for (; *name; name++) {
		if (*name == '_' && name[1]) {
			name++;
			*to++ = *name == 'c' ? ':' : *name;
		} else {
			*to++ = *name;
		}
	}
	*to = '\0';
}

bool e2b_name_make(enum e2b_kind kind, const struct abx_kv *labels, uint32_t n, char out[132])
{
	const char *attempt = label(labels, n, "agentbox.attempt");
	const char *box = label(labels, n, "agentbox.box");
	const char *name = label(labels, n, "agentbox.name");
	char install[40], tag[2 * E2B_NAME_PART], escaped[E2B_NAME_PART];

	if (!escape(name, escaped))
		return false;
	name = escaped;
	if (kind == E2B_TEMPLATE)
		box = "";

	if (!take_install(label(labels, n, "agentbox.install"), install) ||
	    !is_of(attempt, HEX, 18) || (*box && !is_of(box, HEX, 16)) ||
	    (*name && !is_of(name, TAG_LETTERS, E2B_NAME_PART)) || (!*box && !*name))
		return false;
	(void)snprintf(tag, sizeof(tag), "%s%s%s", box, *box && *name ? "." : "", name);
	if (strlen(tag) >= E2B_NAME_PART)
		return false;
	(void)snprintf(out, 132, PREFIX "%c-%s-%s:%s", kind, install, attempt, tag);
	return true;
}

static const char *take_hex(const char *at, char *out, size_t size)
{
	size_t len = strspn(at, HEX);

	if (!len || len >= size)
		return NULL;
	(void)snprintf(out, size, "%.*s", (int)len, at);
	return at + len;
}

static void add(struct e2b_name *n, const char *key, const char *value)
{
	n->labels[n->n_labels++] = (struct abx_kv){key, value};
}

bool e2b_name_parse(enum e2b_kind kind, const char *text, struct e2b_name *ret)
{
	const char *slash = strrchr(text, '/'), *at = slash ? slash + 1 : text;
	const char prefix[] = {PREFIX[0], PREFIX[1], PREFIX[2], PREFIX[3],  PREFIX[4], PREFIX[5],
			       PREFIX[6], PREFIX[7], PREFIX[8], (char)kind, '-',       '\0'};
	char hex[40];

	memset(ret, 0, sizeof(*ret));
	if (strncmp(at, prefix, strlen(prefix)) != 0)
		return false;
	at = take_hex(at + strlen(prefix), hex, sizeof(hex));
	if (!at || strlen(hex) != INSTALL_LEN || *at != '-')
		return false;
	(void)snprintf(ret->install, sizeof(ret->install), "%.8s-%.4s-%.4s-%.4s-%.12s", hex,
		       hex + 8, hex + 12, hex + 16, hex + 20);
	at = take_hex(at + 1, ret->attempt, sizeof(ret->attempt));
	if (!at || (*at && *at != ':'))
		return false;
	at += *at == ':';
	if (kind == E2B_SNAPSHOT) {
		size_t len = strcspn(at, ".");

		(void)snprintf(ret->box, sizeof(ret->box), "%.*s", (int)(len < 39 ? len : 39), at);
		at += len + (at[len] == '.');
	}
	(void)snprintf(ret->name, sizeof(ret->name), "%.63s", at);
	unescape(ret->name);
	add(ret, "agentbox", "true");
	add(ret, "agentbox.install", ret->install);
	add(ret, "agentbox.attempt", ret->attempt);
	if (kind == E2B_SNAPSHOT)
		add(ret, "agentbox.box", ret->box);
	add(ret, "agentbox.name", ret->name);
	return true;
}

bool e2b_name_has(const struct e2b_name *n, const struct abx_list_req *req)
{
	for (uint32_t i = 0; req && i < req->n_labels; i++) {
		bool found = false;

		for (uint32_t k = 0; k < n->n_labels && !found; k++)
			found = strcmp(n->labels[k].key, req->labels[i].key) == 0 &&
				strcmp(n->labels[k].value, req->labels[i].value) == 0;
		if (!found)
			return false;
	}
	return true;
}
