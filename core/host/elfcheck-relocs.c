/* SPDX-License-Identifier: MIT */
/* Would the dynamic linker survive this file?  Relocations and initialisers. */
#include <string.h>

#include "core/host/elfimage.h"

#if defined(__x86_64__)
#define R_RELATIVE R_X86_64_RELATIVE
#define R_IRELATIVE R_X86_64_IRELATIVE
#define R_NONE R_X86_64_NONE
static const uint32_t symbolic[] = {R_X86_64_64, R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT};
static const uint32_t thread_local_[] = {R_X86_64_DTPMOD64, R_X86_64_DTPOFF64, R_X86_64_TPOFF64,
					 R_X86_64_TLSDESC};
#else
#define R_RELATIVE R_AARCH64_RELATIVE
#define R_IRELATIVE R_AARCH64_IRELATIVE
#define R_NONE R_AARCH64_NONE
static const uint32_t symbolic[] = {R_AARCH64_ABS64, R_AARCH64_GLOB_DAT, R_AARCH64_JUMP_SLOT};
static const uint32_t thread_local_[] = {R_AARCH64_TLS_DTPMOD, R_AARCH64_TLS_DTPREL,
					 R_AARCH64_TLS_TPREL, R_AARCH64_TLSDESC};
#endif

/* Not in every <elf.h>. */
#define RELRSZ_TAG 35
#define RELR_TAG 36

static bool is_one_of(uint32_t type, const uint32_t *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (list[i] == type)
			return true;
	return false;
}

/* An address that the file means: in it, or just behind one of its parts. */
static bool inside(const struct abx_elfimage *e, uint64_t address)
{
	return abx_elf_mapped(e, address, 0, 0);
}

static bool in_array(const struct abx_elfimage *e, uint64_t address, int64_t tag, int64_t size_tag)
{
	const uint64_t at = abx_elf_tag(e, tag), size = abx_elf_tag(e, size_tag);

	return address >= at && address - at < size;
}

static bool check_one(struct abx_elfimage *e, const Elf64_Rela *r)
{
	const uint32_t type = (uint32_t)ELF64_R_TYPE(r->r_info);
	const uint64_t addend = (uint64_t)r->r_addend;

	if (type == R_NONE)
		return true;
	if (!abx_elf_mapped(e, r->r_offset, 8, PF_W))
		return abx_elf_wrong(e, "a relocation outside its data");
	if (ELF64_R_SYM(r->r_info) >= e->n_symbols)
		return abx_elf_wrong(e, "a relocation without a symbol");
	if (type == R_RELATIVE || type == R_IRELATIVE) {
		const bool runs = type == R_IRELATIVE ||
				  in_array(e, r->r_offset, DT_INIT_ARRAY, DT_INIT_ARRAYSZ) ||
				  in_array(e, r->r_offset, DT_FINI_ARRAY, DT_FINI_ARRAYSZ);

		if (runs ? !abx_elf_mapped(e, addend, 1, PF_X) : !inside(e, addend))
			return abx_elf_wrong(e, "a pointer outside the file");
		return true;
	}
	if (is_one_of(type, symbolic, sizeof(symbolic) / sizeof(symbolic[0])) ||
	    is_one_of(type, thread_local_, sizeof(thread_local_) / sizeof(thread_local_[0])))
		return true;
	return abx_elf_wrong(e, "a relocation of an unknown kind");
}

static bool check_rela(struct abx_elfimage *e, uint64_t address, uint64_t size)
{
	const char *table = abx_elf_at(e, address, size);

	if (!size)
		return true;
	if (!table || size % sizeof(Elf64_Rela))
		return abx_elf_wrong(e, "an impossible relocation table");
	for (uint64_t i = 0; i < size / sizeof(Elf64_Rela); i++) {
		Elf64_Rela r;

		memcpy(&r, table + i * sizeof(r), sizeof(r));
		if (!check_one(e, &r))
			return false;
	}
	return true;
}

static bool check_array(struct abx_elfimage *e, int64_t tag, int64_t size_tag)
{
	const uint64_t at = abx_elf_tag(e, tag), size = abx_elf_tag(e, size_tag);

	if (!at && !size)
		return true;
	if (size % 8 || size > 65536 || !abx_elf_mapped(e, at, size, PF_W))
		return abx_elf_wrong(e, "an impossible list of initialisers");
	return true;
}

/* DT_RELR: packed relative relocations.  Even words are addresses, odd ones bitmaps. */
static bool check_relr(struct abx_elfimage *e)
{
	const uint64_t at = abx_elf_tag(e, RELR_TAG), size = abx_elf_tag(e, RELRSZ_TAG);
	const char *table = abx_elf_at(e, at, size);
	uint64_t where = 0;

	if (!at && !size)
		return true;
	if (!table || size % 8)
		return abx_elf_wrong(e, "an impossible relocation table");
	for (uint64_t i = 0; i < size; i += 8) {
		uint64_t entry;

		memcpy(&entry, table + i, sizeof(entry));
		if (!(entry & 1)) {
			if (!abx_elf_mapped(e, entry, 8, PF_W))
				return abx_elf_wrong(e, "a relocation outside its data");
			where = entry + 8;
			continue;
		}
		for (int bit = 0; bit < 63; bit++)
			if ((entry >> (bit + 1) & 1) &&
			    !abx_elf_mapped(e, where + (uint64_t)bit * 8, 8, PF_W))
				return abx_elf_wrong(e, "a relocation outside its data");
		where += 63 * 8;
	}
	return true;
}

bool abx_elf_check_relocations(struct abx_elfimage *e)
{
	if (abx_elf_tag(e, DT_RELASZ) && abx_elf_tag(e, DT_RELAENT) != sizeof(Elf64_Rela))
		return abx_elf_wrong(e, "an impossible relocation table");
	if (abx_elf_tag(e, DT_PLTRELSZ) && abx_elf_tag(e, DT_PLTREL) != DT_RELA)
		return abx_elf_wrong(e, "an impossible relocation table");
	if (abx_elf_tag(e, DT_RELACOUNT) * sizeof(Elf64_Rela) > abx_elf_tag(e, DT_RELASZ))
		return abx_elf_wrong(e, "an impossible relocation table");
	return check_rela(e, abx_elf_tag(e, DT_RELA), abx_elf_tag(e, DT_RELASZ)) &&
	       check_rela(e, abx_elf_tag(e, DT_JMPREL), abx_elf_tag(e, DT_PLTRELSZ)) &&
	       check_relr(e) && check_array(e, DT_INIT_ARRAY, DT_INIT_ARRAYSZ) &&
	       check_array(e, DT_FINI_ARRAY, DT_FINI_ARRAYSZ);
}
