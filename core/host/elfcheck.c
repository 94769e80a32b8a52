/* SPDX-License-Identifier: MIT */
/* Would the dynamic linker survive this file?  Segments and the dynamic section. */
#include "core/host/elfcheck.h"

#include <string.h>
#include <sys/stat.h>

#include "core/host/elfimage.h"
#include "core/util/mem.h"

#define MAX_FILE_BYTES (256LL << 20)
#define MAX_SPAN_BYTES ((uint64_t)1 << 30)
#define PAGE_BYTES 4096

bool abx_elf_wrong(struct abx_elfimage *e, const char *why)
{
	if (!e->why)
		e->why = why;
	return false;
}

const void *abx_elf_at(const struct abx_elfimage *e, uint64_t address, uint64_t len)
{
	for (size_t i = 0; i < e->n_loads; i++) {
		const Elf64_Phdr *p = &e->loads[i];
		uint64_t at = address - p->p_vaddr;

		if (address >= p->p_vaddr && at <= p->p_filesz && len <= p->p_filesz - at)
			return e->data + p->p_offset + at;
	}
	return NULL;
}

bool abx_elf_mapped(const struct abx_elfimage *e, uint64_t address, uint64_t len, uint32_t flags)
{
	for (size_t i = 0; i < e->n_loads; i++) {
		const Elf64_Phdr *p = &e->loads[i];
		uint64_t at = address - p->p_vaddr;

		if (address >= p->p_vaddr && at <= p->p_memsz && len <= p->p_memsz - at)
			return (p->p_flags & flags) == flags;
	}
	return false;
}

uint64_t abx_elf_tag(const struct abx_elfimage *e, int64_t tag)
{
	for (size_t i = 0; i < e->n_dynamic; i++)
		if (e->dynamic[i].d_tag == tag)
			return e->dynamic[i].d_un.d_val;
	return 0;
}

/* Segments are mapped at fixed addresses: one out of order would cover strange memory. */
static bool add_load(struct abx_elfimage *e, const Elf64_Phdr *p)
{
	const Elf64_Phdr *last = e->n_loads ? &e->loads[e->n_loads - 1] : NULL;
	const uint64_t mask = PAGE_BYTES - 1;

	if (e->n_loads == ABX_ELF_MAX_LOADS)
		return abx_elf_wrong(e, "too many segments");
	if (p->p_offset > e->size || p->p_filesz > e->size - p->p_offset ||
	    p->p_filesz > p->p_memsz || p->p_vaddr > MAX_SPAN_BYTES ||
	    p->p_memsz > MAX_SPAN_BYTES - p->p_vaddr)
		return abx_elf_wrong(e, "a segment of an impossible size");
	if ((p->p_vaddr & mask) != (p->p_offset & mask) || p->p_align < PAGE_BYTES ||
	    (p->p_align & (p->p_align - 1)) || p->p_align > (1 << 21))
		return abx_elf_wrong(e, "a segment out of alignment");
	if (last ? (last->p_vaddr + last->p_memsz + mask) / PAGE_BYTES > p->p_vaddr / PAGE_BYTES
		 : p->p_vaddr >= PAGE_BYTES)
		return abx_elf_wrong(e, "segments that overlap");
	if ((p->p_flags & (PF_W | PF_X)) == (PF_W | PF_X))
		return abx_elf_wrong(e, "a segment that is writable code");
	e->loads[e->n_loads++] = *p;
	return true;
}

static bool check_other(struct abx_elfimage *e, const Elf64_Phdr *p)
{
	switch (p->p_type) {
	case PT_GNU_RELRO:
		/* Its end is rounded up to a page that must still be the library's. */
		return abx_elf_mapped(e, p->p_vaddr, 1, PF_W) && p->p_memsz <= MAX_SPAN_BYTES &&
		       (p->p_memsz == 0 || abx_elf_mapped(e, p->p_vaddr + p->p_memsz - 1, 1, PF_W));
	case PT_TLS:
		return p->p_filesz <= p->p_memsz && p->p_memsz <= 16 << 20 && p->p_align <= 4096 &&
		       (p->p_align & (p->p_align - 1)) == 0 &&
		       abx_elf_mapped(e, p->p_vaddr, p->p_filesz, PF_R);
	case PT_GNU_STACK:
		return !(p->p_flags & PF_X);
	case PT_INTERP:
		return true;
	case PT_DYNAMIC:
		return abx_elf_mapped(e, p->p_vaddr, p->p_memsz, PF_W) && p->p_align <= 4096;
	case PT_NOTE:
	case PT_GNU_PROPERTY:
	case PT_GNU_EH_FRAME:
	case PT_PHDR:
		return abx_elf_mapped(e, p->p_vaddr, p->p_memsz, PF_R) && p->p_align <= 4096;
	default:
		/* A kind that no linker makes is a flipped bit in one that it does. */
		return p->p_type == PT_NULL;
	}
}

