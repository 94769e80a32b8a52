/* SPDX-License-Identifier: MIT */
/* The way to envd of one sandbox. */
#include <string.h>

#include "providers/e2b/e2b.h"

/* A session of HTTP for each base that was asked for; kept for as long as the session. */
struct e2b_host {
	struct e2b_host *next;
	struct abx_http *http;
	char base[400];
};

void e2b_hosts_free(struct abx_session *s)
{
	while (s->hosts) {
		struct e2b_host *first = s->hosts;

		s->hosts = first->next;
		abx_http_close(first->http);
		free(first);
	}
}

static int32_t host_for(struct abx_session *s, struct abx_call *call, const char *base,
			struct abx_http **ret)
{
	struct e2b_host *h;
	int32_t r = ABX_OK;

	(void)pthread_mutex_lock(&s->lock);
	for (h = s->hosts; h && strcmp(h->base, base) != 0; h = h->next)
		;
	if (!h) {
		h = calloc(1, sizeof(*h));
		r = h ? e2b_open_http(s, call, base, &h->http) : abx_fail_no_memory(call);
		if (r == ABX_OK) {
			(void)snprintf(h->base, sizeof(h->base), "%s", base);
			h->next = s->hosts;
			s->hosts = h;
		} else {
			free(h);
		}
	}
	if (r == ABX_OK)
		*ret = h->http;
	(void)pthread_mutex_unlock(&s->lock);
	return r;
}

/* The per-sandbox host: it is there on the cloud, on a cluster of one's own and in between. */
static void base_of(const struct abx_session *s, const char *id, const struct e2b_data *data,
		    char out[400])
{
	if (s->sandbox_url && *s->sandbox_url)
		(void)snprintf(out, 400, "%s", s->sandbox_url);
	else if (s->debug)
		(void)snprintf(out, 400, "http://localhost:%d", E2B_ENVD_PORT);
	else
		(void)snprintf(out, 400, "https://%d-%s.%s", E2B_ENVD_PORT, id,
			       *data->domain ? data->domain : s->domain);
}

/* What the host has not kept is asked for. */
static int32_t data_of(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		       struct e2b_data *ret)
{
	cJSON *doc = NULL;
	int32_t r;

	e2b_data_read(call, sb, ret);
	if (ret->known)
		return ABX_OK;
	r = e2b_inspect(s, call, sb->id, &doc);
	if (r == ABX_OK) {
		e2b_data_take(call, doc, ret);
		r = e2b_emit(s, call, doc, ret);
	}
	cJSON_Delete(doc);
	return r;
}

int32_t e2b_envd_of(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		    struct e2b_envd *ret)
{
	struct e2b_data data;
	char base[400];
	size_t n = 0;
	int32_t r;

	memset(ret, 0, sizeof(*ret));
	if (!e2b_is_id(sb->id))
		return abx_fail(call, ABX_ENOTFOUND, NULL, "there is no such box");
	r = data_of(s, call, sb, &data);
	if (r == ABX_OK) {
		base_of(s, sb->id, &data, base);
		r = host_for(s, call, base, &ret->http);
	}
	if (r == ABX_OK) {
		(void)snprintf(ret->id, sizeof(ret->id), "%s", sb->id);
		(void)snprintf(ret->version, sizeof(ret->version), "%s", data.version);
		(void)snprintf(ret->texts[n], sizeof(ret->texts[n]), "E2b-Sandbox-Id: %s", sb->id);
		ret->headers[n] = ret->texts[n];
		n++;
		(void)snprintf(ret->texts[n], sizeof(ret->texts[n]), "E2b-Sandbox-Port: %d",
			       E2B_ENVD_PORT);
		ret->headers[n] = ret->texts[n];
		n++;
		if (*data.token) {
			(void)snprintf(ret->texts[n], sizeof(ret->texts[n]), "X-Access-Token: %s",
				       data.token);
			ret->headers[n] = ret->texts[n];
		}
		e2b_keep(s, call, sb);
	}
	explicit_bzero(&data, sizeof(data));
	return r;
}

void e2b_envd_release(struct e2b_envd *d)
{
	explicit_bzero(d, sizeof(*d));
}

int32_t e2b_envd_gone(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		      const char *said)
{
	cJSON *doc = NULL;
	int32_t r = e2b_look(s, call, sb, &doc);

	if (r == ABX_OK && strcmp(abx_json_get_text(doc, "state"), "paused") == 0)
		r = abx_fail(call, ABX_ESTATE, "start it", "box %s: it is paused", sb->id);
	else if (r == ABX_OK)
		r = abx_fail(call, ABX_ENETWORK, E2B_REMEDY_LATER,
			     "box %s: it runs, and is not reached%s%s", sb->id,
			     said && *said ? ": " : "", said ? said : "");
	cJSON_Delete(doc);
	return r;
}
