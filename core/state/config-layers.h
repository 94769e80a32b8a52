/* SPDX-License-Identifier: MIT */
/*
 * core/state/config-layers.h: where settings come from; for config.c and its neighbours only.
 *
 * A layer is a list of keys and texts.  Three of them are files: config-layers.c reads and
 * writes them.  What a key may be and who may set it is config.c's.
 */
#ifndef ABX_CONFIG_LAYERS_H
#define ABX_CONFIG_LAYERS_H

#include "core/state/config.h"
#include "core/state/envfile.h"

/* Highest first. */
enum abx_layer_id {
	ABX_LAYER_FLAG,
	ABX_LAYER_ENV,
	ABX_LAYER_SECRETS,
	ABX_LAYER_PROJECT,
	ABX_LAYER_REPOSITORY,
	ABX_LAYER_GLOBAL,
	ABX_LAYER_COUNT
};

struct abx_entry {
	const char *key, *value; /* in the pool */
	unsigned int line;
	bool is_list; /* several values, joined by commas */
};

struct abx_layer {
	struct abx_entry *items;
	size_t len;
	char *path;	/* of its file, or NULL */
	char *relative; /* the same below the home, or NULL */
};

struct abx_config {
	const struct abx_home *home;
	struct abx_layer layers[ABX_LAYER_COUNT];
	struct abx_env secrets;
	struct abx_config_key *keys;
	size_t n_keys;
	/* Every text that was ever given out: values live as long as the configuration. */
	struct abx_strv pool, warned;
	struct abx_err problem;
};

extern const char *const abx_layer_names[ABX_LAYER_COUNT];

const struct abx_config_key *abx_config_find_key(const struct abx_config *c, const char *name);
bool abx_config_is_secret(const struct abx_config_key *key);
/* A copy that lives as long as the configuration; NULL stays NULL. */
const char *abx_config_keep(struct abx_config *c, const char *text);

struct abx_entry *abx_layer_find(const struct abx_layer *l, const char *key);
struct abx_entry *abx_layer_set(struct abx_config *c, enum abx_layer_id id, const char *key,
				const char *value, unsigned int line);

void abx_layers_set_paths(struct abx_config *c, const char *project_key, const char *workspace);
/* Read every file; damaged ones of ours are set aside. */
int abx_layers_load(struct abx_config *c, struct abx_err *err);
/* Write one key (value NULL: remove it) and read the file again; call them under
 * abx_lock_home(). */
int abx_layer_store(struct abx_config *c, enum abx_layer_id id, const char *key, const char *value,
		    struct abx_err *err);
int abx_layer_store_secret(struct abx_config *c, const struct abx_config_key *key,
			   const char *value, struct abx_err *err);

#endif
