/* SPDX-License-Identifier: MIT */
/*
 * core/host/descriptor.h: the table that a plugin returns, checked and copied.
 *
 * Only the copy is used afterwards: operations that an older, shorter table does not have
 * are NULL there.  The plugin's strings and option tables are static and are not copied.
 */
#ifndef ABX_DESCRIPTOR_H
#define ABX_DESCRIPTOR_H

#include <cjson/cJSON.h>

#include "core/host/elfnote.h"

/* Every operation of the table, in its order. */
struct abx_op_info {
	const char *name;
	size_t offset;
	bool required;
};
extern const struct abx_op_info abx_op_infos[]; /* ends with name NULL */

bool abx_descriptor_has(const struct abx_cloud_backend *table, const struct abx_op_info *op);

/* ABX_EPROVIDER "PATH: provider 'x' ..." */
int abx_descriptor_take(const struct abx_cloud_backend *theirs, const struct abx_elfnote *note,
			const char *path, struct abx_cloud_backend *ret, struct abx_err *err);

/* What `agentbox provider info --json` prints. */
cJSON *abx_descriptor_json(const struct abx_cloud_backend *theirs,
			   const struct abx_cloud_backend *table, const char *path);

#endif
