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

/* What images are made of where nothing else is said. */
#define ABX_PREPARE_FROM "debian:bookworm"

struct abx_preparer {
	const struct abx_home *home;
	struct abx_db *db;
	struct abx_cloud *cloud;
	/* For making images. */
	const struct abx_config *config;
	int cancel_fd; /* readable once the user gave up; -1 */
};

struct abx_prepare_request {
	/* [a-z0-9][a-z0-9._:-]*; NULL: what it is made from, ABX_PREPARED_DEFAULT for a path. */
	const char *name;
	/* A name that the provider understands ("debian:bookworm"), or a path (it begins with a
	 * slash or a dot) of a root file system: a tar file, on this machine also a directory.
	 * NULL, with ABX_CAP_NEEDS_BASE only: the default image, of ABX_PREPARE_FROM. */
	const char *from;
	bool force; /* although there is one of that name, made from the same */
	const struct abx_log_sink *log;
};

/* ret_made: it was not there already.  With ABX_CAP_NEEDS_BASE what it is made from is only
 * what the context (core/base/context.h) is put on, and two that are at it at once make one. */
int abx_prepare_image(const struct abx_preparer *p, const struct abx_prepare_request *req,
		      struct abx_prepared *ret, bool *ret_made, struct abx_err *err);

/* *ret: is it made of what one would be made of now?  Only a record with a fingerprint can tell;
 * of others it is true.  Nobody is asked whether it is there. */
int abx_prepare_is_current(const struct abx_preparer *p, const struct abx_prepared *one, bool *ret,
			   struct abx_err *err);

/* 1: the provider has an image of that name of its own; 0: it has none; < 0: nobody knows. */
int abx_prepare_is_there(const struct abx_preparer *p, const char *ref);

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
