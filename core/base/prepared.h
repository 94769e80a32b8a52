/* SPDX-License-Identifier: MIT */
/*
 * core/base/prepared.h: the images that `prepare` made, <provider>-prepared.json.
 *
 * People and other programs read it, so it is replaced atomically; a damaged one is set aside.
 * Unknown members of an image are lost when the file is written, unknown images are not.
 */
#ifndef ABX_PREPARED_H
#define ABX_PREPARED_H

#include "core/state/home.h"
#include "core/util/err.h"

/* What new boxes boot from unless something else is said. */
#define ABX_PREPARED_DEFAULT "default"

struct abx_prepared {
	char *name; /* as `create --image` knows it */
	char *ref;  /* the provider's own name of it */
	char *from, *fingerprint, *created_at;
	char *attempt; /* core/state/attempt.h */
};
void abx_prepared_release(struct abx_prepared *p);

struct abx_prepared_list {
	struct abx_prepared *items;
	size_t len;
};
void abx_prepared_list_release(struct abx_prepared_list *l);
/* NULL when there is none. */
const struct abx_prepared *abx_prepared_find(const struct abx_prepared_list *l, const char *name);

/* The file's name below the home; free it. */
char *abx_prepared_file(const char *provider);
/* No file: an empty list. */
int abx_prepared_load(const struct abx_home *home, const char *provider,
		      struct abx_prepared_list *ret, struct abx_err *err);
/* Add it, in the place of one of the same name. */
int abx_prepared_put(const struct abx_home *home, const char *provider,
		     const struct abx_prepared *one, struct abx_err *err);
/* Forget all with this ref. */
int abx_prepared_drop(const struct abx_home *home, const char *provider, const char *ref,
		      struct abx_err *err);

#endif
