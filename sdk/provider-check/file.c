/* SPDX-License-Identifier: MIT */
/* The file alone: note, symbols, and whether it loads. */
#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "abxsdk/fs.h"
#include "core/host/elfcheck.h"
#include "core/host/elfnote.h"
#include "core/host/probe.h"
#include "core/host/trust.h"
#include "core/util/mem.h"
#include "sdk/provider-check/check.h"

/* The table of symbols that the dynamic linker sees; the file passed abx_elfcheck(). */
struct symbols {
	const Elf64_Sym *items;
	size_t n, strsz;
	const char *strings;
};

static bool find_symbols(const struct abx_buf *file, struct symbols *ret)
{
	Elf64_Ehdr h;
	Elf64_Shdr s, strings;

	memcpy(&h, file->data, sizeof(h));
	if (!h.e_shoff || h.e_shoff > file->len ||
	    (uint64_t)h.e_shnum * sizeof(s) > file->len - h.e_shoff)
		return false;
	for (size_t i = 0; i < h.e_shnum; i++) {
		memcpy(&s, file->data + h.e_shoff + i * sizeof(s), sizeof(s));
		if (s.sh_type != SHT_DYNSYM || s.sh_link >= h.e_shnum)
			continue;
		memcpy(&strings, file->data + h.e_shoff + s.sh_link * sizeof(s), sizeof(s));
		if (s.sh_offset > file->len || s.sh_size > file->len - s.sh_offset ||
		    s.sh_offset % 8 || strings.sh_offset > file->len || !strings.sh_size ||
		    strings.sh_size > file->len - strings.sh_offset)
			return false;
		ret->items = (const Elf64_Sym *)(const void *)(file->data + s.sh_offset);
		ret->n = s.sh_size / sizeof(Elf64_Sym);
		ret->strings = file->data + strings.sh_offset;
		ret->strsz = strings.sh_size;
		return ret->strings[ret->strsz - 1] == '\0';
	}
	return false;
}

static void check_symbols(struct check *c, int fd)
{
	abx_auto(abx_buf) struct abx_buf file = ABX_BUF_INIT(256 << 20);
	struct symbols t = {NULL, 0, 0, NULL};
	unsigned int exported = 0, others = 0, ours = 0;

	if (lseek(fd, 0, SEEK_SET) != 0 || abx_buf_read_fd(&file, fd) < 0 ||
	    !find_symbols(&file, &t)) {
		(void)tap_ok(c, false, "it has a table of dynamic symbols");
		return;
	}
	for (size_t i = 1; i < t.n; i++) {
		const Elf64_Sym *s = &t.items[i];
		const char *name = s->st_name < t.strsz ? t.strings + s->st_name : "";

		if (s->st_shndx == SHN_UNDEF) {
			if (strncmp(name, "abx_", 4) == 0 && ++ours)
				tap_note(c, "undefined: %s", name);
		} else if (strcmp(name, "agentbox_cloud_backend") == 0) {
			exported++;
		} else if (ELF64_ST_BIND(s->st_info) != STB_LOCAL && ++others <= 5) {
			tap_note(c, "also exported: %s", name);
		}
	}
	(void)tap_ok(c, exported == 1 && others == 0,
		     "it exports agentbox_cloud_backend and nothing else");
	(void)tap_ok(c, ours == 0, "it needs no symbol of agentbox");
}

/* The child's report: each required operation is there, or it would have been refused. */
static bool check_loads(struct check *c, int fd)
{
	cJSON *info = NULL;
	const cJSON *item;
	int r = abx_probe_run(fd, c->path, c->name, &info, &c->err);
	unsigned int optional = 0;

	if (!tap_r(c, r, "it loads, its table and texts are sound, it has what is required"))
		return false;
	cJSON_ArrayForEach(item, info)
		if (strncmp(item->string, "has_", 4) == 0 && cJSON_IsTrue(item))
			optional++;
	tap_note(c, "%s: %u operations",
		 cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(info, "name")), optional);
	cJSON_Delete(info);
	return true;
}

bool check_file(struct check *c)
{
	struct abx_provider_file file;
	abx_autoclose int fd = -1;
	struct abx_elfnote note;
	int r = abx_trust_open(c->path, &fd, &c->err);

	if (!tap_r(c, r, "nobody else can write the file"))
		return false;
	if (!tap_r(c, abx_elfnote_read(fd, c->path, &note, &c->err), "it has an agentbox note"))
		return false;
	if (!tap_r(c, abx_elfnote_check_abi(&note, c->path, &c->err), "its ABI is ours"))
		return false;
	if (!tap_r(c, abx_registry_find(c->path, &file, &c->err), "file and note agree on a name"))
		return false;
	c->name = abx_xstrdup(file.name);
	abx_provider_file_release(&file);
	if (!tap_r(c, abx_elfcheck(fd, c->path, &c->err), "its tables point into the file"))
		return false;
	check_symbols(c, fd);
	return check_loads(c, fd);
}
