/* SPDX-License-Identifier: MIT */
/*
 * core/host/options.h: what a provider asked to be configured with.
 *
 * Each option of its table is looked up as `<provider>.<name>`, checked by type and brought
 * into the form that sessions get: durations in milliseconds, sizes in bytes, booleans as
 * true or false.  An option without a value is left out.  A required one that is missing is
 * ABX_EAUTH when it is a secret and ABX_EUSAGE otherwise.  Secrets are redacted from then on.
 */
#ifndef ABX_OPTIONS_H
#define ABX_OPTIONS_H

#include "core/state/config.h"
#include "core/util/mem.h"

struct abx_options {
	struct abx_kv *all, *per_box; /* pointers into `texts` and into the plugin */
	uint32_t n_all, n_per_box;
	struct abx_strv texts;
};

/* config NULL: environment and defaults only. */
int abx_options_resolve(const struct abx_cloud_backend *table, struct abx_config *config,
			struct abx_options *ret, struct abx_err *err);
void abx_options_release(struct abx_options *o);

/* Keep a secret that a provider learned, as its option `key`. */
int abx_options_store_secret(const struct abx_home *home, const char *provider,
			     const struct abx_option *const *options, const char *key,
			     const char *value, struct abx_err *err);

#endif
