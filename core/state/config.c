/* SPDX-License-Identifier: MIT */
/* Settings in layers. */
#include "core/state/config.h"

#include <string.h>

#include "core/state/config-keys.h"
#include "core/state/config-layers.h"
#include "core/state/lock.h"
#include "core/util/log.h"
#include "core/util/mem.h"
#include "core/util/parse.h"
#include "core/util/redact.h"

const struct abx_config_key *abx_config_find_key(const struct abx_config *c, const char *name)
{
	for (size_t i = 0; i < c->n_keys; i++)
		if (strcmp(c->keys[i].name, name) == 0)
			return &c->keys[i];
	return NULL;
}

bool abx_config_is_secret(const struct abx_config_key *key)
{
	return (key->flags & ABX_OPT_SECRET) != 0;
}

/* Files that a value may come from; a secret comes from none of them. */
static bool is_file_layer(enum abx_layer_id id)
{
	return id == ABX_LAYER_PROJECT || id == ABX_LAYER_REPOSITORY || id == ABX_LAYER_GLOBAL;
}

static bool may_set(const struct abx_config_key *key, enum abx_layer_id id)
{
	if (abx_config_is_secret(key))
		return !is_file_layer(id);
	return id != ABX_LAYER_REPOSITORY || (key->flags & ABX_OPT_WORKSPACE_OK);
}

static int refuse_repository_key(const struct abx_config *c, const struct abx_entry *e,
				 struct abx_err *err)
{
	(void)abx_err_set(err, ABX_EPOLICY, "%s: line %u: a repository may not set '%s'",
			  c->layers[ABX_LAYER_REPOSITORY].path, e->line, e->key);
	(void)abx_err_remedy(err, "remove it there; to set it yourself: agentbox config set %s ...",
			     e->key);
	return ABX_EPOLICY;
}

static int check_entry(const struct abx_config *c, const struct abx_config_key *key,
		       enum abx_layer_id id, const struct abx_entry *e, struct abx_err *err)
{
	struct abx_err why = ABX_ERR_INIT;

	if (id == ABX_LAYER_REPOSITORY && (abx_config_is_secret(key) || !may_set(key, id)))
		return refuse_repository_key(c, e, err);
	if (abx_config_is_secret(key))
		return 0;
	/* On the command line a provider may be a file, and only there. */
	if (id == ABX_LAYER_FLAG && strcmp(key->name, "box.provider") == 0 && e->value[0] == '/')
		return 0;
	if (!e->value || (e->is_list && key->type != ABX_OPT_LIST))
		(void)abx_err_set(&why, ABX_EINVAL, "not a single value");
	else if (abx_config_check_type(key, e->value, &why) == 0)
		return 0;
	if (id == ABX_LAYER_ENV)
		(void)abx_err_set(err, ABX_EINVAL, "variable %s: %s", key->env, why.text);
	else if (is_file_layer(id))
		(void)abx_err_set(err, ABX_EINVAL, "%s: line %u: %s: %s", c->layers[id].path,
				  e->line, e->key, why.text);
	else
		(void)abx_err_set(err, ABX_EINVAL, "%s: %s", e->key, why.text);
	if (why.remedy[0])
		(void)abx_err_remedy(err, "%s", why.remedy);
	return ABX_EINVAL;
}

/* Judge what the layers say about one declared key; remembers the first problem. */
static void judge_key(struct abx_config *c, const struct abx_config_key *key)
{
	for (int id = 0; id < ABX_LAYER_COUNT; id++) {
		struct abx_entry *e = abx_layer_find(&c->layers[id], key->name);
		struct abx_err err = ABX_ERR_INIT;

		if (!e)
			continue;
		if (abx_config_is_secret(key) && e->value)
			abx_redact_add(e->value);
		if (abx_config_is_secret(key) &&
		    (id == ABX_LAYER_PROJECT || id == ABX_LAYER_GLOBAL))
			abx_warn("%s: line %u: '%s' is a secret and is not read from there "
				 "(agentbox %.*s login puts it where it belongs)",
				 c->layers[id].path, e->line, e->key, (int)strcspn(e->key, "."),
				 e->key);
		if (check_entry(c, key, (enum abx_layer_id)id, e, &err) < 0 && !c->problem.code)
			c->problem = err;
	}
}

/* The variable of a key; secrets.env has the same name. */
static void read_env(struct abx_config *c, const struct abx_config_key *key)
{
	const char *value = key->env ? secure_getenv(key->env) : NULL;

	/* An empty one is how a variable is taken back in a shell. */
	if (value && *value)
		(void)abx_layer_set(c, ABX_LAYER_ENV, key->name, value, 0);
	if (abx_config_is_secret(key) && key->env) {
		value = abx_env_get(&c->secrets, key->env);
		if (value)
			(void)abx_layer_set(c, ABX_LAYER_SECRETS, key->name, value, 0);
	}
}

