/* SPDX-License-Identifier: MIT */
/* Would the dynamic linker survive this file?  Symbols, hash tables, versions. */
#include <string.h>

#include "core/host/elfimage.h"
#include "core/util/mem.h"

/* Which version indices the file defines or needs. */
struct versions {
	bool known[ABX_ELF_MAX_VERSION + 1];
};

static uint32_t word(const void *base, uint64_t index)
{
	uint32_t value;

	memcpy(&value, (const char *)base + index * sizeof(value), sizeof(value));
	return value;
}

/* DT_GNU_HASH knows only the last symbol of each chain: the highest one is the count. */
static bool count_gnu(struct abx_elfimage *e, uint64_t address)
{
	const uint32_t *head = abx_elf_at(e, address, 16);
	uint32_t n_buckets, first, n_bloom, shift, last = 0;
	const void *buckets;
	uint64_t at;

	if (!head)
		return abx_elf_wrong(e, "an impossible hash table");
	n_buckets = word(head, 0);
	first = word(head, 1);
	n_bloom = word(head, 2);
	shift = word(head, 3);
	if (!n_buckets || !n_bloom || (n_bloom & (n_bloom - 1)) || shift > 31 ||
	    n_buckets > 1 << 20 || n_bloom > 1 << 20)
		return abx_elf_wrong(e, "an impossible hash table");
	at = address + 16 + (uint64_t)n_bloom * 8;
	buckets = abx_elf_at(e, at, (uint64_t)n_buckets * 4);
	if (!buckets || !abx_elf_at(e, address, 16 + (uint64_t)n_bloom * 8))
		return abx_elf_wrong(e, "an impossible hash table");
	at += (uint64_t)n_buckets * 4;
	for (uint32_t i = 0; i < n_buckets; i++) {
		uint32_t index = word(buckets, i);
		const void *chain;

		if (!index)
			continue;
		if (index < first)
			return abx_elf_wrong(e, "a hash bucket outside its table");
		do {
			chain = abx_elf_at(e, at + ((uint64_t)index - first) * 4, 4);
			if (!chain)
				return abx_elf_wrong(e, "a hash chain without an end");
			last = index > last ? index : last;
			index++;
		} while (!(word(chain, 0) & 1));
	}
	e->n_symbols = last ? (size_t)last + 1 : first;
	return true;
}

/* DT_HASH: buckets and chains hold indices that must be symbols, and chains must end. */
static bool count_sysv(struct abx_elfimage *e, uint64_t address)
{
	const void *head = abx_elf_at(e, address, 8), *table;
	uint64_t n_buckets, n_chains;

	if (!head)
		return abx_elf_wrong(e, "an impossible hash table");
	n_buckets = word(head, 0);
	n_chains = word(head, 1);
	table = abx_elf_at(e, address + 8, (n_buckets + n_chains) * 4);
	if (!n_buckets || !n_chains || !table)
		return abx_elf_wrong(e, "an impossible hash table");
	for (uint64_t i = 0; i < n_buckets; i++) {
		uint64_t index = word(table, i), steps = 0;

		for (; index; index = word(table, n_buckets + index))
			if (index >= n_chains || ++steps > n_chains)
				return abx_elf_wrong(e, "a hash chain without an end");
	}
	e->n_symbols = (size_t)n_chains;
	return true;
}

static bool check_needed(struct abx_elfimage *e, struct versions *v, uint64_t strsz)
{
	uint64_t at = abx_elf_tag(e, DT_VERNEED), n = abx_elf_tag(e, DT_VERNEEDNUM);

	if (n > 256 || (n && !at) || (at && !n))
		return abx_elf_wrong(e, "an impossible version table");
	for (uint64_t i = 0; i < n; i++) {
		const void *p = abx_elf_at(e, at, sizeof(Elf64_Verneed));
		Elf64_Verneed need;
		uint64_t aux_at;

		if (!p)
			return abx_elf_wrong(e, "a version outside its table");
		memcpy(&need, p, sizeof(need));
		if (need.vn_version != 1 || need.vn_file >= strsz || !need.vn_cnt ||
		    need.vn_cnt > 256)
			return abx_elf_wrong(e, "an impossible version");
		aux_at = at + need.vn_aux;
		for (uint32_t k = 0; k < need.vn_cnt; k++) {
			const void *q = abx_elf_at(e, aux_at, sizeof(Elf64_Vernaux));
			Elf64_Vernaux aux;

			if (!q)
				return abx_elf_wrong(e, "a version outside its table");
			memcpy(&aux, q, sizeof(aux));
			if (aux.vna_name >= strsz || aux.vna_other < 2 || aux.vna_other > 1024 ||
			    (aux.vna_flags & ~(uint32_t)VER_FLG_WEAK) ||
			    (k + 1 < need.vn_cnt) != (aux.vna_next != 0))
				return abx_elf_wrong(e, "an impossible version");
			v->known[aux.vna_other] = true;
			aux_at += aux.vna_next;
		}
		if ((i + 1 < n) != (need.vn_next != 0))
			return abx_elf_wrong(e, "a version table without an end");
		at += need.vn_next;
	}
	return true;
}

