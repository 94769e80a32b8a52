/* SPDX-License-Identifier: MIT */
/* The `.note.agentbox` note of a plugin, read without loading it. */
#include "core/host/elfnote.h"

#include <elf.h>
#include <string.h>
#include <sys/stat.h>

#include "core/host/text.h"
#include "core/util/mem.h"
#include "core/util/parse.h"

#define MAX_PROGRAM_HEADERS 256
#define MAX_NOTE_SEGMENT_BYTES 65536

#if defined(__x86_64__)
#define OUR_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OUR_MACHINE EM_AARCH64
#else
#error "which ELF machine is this?"
#endif

struct elf_file {
	int fd;
	const char *path;
	uint64_t size;
	struct abx_err *err;
};

static int refuse(const struct elf_file *f, const char *why)
{
	return abx_err_set(f->err, ABX_EPROVIDER, "%s: %s", f->path, why);
}

static bool inside(const struct elf_file *f, uint64_t offset, uint64_t len)
{
	return offset <= f->size && len <= f->size - offset;
}

/* All of it or an error; never past the size that was checked. */
static int read_at(const struct elf_file *f, uint64_t offset, void *to, size_t len)
{
	char *at = to;

	if (!inside(f, offset, len))
		return refuse(f, "not an agentbox provider (truncated)");
	while (len) {
		ssize_t n = pread(f->fd, at, len, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return abx_err_set(f->err, ABX_EPROVIDER, "%s: cannot read: %s", f->path,
					   strerror(errno));
		if (n == 0)
			return refuse(f, "not an agentbox provider (truncated)");
		at += n;
		offset += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

static int check_header(const struct elf_file *f, const Elf64_Ehdr *h)
{
	if (memcmp(h->e_ident, ELFMAG, SELFMAG) != 0)
		return refuse(f, "not an agentbox provider (not an ELF file)");
	if (h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_ident[EI_DATA] != ELFDATA2LSB ||
	    h->e_machine != OUR_MACHINE)
		return refuse(f, "not for this machine (another architecture)");
	if (h->e_ident[EI_VERSION] != EV_CURRENT || h->e_version != EV_CURRENT)
		return refuse(f, "not an agentbox provider (damaged ELF header)");
	if (h->e_type != ET_DYN)
		return refuse(f, "not an agentbox provider (not a shared object)");
	if (h->e_phentsize != sizeof(Elf64_Phdr) || h->e_phnum == 0 ||
	    h->e_phnum > MAX_PROGRAM_HEADERS ||
	    !inside(f, h->e_phoff, (uint64_t)h->e_phnum * sizeof(Elf64_Phdr)))
		return refuse(f, "not an agentbox provider (damaged program headers)");
	return 0;
}

/* A note's text member: terminated inside its field. */
static bool field_ok(const char *field, size_t size)
{
	return memchr(field, '\0', size) && *field && abx_text_is_line(field);
}

static int take_note(const struct elf_file *f, const unsigned char *desc, struct abx_elfnote *ret)
{
	struct abx_note n;
	const size_t from = offsetof(struct abx_note, magic);

	memcpy((char *)&n + from, desc, ABX_NOTE_DESC_BYTES);
	if (n.magic != ABX_ABI_MAGIC || !field_ok(n.name, sizeof(n.name)) ||
	    !abx_is_provider_name(n.name) || !field_ok(n.version, sizeof(n.version)) ||
	    n.abi_minor_min > n.abi_minor)
		return refuse(f, "not an agentbox provider (damaged agentbox note)");
	ret->abi_major = n.abi_major;
	ret->abi_minor = n.abi_minor;
	ret->abi_minor_min = n.abi_minor_min;
	memcpy(ret->name, n.name, sizeof(ret->name));
	memcpy(ret->version, n.version, sizeof(ret->version));
	return 1;
}

static size_t padded(size_t len, size_t align)
{
	return (len + align - 1) / align * align;
}

/* 1 when it was found, 0 when not, negative when it is damaged. */
static int scan_notes(const struct elf_file *f, const unsigned char *data, size_t len, size_t align,
		      struct abx_elfnote *ret)
{
	size_t at = 0;

	while (len - at >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr h;
		size_t desc_at, end;
		const unsigned char *owner = data + at + sizeof(h);

		memcpy(&h, data + at, sizeof(h));
		/* Both sizes are below 2^32, so nothing here overflows 64 bits. */
		desc_at = at + padded(sizeof(h) + h.n_namesz, align);
		end = desc_at + h.n_descsz;
		if (end > len)
			return 0;
		if (h.n_namesz == sizeof(ABX_NOTE_OWNER) && h.n_type == ABX_NOTE_TYPE &&
		    memcmp(owner, ABX_NOTE_OWNER, sizeof(ABX_NOTE_OWNER)) == 0) {
			if (h.n_descsz != ABX_NOTE_DESC_BYTES)
				return refuse(f, "not an agentbox provider "
						 "(damaged agentbox note)");
			return take_note(f, data + desc_at, ret);
		}
		at = padded(end, align);
		if (at > len)
			return 0;
	}
	return 0;
}

static int read_segment(const struct elf_file *f, const Elf64_Phdr *ph, struct abx_elfnote *ret)
{
	abx_autofree unsigned char *data = NULL;
	int r;

	if (ph->p_filesz > MAX_NOTE_SEGMENT_BYTES)
		return 0;
	data = abx_xcalloc(1, (size_t)ph->p_filesz + 1);
	r = read_at(f, ph->p_offset, data, (size_t)ph->p_filesz);
	if (r < 0)
		return r;
	return scan_notes(f, data, (size_t)ph->p_filesz, ph->p_align == 8 ? 8 : 4, ret);
}

int abx_elfnote_read(int fd, const char *path, struct abx_elfnote *ret, struct abx_err *err)
{
	struct elf_file f = {.fd = fd, .path = path, .err = err};
	struct abx_elfnote note;
	bool found = false;
	struct stat st;
	Elf64_Ehdr h;
	int r;

	if (fstat(fd, &st) < 0)
		return abx_err_set(err, ABX_EPROVIDER, "%s: cannot read: %s", path,
				   strerror(errno));
	f.size = (uint64_t)st.st_size;
	if (f.size < SELFMAG)
		return refuse(&f, "not an agentbox provider (not an ELF file)");
	memset(&h, 0, sizeof(h));
	r = read_at(&f, 0, &h, f.size < sizeof(h) ? SELFMAG : sizeof(h));
	if (r == 0 && f.size < sizeof(h) && memcmp(h.e_ident, ELFMAG, SELFMAG) == 0)
		return refuse(&f, "not an agentbox provider (truncated)");
	if (r == 0)
		r = check_header(&f, &h);
	for (size_t i = 0; i < h.e_phnum && r == 0; i++) {
		Elf64_Phdr ph;

		r = read_at(&f, h.e_phoff + i * sizeof(ph), &ph, sizeof(ph));
		/* A segment beyond the end would fault when it is mapped. */
		if (r == 0 && (ph.p_type == PT_LOAD || ph.p_type == PT_NOTE) &&
		    !inside(&f, ph.p_offset, ph.p_filesz))
			r = refuse(&f, "not an agentbox provider (truncated)");
		if (r == 0 && ph.p_type == PT_NOTE && !found) {
			r = read_segment(&f, &ph, &note);
			found = r == 1;
			r = r > 0 ? 0 : r;
		}
	}
	if (r < 0)
		return r;
	if (!found)
		return refuse(&f, "not an agentbox provider (no agentbox note)");
	*ret = note;
	return 0;
}

static void our_range(char *text, size_t size)
{
	if (ABX_ABI_MINOR == 0)
		(void)snprintf(text, size, "%d.0", ABX_ABI_MAJOR);
	else
		(void)snprintf(text, size, "%d.0 to %d.%d", ABX_ABI_MAJOR, ABX_ABI_MAJOR,
			       ABX_ABI_MINOR);
}

int abx_elfnote_check_abi(const struct abx_elfnote *note, const char *path, struct abx_err *err)
{
	char ours[32];

	if (note->abi_major != ABX_ABI_MAJOR) {
		our_range(ours, sizeof(ours));
		(void)abx_err_set(err, ABX_EPROVIDER,
				  "%s: provider '%s' was built for ABI %u.%u; this agentbox "
				  "speaks %s",
				  path, note->name, note->abi_major, note->abi_minor, ours);
		if (note->abi_major < ABX_ABI_MAJOR)
			return abx_err_remedy(err, "install a newer agentbox-provider-%s",
					      note->name);
		return abx_err_remedy(err,
				      "install an older agentbox-provider-%s or a newer agentbox",
				      note->name);
	}
	if (note->abi_minor_min > ABX_ABI_MINOR) {
		(void)abx_err_set(err, ABX_EPROVIDER,
				  "%s: provider '%s' needs ABI %u.%u or newer; this agentbox "
				  "has %d.%d",
				  path, note->name, note->abi_major, note->abi_minor_min,
				  ABX_ABI_MAJOR, ABX_ABI_MINOR);
		return abx_err_remedy(err, "upgrade agentbox");
	}
	return 0;
}
