/* SPDX-License-Identifier: MIT */
/* How a sandbox is reached, as the host keeps it for us: one JSON object. */
#include <ctype.h>
#include <string.h>

#include "providers/e2b/e2b.h"

#define DATA_MAX_BYTES ((size_t)ABX_PROVIDER_DATA_MAX_BYTES)

/* What becomes part of a header or an address: printable, without blanks; else it is not there. */
static void take(char *to, size_t size, const cJSON *obj, const char *key)
{
	const char *text = abx_json_get_text(obj, key);

	if (!*text || strlen(text) >= size)
		return;
	for (const char *at = text; *at; at++)
		if (!isgraph((unsigned char)*at))
			return;
	(void)snprintf(to, size, "%s", text);
}

static void guard(struct abx_call *call, const struct e2b_data *d)
{
	if (*d->token)
		abx_plugin_host->add_secret(call, d->token);
	if (*d->traffic)
		abx_plugin_host->add_secret(call, d->traffic);
}

void e2b_data_read(struct abx_call *call, const struct abx_sandbox *sb, struct e2b_data *ret)
{
	const char *text = sb->provider_data;
	cJSON *doc = NULL;

	memset(ret, 0, sizeof(*ret));
	if (!text || abx_json_parse(text, strlen(text), DATA_MAX_BYTES, &doc) < 0)
		return;
	take(ret->token, sizeof(ret->token), doc, "token");
	take(ret->traffic, sizeof(ret->traffic), doc, "traffic");
	take(ret->domain, sizeof(ret->domain), doc, "domain");
	take(ret->version, sizeof(ret->version), doc, "envd");
	(void)abx_json_i64(doc, "timeout_s", &ret->timeout_s);
	(void)abx_json_bool(doc, "foreign", false, &ret->foreign);
	ret->known = true;
	cJSON_Delete(doc);
	guard(call, ret);
}

int64_t e2b_data_timeout_s(const struct abx_sandbox *sb)
{
	const char *text = sb->provider_data;
	int64_t timeout_s = 0;
	cJSON *doc = NULL;

	if (text && abx_json_parse(text, strlen(text), DATA_MAX_BYTES, &doc) == 0)
		(void)abx_json_i64(doc, "timeout_s", &timeout_s);
	cJSON_Delete(doc);
	return timeout_s > 0 ? timeout_s : 0;
}

void e2b_data_take(struct abx_call *call, const cJSON *described, struct e2b_data *io)
{
	take(io->token, sizeof(io->token), described, "envdAccessToken");
	take(io->traffic, sizeof(io->traffic), described, "trafficAccessToken");
	take(io->domain, sizeof(io->domain), described, "domain");
	take(io->version, sizeof(io->version), described, "envdVersion");
	io->known = true;
	guard(call, io);
}

char *e2b_data_print(const struct e2b_data *d)
{
	cJSON *doc = cJSON_CreateObject();
	char *text;

	if (*d->token)
		(void)abx_json_add_str(doc, "token", d->token);
	if (*d->traffic)
		(void)abx_json_add_str(doc, "traffic", d->traffic);
	if (*d->domain)
		(void)abx_json_add_str(doc, "domain", d->domain);
	if (*d->version)
		(void)abx_json_add_str(doc, "envd", d->version);
	if (d->timeout_s)
		(void)abx_json_add_i64(doc, "timeout_s", d->timeout_s);
	if (d->foreign)
		(void)abx_json_add_bool(doc, "foreign", true);
	text = cJSON_PrintUnformatted(doc);
	cJSON_Delete(doc);
	return text;
}