static bool check_defined(struct abx_elfimage *e, struct versions *v, uint64_t strsz)
{
	uint64_t at = abx_elf_tag(e, DT_VERDEF), n = abx_elf_tag(e, DT_VERDEFNUM);

	if (n > 256 || (n && !at) || (at && !n))
		return abx_elf_wrong(e, "an impossible version table");
	for (uint64_t i = 0; i < n; i++) {
		const void *p = abx_elf_at(e, at, sizeof(Elf64_Verdef)), *q;
		Elf64_Verdaux aux;
		Elf64_Verdef def;

		if (!p)
			return abx_elf_wrong(e, "a version outside its table");
		memcpy(&def, p, sizeof(def));
		q = abx_elf_at(e, at + def.vd_aux, sizeof(aux));
		if (def.vd_version != 1 || !def.vd_ndx || def.vd_ndx > 1024 || !q)
			return abx_elf_wrong(e, "an impossible version");
		memcpy(&aux, q, sizeof(aux));
		if (aux.vda_name >= strsz || (i + 1 < n) != (def.vd_next != 0))
			return abx_elf_wrong(e, "an impossible version");
		v->known[def.vd_ndx] = true;
		at += def.vd_next;
	}
	return true;
}

static bool check_symbol(struct abx_elfimage *e, const Elf64_Sym *s, uint64_t strsz)
{
	if (s->st_name >= strsz)
		return abx_elf_wrong(e, "a symbol without a name");
	if (ELF64_ST_BIND(s->st_info) > STB_WEAK && ELF64_ST_BIND(s->st_info) != STB_GNU_UNIQUE)
		return abx_elf_wrong(e, "a symbol of an unknown kind");
	/* It is called while the file is being loaded. */
	if (ELF64_ST_TYPE(s->st_info) == STT_GNU_IFUNC && s->st_shndx != SHN_UNDEF &&
	    !abx_elf_mapped(e, s->st_value, 1, PF_X))
		return abx_elf_wrong(e, "a symbol outside the code");
	/* What it defines is somewhere in it. */
	if (s->st_shndx != SHN_UNDEF && s->st_shndx < SHN_LORESERVE &&
	    ELF64_ST_TYPE(s->st_info) != STT_TLS && !abx_elf_mapped(e, s->st_value, 0, 0))
		return abx_elf_wrong(e, "a symbol outside the file");
	return true;
}

static bool check_each(struct abx_elfimage *e, const struct versions *v, uint64_t strsz)
{
	const uint64_t versym_at = abx_elf_tag(e, DT_VERSYM);
	const char *table =
		abx_elf_at(e, abx_elf_tag(e, DT_SYMTAB), e->n_symbols * sizeof(Elf64_Sym));
	const char *versym = versym_at ? abx_elf_at(e, versym_at, e->n_symbols * 2) : NULL;

	if (!table || abx_elf_tag(e, DT_SYMENT) != sizeof(Elf64_Sym) || (versym_at && !versym))
		return abx_elf_wrong(e, "an impossible symbol table");
	for (size_t i = 0; i < e->n_symbols; i++) {
		uint16_t version = 0;
		Elf64_Sym s;

		memcpy(&s, table + i * sizeof(s), sizeof(s));
		if (versym)
			memcpy(&version, versym + i * sizeof(version), sizeof(version));
		if (!check_symbol(e, &s, strsz))
			return false;
		if (!v->known[version & ABX_ELF_MAX_VERSION])
			return abx_elf_wrong(e, "a symbol of an unknown version");
	}
	return true;
}

bool abx_elf_check_symbols(struct abx_elfimage *e)
{
	abx_autofree struct versions *v = abx_xcalloc(1, sizeof(*v));
	const uint64_t strsz = abx_elf_tag(e, DT_STRSZ);
	const uint64_t gnu = abx_elf_tag(e, DT_GNU_HASH), sysv = abx_elf_tag(e, DT_HASH);

	/* 0 and 1 are local and global. */
	v->known[0] = v->known[1] = true;
	if (!gnu && !sysv)
		return abx_elf_wrong(e, "no hash table");
	if (sysv && !count_sysv(e, sysv))
		return false;
	if (gnu && !count_gnu(e, gnu))
		return false;
	if (!check_needed(e, v, strsz) || !check_defined(e, v, strsz))
		return false;
	return check_each(e, v, strsz);
}
