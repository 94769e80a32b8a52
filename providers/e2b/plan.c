/* SPDX-License-Identifier: MIT */
/* A Dockerfile as the steps of a template build. */
#include "providers/e2b/plan.h"

#include <ctype.h>
#include <string.h>

#include "abxsdk/json.h"

#define TEXT_MAX_BYTES ((size_t)256 << 10)
#define WORDS_MAX 64

struct planning {
	struct e2b_plan *plan;
	const struct abx_kv *args;
	uint32_t n_args;
	struct abx_buf exports; /* "export A='b'; " of every ARG so far */
};

static int refuse(struct planning *g, const char *why, const char *what)
{
	(void)snprintf(g->plan->what, sizeof(g->plan->what), "%s: %.120s", why, what);
	return -EINVAL;
}

/* Quoted for a shell. */
static void quote(struct abx_buf *b, const char *text)
{
	abx_buf_addc(b, '\'');
	for (; *text; text++)
		if (*text == '\'')
			abx_buf_adds(b, "'\\''");
		else
			abx_buf_addc(b, *text);
	abx_buf_addc(b, '\'');
}

/* An array of `args`, which this makes; `source` may be NULL. */
static int add_step(struct planning *g, const char *type, const char *const *args, size_t n,
		    const char *text, const char *source)
{
	struct e2b_plan *p = g->plan;
	cJSON *step = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(step, "args");

	if (p->n == E2B_STEPS_MAX) {
		cJSON_Delete(step);
		return refuse(g, "too many steps", text);
	}
	(void)abx_json_add_str(step, "type", type);
	(void)abx_json_add_bool(step, "force", false);
	for (size_t i = 0; i < n; i++)
		(void)cJSON_AddItemToArray(list, cJSON_CreateString(args[i]));
	p->texts[p->n] = strdup(text);
	p->sources[p->n] = source ? strdup(source) : NULL;
	if (!cJSON_AddItemToArray(p->steps, step) || !p->texts[p->n] ||
	    (source && !p->sources[p->n]))
		return -ENOMEM;
	p->n++;
	return 0;
}

/* Words between blanks, in place; quotes around a whole word go. */
static size_t split(char *text, char *words[WORDS_MAX])
{
	size_t n = 0;

	while (n < WORDS_MAX && *(text += strspn(text, " \t"))) {
		char end = *text == '"' || *text == '\'' ? *text : '\0';

		words[n++] = end ? ++text : text;
		text += end ? strcspn(text, (char[]){end, '\0'}) : strcspn(text, " \t");
		if (*text)
			*text++ = '\0';
	}
	return n;
}

static const char *given(const struct planning *g, const char *name)
{
	for (uint32_t i = 0; i < g->n_args; i++)
		if (strcmp(g->args[i].key, name) == 0)
			return g->args[i].value;
	return NULL;
}

static int take_arg(struct planning *g, char *rest)
{
	char *eq = strchr(rest, '=');
	const char *value;

	if (eq)
		*eq = '\0';
	value = given(g, rest);
	if (!value)
		value = eq ? eq + 1 : NULL;
	if (!value)
		return 0;
	abx_buf_addf(&g->exports, "export %s=", rest);
	quote(&g->exports, value);
	abx_buf_adds(&g->exports, "; ");
	return 0;
}

static int take_run(struct planning *g, const char *rest, const char *text)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(TEXT_MAX_BYTES);
	cJSON *list = *rest == '[' ? cJSON_Parse(rest) : NULL;
	const cJSON *word;
	const char *args[1];

	abx_buf_adds(&b, abx_buf_str(&g->exports));
	if (!list)
		abx_buf_adds(&b, rest);
	cJSON_ArrayForEach(word, list) {
		quote(&b, cJSON_IsString(word) ? word->valuestring : "");
		abx_buf_addc(&b, ' ');
	}
	cJSON_Delete(list);
	if (b.failed)
		return -ENOMEM;
	args[0] = b.data;
	return add_step(g, "RUN", args, 1, text, NULL);
}

