/* SPDX-License-Identifier: MIT */
/*
 * core/host/elfnote.h: the `.note.agentbox` note of a plugin, read without loading it.
 *
 *	struct abx_elfnote note;
 *	int r = abx_elfnote_read(fd, path, &note, err);
 *
 *	if (r == 0)
 *		r = abx_elfnote_check_abi(&note, path, err);
 *
 * Only pread() touches the file, so one that is truncated meanwhile cannot fault us.  It must
 * be a shared object for this machine whose segments lie inside the file.  Everything else is
 * ABX_EPROVIDER, with the path in front of the reason.
 */
#ifndef ABX_ELFNOTE_H
#define ABX_ELFNOTE_H

#include "core/util/err.h"

struct abx_elfnote {
	uint16_t abi_major, abi_minor, abi_minor_min;
	char name[ABX_NOTE_NAME_BYTES], version[ABX_NOTE_VERSION_BYTES]; /* terminated */
};

/* `path` is for messages. */
int abx_elfnote_read(int fd, const char *path, struct abx_elfnote *ret, struct abx_err *err);

/* Can this program use it?  Says both versions and which side to change when not. */
int abx_elfnote_check_abi(const struct abx_elfnote *note, const char *path, struct abx_err *err);

#endif
