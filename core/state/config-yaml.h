/* SPDX-License-Identifier: MIT */
/*
 * core/state/config-yaml.h: a YAML mapping as a list of dotted keys.
 *
 *	box:
 *	  image: debian           gives  box.image = debian
 *	  ports: [80, 443]               box.ports = 80,443
 *
 * Scalars are text, whatever they look like; null is no value.  A list of scalars is joined
 * by commas; any other list has no value here but keeps its place.  Refused with the line:
 * a key that is there twice, aliases (a few lines of them can stand for gigabytes), merge
 * keys, more than one document, nesting deeper than 16, keys that are not text.  What is
 * outside `root` is only checked for being YAML.
 */
#ifndef ABX_CONFIG_YAML_H
#define ABX_CONFIG_YAML_H

#include <stddef.h>

#include "core/util/err.h"

#define ABX_YAML_MAX_BYTES (1u << 20)
#define ABX_YAML_MAX_DEPTH 16

struct abx_yaml_item {
	char *key;
	char *value; /* NULL: null, or nothing that fits in a text */
	bool is_null, is_list;
	bool in_flow;	   /* inside { } */
	unsigned int line; /* from 1 */
	/* Of the key, of the value and its end: characters from the start, without a byte
	 * order mark, as libyaml counts. */
	size_t key_at, value_at, value_end;
};

struct abx_yaml_items {
	struct abx_yaml_item *items;
	size_t len;
	struct abx_yaml_other { /* with a root: what else is on the top level */
		char *key;
		unsigned int line;
	} * others;
	size_t n_others;
};

void abx_yaml_items_release(struct abx_yaml_items *l);

/* `name` is for messages; root NULL: the whole document.  Leaves only.  ABX_EINVAL. */
int abx_yaml_read(const char *name, const char *text, size_t len, const char *root,
		  struct abx_yaml_items *ret, struct abx_err *err);

/* Where the mapping of the section `key` of the top level is; for editing. */
struct abx_yaml_section {
	bool found, in_flow, is_null;
	size_t key_at, value_at, value_end; /* of a block mapping: its first key */
};
int abx_yaml_find_section(const char *name, const char *text, size_t len, const char *key,
			  struct abx_yaml_section *ret, struct abx_err *err);

#endif
