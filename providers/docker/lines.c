/* SPDX-License-Identifier: MIT */
/* What the engine says of a pull, an import or a build. */
#include "providers/docker/lines.h"
#include "abxsdk/number.h"

#include <string.h>

static void keep(char *to, size_t size, const char *text)
{
	(void)snprintf(to, size, "%.*s", (int)strcspn(text, "\r\n"), text);
}

/* Of the builder's own words only its steps are of interest. */
static int32_t end_line(struct docker_lines *l)
{
	l->half[l->n_half] = '\0';
	l->n_half = 0;
	if (!*l->half || strncmp(l->half, " ---> ", 6) == 0 ||
	    strncmp(l->half, "Removing intermediate", 21) == 0)
		return ABX_OK;
	/* Podman shouts. */
	if (strncasecmp(l->half, "Step ", 5) == 0) {
		keep(l->step, sizeof(l->step), l->half);
		l->out[0] = '\0';
		(void)abx_plugin_host->progress(l->call, 0, 0, l->step);
	} else {
		keep(l->out, sizeof(l->out), l->half);
	}
	(void)abx_plugin_host->emit_log(l->call, ABX_STREAM_STDOUT, l->half, strlen(l->half));
	return abx_plugin_host->emit_log(l->call, ABX_STREAM_STDOUT, "\n", 1);
}

/* "\33[91m": the builder paints what comes from a stderr. */
static const char *behind_colour(const char *text)
{
	while (text[0] == '\33' && text[1] == '[') {
		size_t n = 2 + strspn(text + 2, "0123456789;");

		if (text[n] != 'm')
			break;
		text += n + 1;
	}
	return text;
}

/* Programs write as they like: a line is whole when its end has come. */
static int32_t take_output(struct docker_lines *l, const char *text)
{
	int32_t r = ABX_OK;

	for (text = behind_colour(text); *text && r == ABX_OK; text = behind_colour(text + 1))
		if (*text == '\n' || *text == '\r')
			r = end_line(l);
		else if (l->n_half + 1 < sizeof(l->half))
			l->half[l->n_half++] = *text;
	return r;
}

/* Podman has it only in words: "while running runtime: exit status 43". */
static int64_t code_in(const char *text)
{
	static const char words[] = "exit status ";
	const char *at = strstr(text, words);
	uint64_t code = 0;

	if (at)
		at += sizeof(words) - 1;
	return at && abx_parse_digits(&at, 255, &code) ? (int64_t)code : 0;
}

static void take_error(struct docker_lines *l, const cJSON *doc)
{
	const cJSON *detail = NULL;
	const char *text = NULL;

	if (abx_json_obj(doc, "errorDetail", &detail) == 0 && detail) {
		(void)abx_json_str(detail, "message", 65536, &text);
		(void)abx_json_i64(detail, "code", &l->code);
	}
	if (!text)
		(void)abx_json_str(doc, "error", 65536, &text);
	if (text)
		keep(l->error, sizeof(l->error), text);
	if (text && !l->code)
		l->code = code_in(text);
}

static void take_id(struct docker_lines *l, const char *id)
{
	if (strncmp(id, "sha256:", 7) == 0 && docker_is_word(id))
		(void)snprintf(l->id, sizeof(l->id), "%.79s", id);
}

static int32_t take_line(struct docker_lines *l)
{
	const cJSON *aux = NULL;
	const char *text = NULL;
	cJSON *doc = NULL;
	int32_t r = ABX_OK;

	if (abx_json_parse(abx_buf_str(&l->line), l->line.len, DOCKER_LINE_MAX, &doc) < 0)
		return ABX_OK;
	l->said = true;
	take_error(l, doc);
	if (abx_json_obj(doc, "aux", &aux) == 0 && aux)
		take_id(l, abx_json_get_text(aux, "ID"));
	if (abx_json_str(doc, "status", 65536, &text) == 0 && text) {
		take_id(l, text);
		(void)abx_plugin_host->progress(l->call, 0, 0, text);
	} else if (abx_json_str(doc, "stream", DOCKER_LINE_MAX, &text) == 0 && text) {
		r = take_output(l, text);
	}
	cJSON_Delete(doc);
	return r;
}

int32_t docker_lines_feed(void *ctx, const void *data, size_t len)
{
	struct docker_lines *l = ctx;
	const char *at = data;
	int32_t r = ABX_OK;

	while (len && r == ABX_OK) {
		const char *end = memchr(at, '\n', len);
		size_t n = end ? (size_t)(end - at) : len;

		abx_buf_add(&l->line, at, n);
		if (l->line.failed)
			return ABX_EPROTO;
		if (end) {
			r = take_line(l);
			abx_buf_reset(&l->line);
			n++;
		}
		at += n;
		len -= n;
	}
	return r;
}

int32_t docker_lines_judge(struct docker_lines *l, const char *what)
{
	if (l->line.len)
		(void)take_line(l);
	abx_buf_reset(&l->line);
	if (*l->error)
		return abx_fail(l->call, ABX_EINVAL, NULL, "%s: %s", what, l->error);
	if (!l->said)
		return abx_fail_unknown(l->call, ABX_ENETWORK, DOCKER_REMEDY_LOST,
					"%s: the engine broke off", what);
	return ABX_OK;
}

void docker_lines_release(struct docker_lines *l)
{
	abx_buf_release(&l->line);
}
