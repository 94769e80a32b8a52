/* SPDX-License-Identifier: MIT */
/* What a provider asked to be configured with. */
#include "core/host/options.h"

#include <string.h>

#include "core/util/parse.h"
#include "core/util/redact.h"

void abx_options_release(struct abx_options *o)
{
	for (size_t i = 0; i < o->texts.len; i++)
		explicit_bzero(o->texts.items[i], strlen(o->texts.items[i]));
	abx_strv_release(&o->texts);
	free(o->all);
	free(o->per_box);
	memset(o, 0, sizeof(*o));
}

static int missing(const char *key, const struct abx_option *o, struct abx_err *err)
{
	const bool secret = o->flags & ABX_OPT_SECRET;
	const int provider = (int)strcspn(key, ".");

	(void)abx_err_set(err, secret ? ABX_EAUTH : ABX_EUSAGE, "%s is not set", key);
	if (secret && o->env)
		return abx_err_remedy(err, "agentbox %.*s login, or set %s", provider, key, o->env);
	if (secret)
		return abx_err_remedy(err, "agentbox %.*s login", provider, key);
	if (o->env)
		return abx_err_remedy(err, "set %s, or: agentbox config set %s VALUE", o->env, key);
	return abx_err_remedy(err, "agentbox config set %s VALUE", key);
}

static bool is_int(const char *value)
{
	uint64_t n;

	return abx_parse_u64(value + (*value == '-'), INT64_MAX, &n);
}

/* The text that the session gets, or NULL with `err` filled. */
static char *convert(const struct abx_option *o, const char *value, struct abx_err *err)
{
	uint64_t bytes;
	int64_t ms;
	bool on;

	switch (o->type) {
	case ABX_OPT_INT:
		if (is_int(value))
			return abx_xstrdup(value);
		(void)abx_err_set(err, ABX_EUSAGE, "not a number");
		return NULL;
	case ABX_OPT_BOOL:
		return abx_parse_bool(value, &on, err) < 0 ? NULL
							   : abx_xstrdup(on ? "true" : "false");
	case ABX_OPT_DURATION:
		if (abx_parse_duration_ms(value, &ms, err) < 0)
			return NULL;
		return abx_xasprintf("%lld", (long long)ms);
	case ABX_OPT_SIZE:
		if (abx_parse_size_bytes(value, &bytes, err) < 0)
			return NULL;
		return abx_xasprintf("%llu", (unsigned long long)bytes);
	default:
		return abx_xstrdup(value);
	}
}

static const char *look_up(const char *key, const struct abx_option *o,
			   const struct abx_config *config)
{
	const char *value = NULL;

	if (config)
		return abx_config_get(config, key, /* ret_source= */ NULL);
	if (o->env)
		value = secure_getenv(o->env);
	return value ? value : o->dflt;
}

static int resolve_one(const char *key, const struct abx_option *o, const struct abx_config *config,
		       struct abx_options *ret, struct abx_err *err)
{
	const char *value = look_up(key, o, config);
	char *text;

	if (!value || !*value)
		return o->flags & ABX_OPT_REQUIRED ? missing(key, o, err) : 0;
	if (o->flags & ABX_OPT_SECRET)
		abx_redact_add(value);
	text = convert(o, value, err);
	if (!text) {
		/* The value itself is not shown: it may be a secret in the wrong place. */
		if (err)
			err->code = ABX_EUSAGE;
		(void)abx_err_wrap(err, "%s", key);
		return ABX_EUSAGE;
	}
	abx_strv_take(&ret->texts, text);
	ret->all[ret->n_all++] = (struct abx_kv){o->name, text};
	if (o->flags & ABX_OPT_PER_BOX)
		ret->per_box[ret->n_per_box++] = (struct abx_kv){o->name, text};
	return 0;
}

int abx_options_resolve(const struct abx_cloud_backend *table, struct abx_config *config,
			struct abx_options *ret, struct abx_err *err)
{
	struct abx_options o = {0};
	size_t n = 0;
	int r = 0;

	while (table->options && table->options[n])
		n++;
	o.all = abx_xcalloc(n + 1, sizeof(*o.all));
	o.per_box = abx_xcalloc(n + 1, sizeof(*o.per_box));
	if (config && n) {
		abx_config_declare_provider(config, table->name, table->options);
		/* A repository's keys can only be judged now. */
		r = abx_config_problem(config, err);
	}
	for (size_t i = 0; i < n && r == 0; i++) {
		abx_autofree char *key =
			abx_xasprintf("%s.%s", table->name, table->options[i]->name);

		r = resolve_one(key, table->options[i], config, &o, err);
	}
	if (r < 0) {
		(void)abx_err_wrap(err, "provider '%s'", table->name);
		abx_options_release(&o);
		return r;
	}
	*ret = o;
	return 0;
}

int abx_options_store_secret(const struct abx_home *home, const char *provider,
			     const struct abx_option *const *options, const char *key,
			     const char *value, struct abx_err *err)
{
	abx_autofree char *full = abx_xasprintf("%s.%s", provider, key);
	struct abx_config *config = NULL;
	size_t i = 0;
	int r;

	while (options && options[i] && strcmp(options[i]->name, key) != 0)
		i++;
	if (!options || !options[i] || !(options[i]->flags & ABX_OPT_SECRET))
		return abx_err_set(err, ABX_EINVAL, "%s is no secret option of the provider", full);
	r = abx_config_open(home, /* project_key= */ NULL, /* workspace= */ NULL, &config, err);
	if (r < 0)
		return r;
	abx_config_declare_provider(config, provider, options);
	r = abx_config_store(config, /* global= */ true, full, value, err);
	abx_config_close(config);
	return r;
}