static void declare(struct abx_config *c, const struct abx_config_key *key)
{
	struct abx_config_key copy = *key;

	if (abx_config_find_key(c, key->name))
		return;
	copy.name = abx_config_keep(c, key->name);
	copy.env = abx_config_keep(c, key->env);
	copy.dflt = abx_config_keep(c, key->dflt);
	copy.help = abx_config_keep(c, key->help);
	c->keys = abx_xreallocarray(c->keys, c->n_keys + 1, sizeof(*c->keys));
	c->keys[c->n_keys++] = copy;
	read_env(c, &copy);
	judge_key(c, &copy);
}

static void warn_once(struct abx_config *c, enum abx_layer_id id, const struct abx_entry *e)
{
	char shown[128];

	for (size_t i = 0; i < c->warned.len; i++)
		if (strcmp(c->warned.items[i], e->key) == 0)
			return;
	abx_strv_add(&c->warned, e->key);
	abx_quote_text(e->key, shown, sizeof(shown));
	abx_warn("%s: line %u: unknown key '%s' is ignored", c->layers[id].path, e->line, shown);
}

/* section NULL: keys that cannot belong to any provider. */
static bool in_section(const char *key, const char *section)
{
	size_t len = strcspn(key, ".");
	abx_autofree char *own = abx_xstrndup(key, len);

	if (section)
		return key[len] && strcmp(own, section) == 0;
	return !key[len] || !abx_is_provider_name(own);
}

/* Unknown keys of a section whose keys are all declared by now. */
static void warn_unknown(struct abx_config *c, const char *section)
{
	for (int id = ABX_LAYER_PROJECT; id < ABX_LAYER_COUNT; id++) {
		const struct abx_layer *l = &c->layers[id];

		for (size_t i = 0; i < l->len; i++)
			if (in_section(l->items[i].key, section) &&
			    !abx_config_find_key(c, l->items[i].key))
				warn_once(c, (enum abx_layer_id)id, &l->items[i]);
	}
}

int abx_config_open_edit(const struct abx_home *home, const char *project_key,
			 const char *workspace, struct abx_config **ret, struct abx_err *err)
{
	struct abx_config *c = abx_xcalloc(1, sizeof(*c));
	int r;

	c->home = home;
	abx_layers_set_paths(c, project_key, workspace);
	r = abx_layers_load(c, err);
	if (r < 0) {
		abx_config_close(c);
		return r;
	}
	for (size_t i = 0; i < abx_config_n_builtin; i++)
		declare(c, &abx_config_builtin[i]);
	warn_unknown(c, "box");
	warn_unknown(c, NULL);
	*ret = c;
	return 0;
}

int abx_config_open(const struct abx_home *home, const char *project_key, const char *workspace,
		    struct abx_config **ret, struct abx_err *err)
{
	struct abx_config *c = NULL;
	int r = abx_config_open_edit(home, project_key, workspace, &c, err);

	if (r == 0)
		r = abx_config_problem(c, err);
	if (r < 0) {
		abx_config_close(c);
		return r;
	}
	*ret = c;
	return 0;
}

void abx_config_close(struct abx_config *c)
{
	if (!c)
		return;
	for (int id = 0; id < ABX_LAYER_COUNT; id++) {
		free(c->layers[id].items);
		free(c->layers[id].path);
		free(c->layers[id].relative);
	}
	for (size_t i = 0; i < c->pool.len; i++)
		explicit_bzero(c->pool.items[i], strlen(c->pool.items[i]));
	abx_strv_release(&c->pool);
	abx_strv_release(&c->warned);
	abx_env_release(&c->secrets);
	free(c->keys);
	free(c);
}

int abx_config_problem(const struct abx_config *c, struct abx_err *err)
{
	if (c->problem.code && err)
		*err = c->problem;
	return c->problem.code;
}

static char *upper_env_name(const char *provider, const char *option)
{
	char *name = abx_xasprintf("AGENTBOX_%s_%s", provider, option);

	for (char *at = name; *at; at++)
		*at = *at >= 'a' && *at <= 'z' ? (char)(*at - 'a' + 'A') : *at == '-' ? '_' : *at;
	return name;
}

