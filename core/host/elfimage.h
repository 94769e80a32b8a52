/* SPDX-License-Identifier: MIT */
/*
 * core/host/elfimage.h: a plugin's file in memory, as elfcheck.c and its parts see it.
 *
 * Addresses are those of the file, before it is relocated.
 */
#ifndef ABX_ELFIMAGE_H
#define ABX_ELFIMAGE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>

#define ABX_ELF_MAX_LOADS 32
#define ABX_ELF_MAX_VERSION 0x7fff

struct abx_elfimage {
	const unsigned char *data;
	size_t size;
	Elf64_Phdr loads[ABX_ELF_MAX_LOADS];
	size_t n_loads;
	/* From the dynamic section; an address of 0 means that there is none. */
	Elf64_Dyn dynamic[256];
	size_t n_dynamic, n_symbols;
	const char *why; /* the first thing that is wrong */
};

/* Remember why; always false. */
bool abx_elf_wrong(struct abx_elfimage *e, const char *why);
/* `len` bytes of the file that are mapped at `address`, or NULL. */
const void *abx_elf_at(const struct abx_elfimage *e, uint64_t address, uint64_t len);
/* Does [address, address + len) lie in one segment that has these permissions (PF_*)? */
bool abx_elf_mapped(const struct abx_elfimage *e, uint64_t address, uint64_t len, uint32_t flags);
/* The value of a tag, 0 when there is none. */
uint64_t abx_elf_tag(const struct abx_elfimage *e, int64_t tag);

/* elfcheck-symbols.c: hash tables, symbols and their versions. */
bool abx_elf_check_symbols(struct abx_elfimage *e);
/* elfcheck-relocs.c: relocations and initialisers. */
bool abx_elf_check_relocations(struct abx_elfimage *e);

#endif
