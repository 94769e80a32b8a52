/* SPDX-License-Identifier: MIT */
/* Settings in layers. */
#include "core/state/config.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "abxsdk/fs.h"
#include "core/state/aside.h"
#include "core/state/config-edit.h"
#include "core/state/config-keys.h"
#include "core/state/config-yaml.h"
#include "core/state/envfile.h"
#include "core/state/lock.h"
#include "core/util/log.h"
#include "core/util/mem.h"
#include "core/util/parse.h"
#include "core/util/redact.h"

#define REPOSITORY_FILE "agentbox.yaml"
#define REPOSITORY_ROOT "defaults"
#define SECRETS_FILE "secrets.env"

enum layer_id { LAYER_FLAG, LAYER_ENV, LAYER_SECRETS, LAYER_PROJECT, LAYER_REPOSITORY,
		LAYER_GLOBAL, LAYER_COUNT };

static const char *const layer_names[LAYER_COUNT] = {
	[LAYER_FLAG] = "flag",		   [LAYER_ENV] = "env",
	[LAYER_SECRETS] = "secrets",	   [LAYER_PROJECT] = "project",
	[LAYER_REPOSITORY] = "repository", [LAYER_GLOBAL] = "global",
};

struct entry {
	const char *key, *value; /* in the pool */
	unsigned int line;
};

struct layer {
	struct entry *items;
	size_t len;
	char *path;	/* of its file, or NULL */
	char *relative; /* the same below the home, or NULL */
};

struct abx_config {
	const struct abx_home *home;
	struct layer layers[LAYER_COUNT];
	struct abx_env secrets;
	struct abx_config_key *keys;
	size_t n_keys;
	/* Every text that was ever given out: values live as long as the configuration. */
	struct abx_strv pool, warned;
	struct abx_err problem;
};

static const char *keep(struct abx_config *c, const char *text)
{
	if (!text)
		return NULL;
	abx_strv_add(&c->pool, text);
	return c->pool.items[c->pool.len - 1];
}

static struct entry *find_entry(const struct layer *l, const char *key)
{
	for (size_t i = 0; i < l->len; i++)
		if (strcmp(l->items[i].key, key) == 0)
			return &l->items[i];
	return NULL;
}

static void set_entry(struct abx_config *c, enum layer_id id, const char *key, const char *value,
		      unsigned int line)
{
	struct layer *l = &c->layers[id];
	struct entry *e = find_entry(l, key);

	if (!e) {
		l->items = abx_xreallocarray(l->items, l->len + 1, sizeof(*l->items));
		e = &l->items[l->len++];
		e->key = keep(c, key);
	}
	e->value = keep(c, value);
	e->line = line;
}

static const struct abx_config_key *find_key(const struct abx_config *c, const char *name)
{
	for (size_t i = 0; i < c->n_keys; i++)
		if (strcmp(c->keys[i].name, name) == 0)
			return &c->keys[i];
	return NULL;
}

static bool is_secret(const struct abx_config_key *key)
{
	return (key->flags & ABX_OPT_SECRET) != 0;
}

/* Files that a value may come from; a secret comes from none of them. */
static bool is_file_layer(enum layer_id id)
{
	return id == LAYER_PROJECT || id == LAYER_REPOSITORY || id == LAYER_GLOBAL;
}

static bool may_set(const struct abx_config_key *key, enum layer_id id)
{
	if (is_secret(key))
		return !is_file_layer(id);
	return id != LAYER_REPOSITORY || (key->flags & ABX_OPT_WORKSPACE_OK);
}

static int refuse_repository_key(const struct abx_config *c, const struct entry *e,
				 struct abx_err *err)
{
	(void)abx_err_set(err, ABX_EPOLICY, "%s: line %u: a repository may not set '%s'",
			  c->layers[LAYER_REPOSITORY].path, e->line, e->key);
	(void)abx_err_remedy(err, "remove it there; to set it yourself: agentbox config set %s ...",
			     e->key);
	return ABX_EPOLICY;
}

static int check_entry(const struct abx_config *c, const struct abx_config_key *key,
		       enum layer_id id, const struct entry *e, struct abx_err *err)
{
	struct abx_err why = ABX_ERR_INIT;

