/* SPDX-License-Identifier: MIT */
/*
 * core/host/registry.h: which providers there are, without loading any.
 *
 * Looked for as agentbox-<name>.so in each absolute entry of AGENTBOX_PROVIDER_PATH, then in
 * $(libdir)/agentbox/providers; the first match wins.  Only the ELF note is read.  A file that
 * is not usable stays in the list with its reason, and never hinders the others.
 */
#ifndef ABX_REGISTRY_H
#define ABX_REGISTRY_H

#include "core/util/err.h"

struct abx_provider_file {
	char *name, *path, *version;
	uint16_t abi_major, abi_minor, abi_minor_min;
	bool shadowed;		/* an earlier directory has one of that name */
	struct abx_err problem; /* code 0 when usable so far */
};
struct abx_provider_files {
	struct abx_provider_file *items;
	size_t len;
};
void abx_provider_files_release(struct abx_provider_files *l);

int abx_registry_scan(struct abx_provider_files *ret, struct abx_err *err);
/* By name, or by absolute path.  ABX_EPROVIDER with the first real reason. */
int abx_registry_find(const char *name, struct abx_provider_file *ret, struct abx_err *err);
void abx_provider_file_release(struct abx_provider_file *f);

#endif
