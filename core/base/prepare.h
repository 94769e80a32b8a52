/* SPDX-License-Identifier: MIT */
/*
 * core/base/prepare.h: making the images that boxes boot from, and clearing them away.
 *
 * Journaled (core/state/attempt.h): a build that was interrupted is found by its label and
 * removed.  What was made is in <provider>-prepared.json before the call returns.
 */
#ifndef ABX_PREPARE_H
#define ABX_PREPARE_H

#include "core/base/prepared.h"
#include "core/host/cloud.h"

struct abx_preparer {
	const struct abx_home *home;
	struct abx_db *db;
	struct abx_cloud *cloud;
};

struct abx_prepare_request {
	/* [a-z0-9][a-z0-9._:-]*; NULL: what it is made from, ABX_PREPARED_DEFAULT for a path. */
	const char *name;
	/* A name that the provider understands ("debian:bookworm"), or a path (it begins with a
	 * slash or a dot) of a root file system: a tar file, on this machine also a directory. */
	const char *from;
	bool force; /* although there is one of that name, made from the same */
	const struct abx_log_sink *log;
};

/* ret_made: it was not there already. */
int abx_prepare_image(const struct abx_preparer *p, const struct abx_prepare_request *req,
		      struct abx_prepared *ret, bool *ret_made, struct abx_err *err);

/* Images of this install at the provider. */
int abx_prepare_list(const struct abx_preparer *p, struct abx_snapshot_list *ret,
		     struct abx_err *err);
/* `what` is a prepared name or the provider's; ABX_ENOBOX when this install has none such.
 * *ret_there: the provider has it too. */
int abx_prepare_find(const struct abx_preparer *p, const char *what, char **ret_ref,
		     bool *ret_there, struct abx_err *err);
/* One that the provider lost is only forgotten here. */
int abx_prepare_remove(const struct abx_preparer *p, const char *ref, bool there,
		       struct abx_err *err);

#endif