	if (id == LAYER_REPOSITORY && (is_secret(key) || !may_set(key, id)))
		return refuse_repository_key(c, e, err);
	if (is_secret(key))
		return 0;
	/* On the command line a provider may be a file, and only there. */
	if (id == LAYER_FLAG && strcmp(key->name, "box.provider") == 0 && e->value[0] == '/')
		return 0;
	if (!e->value)
		(void)abx_err_set(&why, ABX_EINVAL, "not a single value");
	else if (abx_config_check_type(key, e->value, &why) == 0)
		return 0;
	if (id == LAYER_ENV)
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
	for (int id = 0; id < LAYER_COUNT; id++) {
		struct entry *e = find_entry(&c->layers[id], key->name);
		struct abx_err err = ABX_ERR_INIT;

		if (!e)
			continue;
		if (is_secret(key) && e->value)
			abx_redact_add(e->value);
		if (is_secret(key) && (id == LAYER_PROJECT || id == LAYER_GLOBAL))
			abx_warn("%s: line %u: '%s' is a secret and is not read from there "
				 "(agentbox config set %s puts it where it belongs)",
				 c->layers[id].path, e->line, e->key, e->key);
		if (check_entry(c, key, (enum layer_id)id, e, &err) < 0 && !c->problem.code)
			c->problem = err;
	}
}

/* The variable of a key; secrets.env has the same name. */
static void read_env(struct abx_config *c, const struct abx_config_key *key)
{
	const char *value = key->env ? secure_getenv(key->env) : NULL;

	/* An empty one is how a variable is taken back in a shell. */
	if (value && *value)
		set_entry(c, LAYER_ENV, key->name, value, 0);
	if (is_secret(key) && key->env) {
		value = abx_env_get(&c->secrets, key->env);
		if (value)
			set_entry(c, LAYER_SECRETS, key->name, value, 0);
	}
}

static void declare(struct abx_config *c, const struct abx_config_key *key)
{
	struct abx_config_key copy = *key;

	if (find_key(c, key->name))
		return;
	copy.name = keep(c, key->name);
	copy.env = keep(c, key->env);
	copy.dflt = keep(c, key->dflt);
	copy.help = keep(c, key->help);
	c->keys = abx_xreallocarray(c->keys, c->n_keys + 1, sizeof(*c->keys));
	c->keys[c->n_keys++] = copy;
	read_env(c, &copy);
	judge_key(c, &copy);
}

static void warn_once(struct abx_config *c, enum layer_id id, const struct entry *e)
{
	abx_autofree char *what = abx_xasprintf("%s: line %u: unknown key '%s' is ignored",
						c->layers[id].path, e->line, e->key);
	char shown[1024];

	for (size_t i = 0; i < c->warned.len; i++)
		if (strcmp(c->warned.items[i], e->key) == 0)
			return;
	abx_strv_add(&c->warned, e->key);
	abx_quote_text(what, shown, sizeof(shown));
	abx_warn("%s", shown);
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
	for (int id = LAYER_PROJECT; id < LAYER_COUNT; id++) {
		const struct layer *l = &c->layers[id];

		for (size_t i = 0; i < l->len; i++)
			if (in_section(l->items[i].key, section) &&
			    !find_key(c, l->items[i].key))
				warn_once(c, (enum layer_id)id, &l->items[i]);
	}
}

static void take_items(struct abx_config *c, enum layer_id id, const struct abx_yaml_items *items)
{
	c->layers[id].len = 0;
	for (size_t i = 0; i < items->len; i++)
		if (!items->items[i].is_null)
			set_entry(c, id, items->items[i].key, items->items[i].value,
				  items->items[i].line);
}

/* 0 with an empty buffer when there is no such file. */
static int read_file(const char *path, struct abx_buf *text, struct abx_err *err)
{
	int r = abx_fs_read(AT_FDCWD, path, text);

	if (r == -ENOENT || r == -ENOTDIR)
		return 0;
	if (r == -EFBIG)
		return abx_err_set(err, ABX_EINVAL, "%s: larger than %u bytes", path,
				   ABX_YAML_MAX_BYTES);
	return r < 0 ? abx_err_errno(err, r, "read '%s'", path) : 0;
}

static int read_layer(struct abx_config *c, enum layer_id id, const char *root,
		      struct abx_err *err)
{
	abx_auto(abx_buf) struct abx_buf text = ABX_BUF_INIT(ABX_YAML_MAX_BYTES);
	struct abx_yaml_items items = {NULL, 0};
	const char *path = c->layers[id].path;
	int r;

	if (!path)
		return 0;
	r = read_file(path, &text, err);
	if (r == 0)
		r = abx_yaml_read(path, abx_buf_str(&text), text.len, root, &items, err);
	if (r < 0)
		return r;
	take_items(c, id, &items);
	abx_yaml_items_release(&items);
	return 0;
}

