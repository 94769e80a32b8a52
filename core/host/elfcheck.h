/* SPDX-License-Identifier: MIT */
/*
 * core/host/elfcheck.h: would the dynamic linker survive this file?
 *
 * It trusts what it maps: an index or address out of range makes it read or write memory that
 * is not the library's, with an effect that differs from process to process, so that a probe
 * can pass where the next load crashes.  This walks the same tables first, in a copy, and
 * refuses a file in which anything points outside: segments, dynamic section, symbols,
 * versions, relocations, initialisers.  Nothing that a linker makes is refused.
 *
 * It says nothing about the code in the file.
 */
#ifndef ABX_ELFCHECK_H
#define ABX_ELFCHECK_H

#include "core/util/err.h"

/* abx_elfnote_read() has passed.  ABX_EPROVIDER "PATH: damaged: ..." */
int abx_elfcheck(int fd, const char *path, struct abx_err *err);

#endif
