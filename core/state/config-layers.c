/* SPDX-License-Identifier: MIT */
/* Where settings come from: the layers and their files. */
#include "core/state/config-layers.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "abxsdk/fs.h"
#include "core/state/aside.h"
#include "core/state/config-edit.h"
#include "core/state/config-yaml.h"
#include "core/state/lock.h"
#include "core/util/log.h"
#include "core/util/mem.h"
#include "core/util/parse.h"
#include "core/util/redact.h"

#define REPOSITORY_FILE "agentbox.yaml"
#define REPOSITORY_ROOT "defaults"
#define SECRETS_FILE "secrets.env"

const char *const abx_layer_names[ABX_LAYER_COUNT] = {
	[ABX_LAYER_FLAG] = "flag",
	[ABX_LAYER_ENV] = "env",
	[ABX_LAYER_SECRETS] = "secrets",
	[ABX_LAYER_PROJECT] = "project",
	[ABX_LAYER_REPOSITORY] = "repository",
	[ABX_LAYER_GLOBAL] = "global",
};

const char *abx_config_keep(struct abx_config *c, const char *text)
{
	if (!text)
		return NULL;
	abx_strv_add(&c->pool, text);
	return c->pool.items[c->pool.len - 1];
}

struct abx_entry *abx_layer_find(const struct abx_layer *l, const char *key)
{
	for (size_t i = 0; i < l->len; i++)
		if (strcmp(l->items[i].key, key) == 0)
			return &l->items[i];
	return NULL;
}

struct abx_entry *abx_layer_set(struct abx_config *c, enum abx_layer_id id, const char *key,
				const char *value, unsigned int line)
{
	struct abx_layer *l = &c->layers[id];
	struct abx_entry *e = abx_layer_find(l, key);

	if (!e) {
		l->items = abx_xreallocarray(l->items, l->len + 1, sizeof(*l->items));
		e = &l->items[l->len++];
		e->key = abx_config_keep(c, key);
	}
	e->value = abx_config_keep(c, value);
	e->line = line;
	e->is_list = false;
	return e;
}

static void take_items(struct abx_config *c, enum abx_layer_id id,
		       const struct abx_yaml_items *items)
{
	c->layers[id].len = 0;
	for (size_t i = 0; i < items->len; i++) {
		const struct abx_yaml_item *item = &items->items[i];

		if (!item->is_null)
			abx_layer_set(c, id, item->key, item->value, item->line)->is_list =
				item->is_list;
	}
}