/* Each source is a step of its own, as the service has it. */
static int take_copy(struct planning *g, char *rest, const char *text)
{
	char *words[WORDS_MAX];
	size_t n = split(rest, words);
	int r = n < 2 ? refuse(g, "COPY without a destination", text) : 0;

	for (size_t i = 0; i + 1 < n && r == 0; i++) {
		size_t len = strlen(words[i]);
		const char *args[4] = {words[i], words[n - 1], "", ""};

		while (len > 1 && words[i][len - 1] == '/')
			words[i][--len] = '\0';
		if (words[i][0] == '-' || words[i][0] == '/' || strstr(words[i], "..") ||
		    strpbrk(words[i], "*?[$"))
			r = refuse(g, "COPY of what is no plain path below the context", text);
		else
			r = add_step(g, "COPY", args, 4, text, words[i]);
	}
	return r;
}

static int take_env(struct planning *g, char *rest, const char *text)
{
	const char *args[2 * WORDS_MAX];
	char *words[WORDS_MAX];
	size_t n = split(rest, words), k = 0;

	for (size_t i = 0; i < n; i++) {
		char *eq = strchr(words[i], '=');

		if (!eq)
			return refuse(g, "ENV without =", text);
		*eq = '\0';
		args[k++] = words[i];
		args[k++] = eq + 1;
	}
	return add_step(g, "ENV", args, k, text, NULL);
}

static bool is_one_of(const char *word, const char *const *list)
{
	for (; *list; list++)
		if (strcasecmp(word, *list) == 0)
			return true;
	return false;
}

static int take_line(struct planning *g, char *line)
{
	static const char *const silent[] = {"FROM", "LABEL", "CMD", "EXPOSE", NULL};
	char text[160];
	char *rest = line + strcspn(line, " \t");
	const char *args[1];

	(void)snprintf(text, sizeof(text), "%.150s", line);
	if (*rest)
		*rest++ = '\0';
	rest += strspn(rest, " \t");
	args[0] = rest;
	if (is_one_of(line, silent))
		return 0;
	if (strcasecmp(line, "ARG") == 0)
		return take_arg(g, rest);
	if (strcasecmp(line, "RUN") == 0)
		return take_run(g, rest, text);
	if (strcasecmp(line, "COPY") == 0)
		return take_copy(g, rest, text);
	if (strcasecmp(line, "ENV") == 0)
		return take_env(g, rest, text);
	if (strcasecmp(line, "USER") == 0)
		return add_step(g, "USER", args, 1, text, NULL);
	if (strcasecmp(line, "WORKDIR") == 0)
		return add_step(g, "WORKDIR", args, 1, text, NULL);
	return refuse(g, "an instruction that templates have nothing for", line);
}

/* The next line, with those that it goes on in; NULL: no more. */
static char *next_line(char **at)
{
	char *begin = *at, *to = *at, *from = *at;

	if (!*from)
		return NULL;
	while (*from && *from != '\n')
		if (from[0] == '\\' && from[1] == '\n') {
			*to++ = ' ';
			from += 2;
		} else {
			*to++ = *from++;
		}
	*at = *from ? from + 1 : from;
	while (to > begin && isspace((unsigned char)to[-1]))
		to--;
	*to = '\0';
	return begin + strspn(begin, " \t");
}

int e2b_plan_make(struct e2b_plan *plan, const char *dockerfile, const struct abx_kv *args,
		  uint32_t n_args)
{
	struct planning g = {.plan = plan,
			     .args = args,
			     .n_args = n_args,
			     .exports = ABX_BUF_INIT(TEXT_MAX_BYTES)};
	char *copy = strdup(dockerfile), *at = copy, *line;
	int r = copy ? 0 : -ENOMEM;

	*plan = (struct e2b_plan){.steps = cJSON_CreateArray()};
	while (r == 0 && (line = next_line(&at)))
		if (*line && *line != '#')
			r = take_line(&g, line);
	if (r == 0 && g.exports.failed)
		r = -ENOMEM;
	abx_buf_release(&g.exports);
	free(copy);
	if (r < 0) {
		char what[sizeof(plan->what)];

		memcpy(what, plan->what, sizeof(what));
		e2b_plan_release(plan);
		memcpy(plan->what, what, sizeof(what));
	}
	return r;
}

void e2b_plan_release(struct e2b_plan *plan)
{
	for (int i = 0; i < E2B_STEPS_MAX; i++) {
		free(plan->texts[i]);
		free(plan->sources[i]);
	}
	cJSON_Delete(plan->steps);
	*plan = (struct e2b_plan){.steps = NULL};
}
