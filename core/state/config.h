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
 * A value of the wrong type is ABX_EINVAL when it is loaded, naming key and file.
 *
 * Keys of providers in these files are judged when their plugin is loaded and its options
 * are declared; ask abx_config_problem() then.  Until they are, no such value is given out.
 *
 * Secret keys come from their environment variable, then from secrets.env under the same
 * name, and from no other file; what is found there is redacted from then on.
 *
 *	r = abx_config_open(&app->home, key, workspace, &config, err);
 *	...
 *	abx_config_declare_provider(config, "e2b", backend->options);
 *	r = abx_config_problem(config, err);
 *	...
 *	region = abx_config_get(config, "e2b.region", NULL);
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
/* The same, but wrong values and forbidden keys are not refused (they are still never given
 * out, see abx_config_problem()): for showing and mending the configuration. */
int abx_config_open_edit(const struct abx_home *home, const char *project_key,
			 const char *workspace, struct abx_config **ret, struct abx_err *err);
void abx_config_close(struct abx_config *c);

/* Add a provider's options; the keys are copied. */
void abx_config_declare_provider(struct abx_config *c, const char *provider,
				 const struct abx_option *const *options);
/* The first wrong value or forbidden key among the declared ones: its error, or 0. */
int abx_config_problem(const struct abx_config *c, struct abx_err *err);
/* A value from the command line, above all else. */
int abx_config_set_flag(struct abx_config *c, const char *key, const char *value,
			struct abx_err *err);

/* The effective value or NULL; lives as long as `c`.  ret_source may be NULL; else "flag",
 * "env", "secrets", "project", "repository", "global", "default". */
const char *abx_config_get(const struct abx_config *c, const char *key, const char **ret_source);

/* Declared keys, in order; `ret` lives as long as `c`. */
size_t abx_config_keys(const struct abx_config *c, const struct abx_config_key **ret);
/* Undeclared keys that are set in a file, for showing: 0-based, NULL behind the last one. */
const char *abx_config_undeclared(const struct abx_config *c, size_t i, const char **ret_value,
				  const char **ret_source);
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