void abx_config_declare_provider(struct abx_config *c, const char *provider,
				 const struct abx_option *const *options)
{
	for (; options && *options; options++) {
		const struct abx_option *o = *options;
		abx_autofree char *name = abx_xasprintf("%s.%s", provider, o->name);
		/* A secret needs a name in secrets.env even where the plugin reads none. */
		abx_autofree char *made = o->env ? NULL : upper_env_name(provider, o->name);
		struct abx_config_key key = {.name = name,
					     .env = o->env,
					     .dflt = o->dflt,
					     .help = o->help,
					     .type = o->type,
					     .flags = o->flags};

		if (!o->env && (o->flags & ABX_OPT_SECRET))
			key.env = made;
		declare(c, &key);
	}
	warn_unknown(c, provider);
}

int abx_config_set_flag(struct abx_config *c, const char *key, const char *value,
			struct abx_err *err)
{
	const struct abx_config_key *k = abx_config_find_key(c, key);
	const struct abx_entry e = {.key = key, .value = value};
	int r = k ? check_entry(c, k, ABX_LAYER_FLAG, &e, err)
		  : abx_config_check(c, key, value, err);

	if (r < 0)
		return r;
	if (abx_config_is_secret(k))
		abx_redact_add(value);
	(void)abx_layer_set(c, ABX_LAYER_FLAG, key, value, 0);
	return 0;
}

const char *abx_config_get(const struct abx_config *c, const char *key, const char **ret_source)
{
	const struct abx_config_key *k = abx_config_find_key(c, key);

	if (!k)
		return NULL;
	for (int id = 0; id < ABX_LAYER_COUNT; id++) {
		const struct abx_entry *e = abx_layer_find(&c->layers[id], key);

		if (!e || !e->value || !may_set(k, (enum abx_layer_id)id) ||
		    check_entry(c, k, (enum abx_layer_id)id, e, NULL) < 0)
			continue;
		if (ret_source)
			*ret_source = abx_layer_names[id];
		return e->value;
	}
	if (ret_source && k->dflt)
		*ret_source = "default";
	return k->dflt;
}

size_t abx_config_keys(const struct abx_config *c, const struct abx_config_key **ret)
{
	*ret = c->keys;
	return c->n_keys;
}

const char *abx_config_undeclared(const struct abx_config *c, size_t i, const char **ret_value,
				  const char **ret_source)
{
	for (int id = ABX_LAYER_PROJECT; id < ABX_LAYER_COUNT; id++) {
		for (size_t j = 0; j < c->layers[id].len; j++) {
			const struct abx_entry *e = &c->layers[id].items[j];

			if (abx_config_find_key(c, e->key) || i--)
				continue;
			*ret_value = e->value;
			*ret_source = abx_layer_names[id];
			return e->key;
		}
	}
	return NULL;
}

static int unknown_key(const char *key, struct abx_err *err)
{
	char shown[128];

	abx_quote_text(key, shown, sizeof(shown));
	(void)abx_err_set(err, ABX_EUSAGE, "'%s': there is no such setting", shown);
	(void)abx_err_remedy(err, "agentbox config list shows all");
	return ABX_EUSAGE;
}

int abx_config_check(const struct abx_config *c, const char *key, const char *value,
		     struct abx_err *err)
{
	const struct abx_config_key *k = abx_config_find_key(c, key);

	if (!k)
		return unknown_key(key, err);
	if (abx_config_check_type(k, value, err) < 0) {
		(void)abx_err_wrap(err, "%s", key);
		return ABX_EINVAL;
	}
	return 0;
}

int abx_config_store(struct abx_config *c, bool global, const char *key, const char *value,
		     struct abx_err *err)
{
	const struct abx_config_key *k = abx_config_find_key(c, key);
	enum abx_layer_id id = global ? ABX_LAYER_GLOBAL : ABX_LAYER_PROJECT;
	abx_autoclose int lock_fd = -1;
	int r = value ? abx_config_check(c, key, value, err) : 0;

	if (r < 0)
		return r;
	if (!k && !strchr(key, '.'))
		return unknown_key(key, err);
	if (!c->layers[id].path && !(k && abx_config_is_secret(k))) {
		(void)abx_err_set(err, ABX_EUSAGE, "%s: there is no project here", key);
		(void)abx_err_remedy(err, "use --global");
		return ABX_EUSAGE;
	}
	lock_fd = abx_lock_home(c->home, err);
	if (lock_fd < 0)
		return lock_fd;
	return k && abx_config_is_secret(k) ? abx_layer_store_secret(c, k, value, err)
					    : abx_layer_store(c, id, key, value, err);
}

const char *abx_config_path(const struct abx_config *c, const char *layer)
{
	for (int id = 0; id < ABX_LAYER_COUNT; id++)
		if (strcmp(abx_layer_names[id], layer) == 0)
			return c->layers[id].path;
	return NULL;
}