static int read_secrets(struct abx_config *c, struct abx_err *err)
{
	const char *path = c->layers[LAYER_SECRETS].path;
	struct abx_env fresh = {NULL, 0};
	struct stat st;
	int r;

	if (stat(path, &st) < 0 && errno == ENOENT)
		return 0;
	if ((st.st_mode & 077) && chmod(path, 0600) == 0)
		abx_warn("'%s' could be read by others (mode %04o); it cannot any more", path,
			 (unsigned int)(st.st_mode & 07777));
	r = abx_env_load(&fresh, path, err);
	if (r < 0) {
		abx_env_release(&fresh);
		return r;
	}
	abx_env_release(&c->secrets);
	c->secrets = fresh;
	for (size_t i = 0; i < c->secrets.len; i++)
		abx_redact_add(c->secrets.items[i].value);
	return 0;
}

static int read_own(struct abx_config *c, enum layer_id id, struct abx_err *err)
{
	return id == LAYER_SECRETS ? read_secrets(c, err) : read_layer(c, id, NULL, err);
}

/* A file of ours: a damaged one is set aside and the layer is empty. */
static int load_own(struct abx_config *c, enum layer_id id, bool locked, struct abx_err *err)
{
	struct abx_err why = ABX_ERR_INIT;
	abx_autoclose int lock_fd = -1;
	const char *reason;
	int r = read_own(c, id, &why);

	if (r == ABX_EINVAL && !locked) {
		lock_fd = abx_lock_home(c->home, err);
		if (lock_fd < 0)
			return lock_fd;
		r = read_own(c, id, &why);
	}
	if (r == ABX_EINVAL) {
		reason = strstr(why.text, ": ");
		return abx_set_aside(c->home, c->layers[id].relative, NULL,
				     reason ? reason + 2 : why.text, err);
	}
	if (r < 0 && err)
		*err = why;
	return r;
}

static void set_paths(struct abx_config *c, const char *project_key, const char *workspace)
{
	struct layer *l = c->layers;

	l[LAYER_GLOBAL].relative = abx_xstrdup("config.yaml");
	l[LAYER_SECRETS].relative = abx_xstrdup(SECRETS_FILE);
	if (project_key)
		l[LAYER_PROJECT].relative = abx_xasprintf("projects/%s/config.yaml", project_key);
	for (int id = 0; id < LAYER_COUNT; id++)
		if (l[id].relative)
			l[id].path = abx_home_path(c->home, "%s", l[id].relative);
	if (workspace)
		l[LAYER_REPOSITORY].path = abx_xasprintf("%s/" REPOSITORY_FILE, workspace);
}

static int load_all(struct abx_config *c, struct abx_err *err)
{
	int r = load_own(c, LAYER_SECRETS, false, err);

	if (r == 0)
		r = load_own(c, LAYER_GLOBAL, false, err);
	if (r == 0)
		r = load_own(c, LAYER_PROJECT, false, err);
	if (r == 0)
		r = read_layer(c, LAYER_REPOSITORY, REPOSITORY_ROOT, err);
	return r;
}

int abx_config_open_edit(const struct abx_home *home, const char *project_key,
			 const char *workspace, struct abx_config **ret, struct abx_err *err)
{
	struct abx_config *c = abx_xcalloc(1, sizeof(*c));
	int r;

	c->home = home;
	set_paths(c, project_key, workspace);
	r = load_all(c, err);
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
	for (int id = 0; id < LAYER_COUNT; id++) {
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
		struct abx_config_key key = {.name = name, .env = o->env, .dflt = o->dflt,
					     .help = o->help, .type = o->type, .flags = o->flags};

		if (!o->env && (o->flags & ABX_OPT_SECRET))
			key.env = made;
		declare(c, &key);
	}
	warn_unknown(c, provider);
}

int abx_config_set_flag(struct abx_config *c, const char *key, const char *value,
			struct abx_err *err)
{
	const struct abx_config_key *k = find_key(c, key);
	const struct entry e = {.key = key, .value = value};
	int r = k ? check_entry(c, k, LAYER_FLAG, &e, err) : abx_config_check(c, key, value, err);

	if (r < 0)
		return r;
	if (is_secret(k))
		abx_redact_add(value);
	set_entry(c, LAYER_FLAG, key, value, 0);
	return 0;
}

