/* SPDX-License-Identifier: MIT */
/* core/util/rand.h: unguessable identifiers, from the kernel. */
#ifndef ABX_RAND_H
#define ABX_RAND_H

#include <stddef.h>
#include <stdint.h>

/* `digits` hexadecimal digits and the terminator; ends the program if the kernel has none. */
void abx_rand_hex(char *text, size_t digits);
/* RFC 9562 version 4, 36 characters and the terminator. */
#define ABX_UUID_BYTES 37
void abx_rand_uuid(char text[ABX_UUID_BYTES]);
uint32_t abx_rand_below(uint32_t bound);
/* FNV-1a: a short stable key for a path; not for anything that an attacker may choose. */
uint64_t abx_hash_text(const char *text);

#endif