static bool read_dynamic(struct abx_elfimage *e, const Elf64_Phdr *p)
{
	size_t n = (size_t)p->p_memsz / sizeof(Elf64_Dyn);
	const void *at = abx_elf_at(e, p->p_vaddr, n * sizeof(Elf64_Dyn));

	if (!at || e->n_dynamic || n > ABX_N_ELEMENTS(e->dynamic))
		return abx_elf_wrong(e, "an impossible dynamic section");
	memcpy(e->dynamic, at, n * sizeof(Elf64_Dyn));
	for (size_t i = 0; i < n; i++) {
		if (e->dynamic[i].d_tag == DT_NULL) {
			e->n_dynamic = i;
			return true;
		}
	}
	return abx_elf_wrong(e, "a dynamic section without an end");
}

static bool check_segments(struct abx_elfimage *e)
{
	Elf64_Ehdr h;
	Elf64_Phdr p;

	memcpy(&h, e->data, sizeof(h));
	for (size_t i = 0; i < h.e_phnum; i++) {
		memcpy(&p, e->data + h.e_phoff + i * sizeof(p), sizeof(p));
		if (p.p_type == PT_LOAD && !add_load(e, &p))
			return false;
	}
	for (size_t i = 0; i < h.e_phnum; i++) {
		memcpy(&p, e->data + h.e_phoff + i * sizeof(p), sizeof(p));
		if (p.p_type == PT_LOAD)
			continue;
		if (!check_other(e, &p))
			return abx_elf_wrong(e, "an impossible program header");
		if (p.p_type == PT_DYNAMIC && !read_dynamic(e, &p))
			return false;
	}
	return e->n_dynamic > 0 || abx_elf_wrong(e, "no dynamic section");
}

/* Tags that the linker follows as pointers, with how much must lie behind them. */
static bool check_tags(struct abx_elfimage *e)
{
	static const int64_t code[] = {DT_INIT, DT_FINI};
	const uint64_t strsz = abx_elf_tag(e, DT_STRSZ);
	const char *strings = abx_elf_at(e, abx_elf_tag(e, DT_STRTAB), strsz);

	if (!strings || strsz < 1 || strings[0] || strings[strsz - 1])
		return abx_elf_wrong(e, "an impossible string table");
	for (size_t i = 0; i < e->n_dynamic; i++) {
		const Elf64_Dyn *d = &e->dynamic[i];
		const bool is_text = d->d_tag == DT_NEEDED || d->d_tag == DT_SONAME ||
				     d->d_tag == DT_RPATH || d->d_tag == DT_RUNPATH;

		if (is_text && d->d_un.d_val >= strsz)
			return abx_elf_wrong(e, "a name outside the string table");
		if (d->d_tag == DT_TEXTREL || d->d_tag == DT_REL || d->d_tag == DT_AUXILIARY ||
		    d->d_tag == DT_FILTER || d->d_tag == DT_AUDIT || d->d_tag == DT_DEPAUDIT ||
		    d->d_tag == DT_PREINIT_ARRAY)
			return abx_elf_wrong(e, "a dynamic entry that no plugin has");
	}
	for (size_t i = 0; i < ABX_N_ELEMENTS(code); i++) {
		uint64_t address = abx_elf_tag(e, code[i]);

		if (address && !abx_elf_mapped(e, address, 1, PF_X))
			return abx_elf_wrong(e, "an initialiser outside the code");
	}
	return true;
}

static int read_all(int fd, const char *path, unsigned char **ret, size_t *ret_size,
		    struct abx_err *err)
{
	abx_autofree unsigned char *data = NULL;
	size_t size, at = 0;
	struct stat st;

	if (fstat(fd, &st) < 0 || st.st_size < (off_t)sizeof(Elf64_Ehdr) ||
	    st.st_size > MAX_FILE_BYTES)
		return abx_err_set(err, ABX_EPROVIDER, "%s: damaged: impossible size", path);
	size = (size_t)st.st_size;
	data = abx_xcalloc(1, size);
	while (at < size) {
		ssize_t n = pread(fd, data + at, size - at, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return abx_err_set(err, ABX_EPROVIDER, "%s: cannot read: %s", path,
					   n ? strerror(errno) : "it became shorter");
		at += (size_t)n;
	}
	*ret = abx_steal_ptr(&data);
	*ret_size = size;
	return 0;
}

static bool header_fits(const struct abx_elfimage *e)
{
	Elf64_Ehdr h;

	memcpy(&h, e->data, sizeof(h));
	return h.e_phentsize == sizeof(Elf64_Phdr) && h.e_phoff <= e->size && h.e_phoff % 8 == 0 &&
	       (uint64_t)h.e_phnum * sizeof(Elf64_Phdr) <= e->size - h.e_phoff;
}

int abx_elfcheck(int fd, const char *path, struct abx_err *err)
{
	abx_autofree struct abx_elfimage *e = abx_xcalloc(1, sizeof(*e));
	abx_autofree unsigned char *data = NULL;
	int r = read_all(fd, path, &data, &e->size, err);

	if (r < 0)
		return r;
	e->data = data;
	if (header_fits(e) ? check_segments(e) && check_tags(e) && abx_elf_check_symbols(e) &&
				     abx_elf_check_relocations(e)
			   : abx_elf_wrong(e, "an impossible header"))
		return 0;
	(void)abx_err_set(err, ABX_EPROVIDER, "%s: damaged: it has %s", path, e->why);
	return abx_err_remedy(err, "reinstall it");
}