const char *abx_config_get(const struct abx_config *c, const char *key, const char **ret_source)
{
	const struct abx_config_key *k = find_key(c, key);

	if (!k)
		return NULL;
	for (int id = 0; id < LAYER_COUNT; id++) {
		const struct entry *e = find_entry(&c->layers[id], key);

		if (!e || !e->value || !may_set(k, (enum layer_id)id) ||
		    check_entry(c, k, (enum layer_id)id, e, NULL) < 0)
			continue;
		if (ret_source)
			*ret_source = layer_names[id];
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
	for (int id = LAYER_PROJECT; id < LAYER_COUNT; id++) {
		for (size_t j = 0; j < c->layers[id].len; j++) {
			const struct entry *e = &c->layers[id].items[j];

			if (find_key(c, e->key) || i--)
				continue;
			*ret_value = e->value;
			*ret_source = layer_names[id];
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
	const struct abx_config_key *k = find_key(c, key);

	if (!k)
		return unknown_key(key, err);
	if (abx_config_check_type(k, value, err) < 0) {
		(void)abx_err_wrap(err, "%s", key);
		return ABX_EINVAL;
	}
	return 0;
}

static int write_own(const struct abx_config *c, enum layer_id id, const char *text, size_t len,
		     struct abx_err *err)
{
	const char *path = c->layers[id].path;
	int r = abx_fs_write_atomic(AT_FDCWD, path, text, len, 0600, /* durable= */ true);

	return r < 0 ? abx_err_errno(err, r, "write '%s'", path) : 0;
}

static int store_secret(struct abx_config *c, const struct abx_config_key *key, const char *value,
			struct abx_err *err)
{
	abx_autofree char *text = NULL;
	int r = load_own(c, LAYER_SECRETS, true, err);

	if (r < 0)
		return r;
	if (value)
		abx_env_set(&c->secrets, key->env, value);
	else
		abx_env_unset(&c->secrets, key->env);
	text = abx_env_format(&c->secrets);
	r = write_own(c, LAYER_SECRETS, text, strlen(text), err);
	explicit_bzero(text, strlen(text));
	if (r < 0)
		return r;
	if (value)
		abx_redact_add(value);
	set_entry(c, LAYER_SECRETS, key->name, value, 0);
	return 0;
}

static int store_plain(struct abx_config *c, enum layer_id id, const char *key, const char *value,
		       struct abx_err *err)
{
	abx_auto(abx_buf) struct abx_buf old = ABX_BUF_INIT(ABX_YAML_MAX_BYTES);
	abx_auto(abx_buf) struct abx_buf text = ABX_BUF_INIT(ABX_YAML_MAX_BYTES);
	abx_autofree char *dir = NULL;
	const char *path = c->layers[id].path;
	int r = load_own(c, id, true, err);

	if (r == 0)
		r = read_file(path, &old, err);
	if (r == 0)
		r = abx_yaml_edit(path, abx_buf_str(&old), old.len, key, value, &text, err);
	if (r == 0 && text.len == old.len && memcmp(abx_buf_str(&text), abx_buf_str(&old), old.len) == 0)
		return 0;
	if (r == 0 && id == LAYER_PROJECT) {
		const char *relative = c->layers[id].relative;
		int len = (int)(strrchr(relative, '/') - relative);

		r = abx_home_dir(c->home, &dir, err, "%.*s", len, relative);
	}
	if (r == 0)
		r = write_own(c, id, abx_buf_str(&text), text.len, err);
	return r == 0 ? read_layer(c, id, NULL, err) : r;
}

int abx_config_store(struct abx_config *c, bool global, const char *key, const char *value,
		     struct abx_err *err)
{
	const struct abx_config_key *k = find_key(c, key);
	enum layer_id id = global ? LAYER_GLOBAL : LAYER_PROJECT;
	abx_autoclose int lock_fd = -1;
	int r = value ? abx_config_check(c, key, value, err) : 0;

	if (r < 0)
		return r;
	if (!k && !strchr(key, '.'))
		return unknown_key(key, err);
	if (!c->layers[id].path && !(k && is_secret(k))) {
		(void)abx_err_set(err, ABX_EUSAGE, "%s: there is no project here", key);
		(void)abx_err_remedy(err, "use --global");
		return ABX_EUSAGE;
	}
	lock_fd = abx_lock_home(c->home, err);
	if (lock_fd < 0)
		return lock_fd;
	return k && is_secret(k) ? store_secret(c, k, value, err)
				 : store_plain(c, id, key, value, err);
}

const char *abx_config_path(const struct abx_config *c, const char *layer)
{
	for (int id = 0; id < LAYER_COUNT; id++)
		if (strcmp(layer_names[id], layer) == 0)
			return c->layers[id].path;
	return NULL;
}