/* A later version may know it; this one says that it does not. */
static void warn_others(const char *path, const struct abx_yaml_items *items)
{
	static const char *const known[] = {REPOSITORY_ROOT, "services", "tasks",
					    "replacements",  "ide",	 "carry"};
	char shown[128];

	for (size_t i = 0; i < items->n_others; i++) {
		size_t k = 0;

		while (k < ABX_N_ELEMENTS(known) && strcmp(items->others[i].key, known[k]) != 0)
			k++;
		if (k < ABX_N_ELEMENTS(known))
			continue;
		abx_quote_text(items->others[i].key, shown, sizeof(shown));
		abx_warn("%s: line %u: unknown key '%s' is ignored", path, items->others[i].line,
			 shown);
	}
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

static int read_layer(struct abx_config *c, enum abx_layer_id id, const char *root,
		      struct abx_err *err)
{
	abx_auto(abx_buf) struct abx_buf text = ABX_BUF_INIT(ABX_YAML_MAX_BYTES);
	struct abx_yaml_items items = {0};
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
	if (root)
		warn_others(path, &items);
	abx_yaml_items_release(&items);
	return 0;
}

static int read_secrets(struct abx_config *c, struct abx_err *err)
{
	const char *path = c->layers[ABX_LAYER_SECRETS].path;
	struct abx_env fresh = {NULL, 0};
	/* What somebody put in its place is neither followed nor changed. */
	abx_autoclose int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	int r;

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0 && errno == ELOOP) {
		(void)abx_err_set(err, ABX_EPERM, "'%s' is a symbolic link", path);
		return abx_err_remedy(err, "put the file itself there");
	}
	if (fd < 0 || fstat(fd, &st) < 0)
		return abx_err_errno(err, errno, "read '%s'", path);
	if (!S_ISREG(st.st_mode))
		return abx_err_set(err, ABX_ECORRUPT, "'%s' is not a regular file", path);
	if ((st.st_mode & 077) && st.st_uid == geteuid() && fchmod(fd, 0600) == 0)
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

static int read_own(struct abx_config *c, enum abx_layer_id id, struct abx_err *err)
{
	return id == ABX_LAYER_SECRETS ? read_secrets(c, err) : read_layer(c, id, NULL, err);
}

/* A file of ours: a damaged one is set aside and the layer is empty. */
static int load_own(struct abx_config *c, enum abx_layer_id id, bool locked, struct abx_err *err)
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

void abx_layers_set_paths(struct abx_config *c, const char *project_key, const char *workspace)
{
	struct abx_layer *l = c->layers;

	l[ABX_LAYER_GLOBAL].relative = abx_xstrdup("config.yaml");
	l[ABX_LAYER_SECRETS].relative = abx_xstrdup(SECRETS_FILE);
	if (project_key)
		l[ABX_LAYER_PROJECT].relative =
			abx_xasprintf("projects/%s/config.yaml", project_key);
	for (int id = 0; id < ABX_LAYER_COUNT; id++)
		if (l[id].relative)
			l[id].path = abx_home_path(c->home, "%s", l[id].relative);
	if (workspace)
		l[ABX_LAYER_REPOSITORY].path = abx_xasprintf("%s/" REPOSITORY_FILE, workspace);
}

int abx_layers_load(struct abx_config *c, struct abx_err *err)
{
	int r = load_own(c, ABX_LAYER_SECRETS, false, err);

	if (r == 0)
		r = load_own(c, ABX_LAYER_GLOBAL, false, err);
	if (r == 0)
		r = load_own(c, ABX_LAYER_PROJECT, false, err);
	if (r == 0)
		r = read_layer(c, ABX_LAYER_REPOSITORY, REPOSITORY_ROOT, err);
	return r;
}

static int write_own(const struct abx_config *c, enum abx_layer_id id, const char *text, size_t len,
		     struct abx_err *err)
{
	const char *path = c->layers[id].path;
	int r = abx_fs_write_atomic(AT_FDCWD, path, text, len, 0600, /* durable= */ true);

	return r < 0 ? abx_err_errno(err, r, "write '%s'", path) : 0;
}

int abx_layer_store_secret(struct abx_config *c, const struct abx_config_key *key,
			   const char *value, struct abx_err *err)
{
	abx_auto(abx_buf) struct abx_buf old = ABX_BUF_INIT(ABX_ENV_FILE_MAX_BYTES);
	abx_auto(abx_buf) struct abx_buf text = ABX_BUF_INIT(ABX_ENV_FILE_MAX_BYTES);
	const char *path = c->layers[ABX_LAYER_SECRETS].path;
	int r = load_own(c, ABX_LAYER_SECRETS, true, err);

	if (r == 0)
		r = read_file(path, &old, err);
	if (r == 0)
		r = abx_env_edit(path, abx_buf_str(&old), old.len, key->env, value, &text, err);
	if (r == 0)
		r = write_own(c, ABX_LAYER_SECRETS, abx_buf_str(&text), text.len, err);
	if (old.data)
		explicit_bzero(old.data, old.len);
	if (text.data)
		explicit_bzero(text.data, text.len);
	if (r < 0)
		return r;
	if (value)
		abx_env_set(&c->secrets, key->env, value);
	else
		abx_env_unset(&c->secrets, key->env);
	if (value)
		abx_redact_add(value);
	(void)abx_layer_set(c, ABX_LAYER_SECRETS, key->name, value, 0);
	return 0;
}

int abx_layer_store(struct abx_config *c, enum abx_layer_id id, const char *key, const char *value,
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
	if (r == 0 && text.len == old.len &&
	    memcmp(abx_buf_str(&text), abx_buf_str(&old), old.len) == 0)
		return 0;
	if (r == 0 && id == ABX_LAYER_PROJECT) {
		const char *relative = c->layers[id].relative;
		int len = (int)(strrchr(relative, '/') - relative);

		r = abx_home_dir(c->home, &dir, err, "%.*s", len, relative);
	}
	if (r == 0)
		r = write_own(c, id, abx_buf_str(&text), text.len, err);
	return r == 0 ? read_layer(c, id, NULL, err) : r;
}
