/* SPDX-License-Identifier: MIT */
/*
 * core/state/config.h: settings in layers.
 *
 * Highest first: flag, environment, project (projects/<key>/config.yaml), the repository's
 * agentbox.yaml `defaults:`, global config.yaml, built-in.  A key is `section.name`, declared
 * once, with type, default, help, environment variable, and whether a repository may set it.
 * Providers' option tables add keys `<provider>.<option>` when their plugin is loaded.
 *
 * A repository is not trusted: a key there that it may not set is ABX_EPOLICY, naming key
 * and file.  An unknown key warns once and is kept.  A file that cannot be parsed is set
 * aside as <file>.damaged-<time> when it is ours, with a warning; a repository's is an error.
 */
#ifndef ABX_CONFIG_H
#define ABX_CONFIG_H

#include "core/state/home.h"

struct abx_config_key {
	const char *name, *env, *dflt, *help;
	uint32_t type;	/* ABX_OPT_STRING ... */
	uint32_t flags; /* ABX_OPT_SECRET, ABX_OPT_WORKSPACE_OK */
};

struct abx_config;

/* workspace and project may be NULL: then only the global layer. */
int abx_config_open(const struct abx_home *home, const char *project_key, const char *workspace,
		    struct abx_config **ret, struct abx_err *err);
void abx_config_close(struct abx_config *c);

/* Add a provider's options; the keys are copied. */
void abx_config_declare_provider(struct abx_config *c, const char *provider,
				 const struct abx_option *const *options);
/* A value from the command line, above all else. */
int abx_config_set_flag(struct abx_config *c, const char *key, const char *value,
			struct abx_err *err);

/* The effective value or NULL; lives as long as `c`.  ret_source may be NULL; else "flag",
 * "env", "project", "repository", "global", "default". */
const char *abx_config_get(const struct abx_config *c, const char *key, const char **ret_source);

/* Declared keys, in order; `ret` lives as long as `c`. */
size_t abx_config_keys(const struct abx_config *c, const struct abx_config_key **ret);
/* Check a value against the key's type; ABX_EUSAGE for an unknown key. */
int abx_config_check(const struct abx_config *c, const char *key, const char *value,
		     struct abx_err *err);

/* Write to the project's file (or the global one); value NULL removes the key.  Secret keys
 * go to secrets.env instead.  Unknown keys in the file are kept. */
int abx_config_store(struct abx_config *c, bool global, const char *key, const char *value,
		     struct abx_err *err);
/* Path of the file of a layer: "global", "project", "repository"; NULL when there is none. */
const char *abx_config_path(const struct abx_config *c, const char *layer);

#endif
