/* SPDX-License-Identifier: MIT */
/* The note in a file: found where it is right, refused where anything is not. */
#include "core/host/elfnote.h"

#include <elf.h>

#include "tests/unit/unit.h"

#if defined(__aarch64__)
#define MACHINE EM_AARCH64
#else
#define MACHINE EM_X86_64
#endif

/* The smallest file that passes, and what tests change of it. */
static struct image {
	Elf64_Ehdr h;
	Elf64_Phdr load, note_header;
	struct abx_note note;
	char rest[64];
} image;
static struct abx_elfnote found;

static void fresh_image(void)
{
	memset(&image, 0, sizeof(image));
	memcpy(image.h.e_ident, ELFMAG, SELFMAG);
	image.h.e_ident[EI_CLASS] = ELFCLASS64;
	image.h.e_ident[EI_DATA] = ELFDATA2LSB;
	image.h.e_ident[EI_VERSION] = EV_CURRENT;
	image.h.e_type = ET_DYN;
	image.h.e_machine = MACHINE;
	image.h.e_version = EV_CURRENT;
	image.h.e_phoff = offsetof(struct image, load);
	image.h.e_phentsize = sizeof(Elf64_Phdr);
	image.h.e_phnum = 2;
	image.load.p_type = PT_LOAD;
	image.load.p_filesz = sizeof(image);
	image.note_header.p_type = PT_NOTE;
	image.note_header.p_offset = offsetof(struct image, note);
	image.note_header.p_filesz = sizeof(image.note);
	image.note_header.p_align = 4;
	image.note = (struct abx_note){sizeof(ABX_NOTE_OWNER),
				       ABX_NOTE_DESC_BYTES,
				       ABX_NOTE_TYPE,
				       ABX_NOTE_OWNER,
				       ABX_ABI_MAGIC,
				       ABX_ABI_MAJOR,
				       ABX_ABI_MINOR,
				       ABX_ABI_MINOR,
				       0,
				       "acme",
				       "1.2.3"};
}

static void setup(void)
{
	unit_dir_setup();
	fresh_image();
}

static int read_bytes(const void *bytes, size_t len)
{
	abx_autoclose int fd = -1;

	unit_write("f", bytes, len);
	fd = open(unit_path("f"), O_RDONLY | O_CLOEXEC);
	return abx_elfnote_read(fd, "/f", &found, &unit_err);
}

static void refused(const char *why)
{
	ck_assert_int_eq(read_bytes(&image, sizeof(image)), ABX_EPROVIDER);
	ck_assert_msg(strncmp(unit_err.text, "/f: ", 4) == 0, "%s", unit_err.text);
	unit_has(unit_err.text, why);
}

START_TEST(a_good_one)
{
	unit_ok(read_bytes(&image, sizeof(image)));
	ck_assert_str_eq(found.name, "acme");
	ck_assert_str_eq(found.version, "1.2.3");
	ck_assert_uint_eq(found.abi_major, ABX_ABI_MAJOR);
	unit_ok(abx_elfnote_check_abi(&found, "/f", &unit_err));
}
END_TEST

START_TEST(not_elf)
{
	ck_assert_int_eq(read_bytes("", 0), ABX_EPROVIDER);
	unit_has(unit_err.text, "not an ELF file");
	ck_assert_int_eq(read_bytes("#!/bin/sh\n", 10), ABX_EPROVIDER);
	unit_has(unit_err.text, "not an ELF file");
	ck_assert_int_eq(read_bytes("\177ELF", 4), ABX_EPROVIDER);
	unit_has(unit_err.text, "truncated");
}
END_TEST

START_TEST(every_truncation)
{
	for (size_t len = 0; len < sizeof(image); len++)
		ck_assert_int_eq(read_bytes(&image, len), ABX_EPROVIDER);
}
END_TEST

START_TEST(another_machine)
{
	image.h.e_machine = EM_386;
	refused("another architecture");
	fresh_image();
	image.h.e_ident[EI_CLASS] = ELFCLASS32;
	refused("another architecture");
	fresh_image();
	image.h.e_ident[EI_DATA] = ELFDATA2MSB;
	refused("another architecture");
}
END_TEST

START_TEST(another_kind_of_file)
{
	image.h.e_type = ET_EXEC;
	refused("not a shared object");
	image.h.e_type = ET_REL;
	refused("not a shared object");
}
END_TEST

START_TEST(absurd_program_headers)
{
	static const uint64_t offsets[] = {
		1,	    sizeof(struct image) - 8, sizeof(struct image),
		UINT64_MAX, UINT64_MAX - 56,	      UINT64_MAX / 2 + 1};

	for (size_t i = 0; i < ABX_N_ELEMENTS(offsets); i++) {
		image.h.e_phoff = offsets[i];
		refused("not an agentbox provider");
	}
	image.h.e_phoff = offsetof(struct image, load);
	image.h.e_phentsize = 32;
	refused("damaged program headers");
	image.h.e_phentsize = sizeof(Elf64_Phdr);
	image.h.e_phnum = 0;
	refused("damaged program headers");
	image.h.e_phnum = UINT16_MAX;
	refused("damaged program headers");
}
END_TEST

START_TEST(absurd_segments)
{
	static const uint64_t numbers[] = {sizeof(struct image) + 1, UINT64_MAX, UINT64_MAX - 100,
					   (uint64_t)1 << 63};

	for (size_t i = 0; i < ABX_N_ELEMENTS(numbers); i++) {
		image.note_header.p_offset = numbers[i];
		refused("truncated");
		image.note_header.p_offset = offsetof(struct image, note);
		image.load.p_filesz = numbers[i];
		refused("truncated");
		image.load.p_filesz = sizeof(image);
	}
}
END_TEST

START_TEST(absurd_notes)
{
	static const uint32_t sizes[] = {UINT32_MAX, UINT32_MAX - 3, 0x80000000, 1000, 0};

	for (size_t i = 0; i < ABX_N_ELEMENTS(sizes); i++) {
		image.note.owner_size = sizes[i];
		refused("not an agentbox provider");
		image.note.owner_size = sizeof(ABX_NOTE_OWNER);
		image.note.desc_size = sizes[i];
		refused("not an agentbox provider");
		image.note.desc_size = ABX_NOTE_DESC_BYTES;
	}
	image.note.type = 2;
	refused("no agentbox note");
}
END_TEST

START_TEST(broken_words)
{
	image.note.magic = 1;
	refused("damaged agentbox note");
	fresh_image();
	memset(image.note.name, 'a', sizeof(image.note.name));
	refused("damaged agentbox note");
	fresh_image();
	image.note.name[0] = '\0';
	refused("damaged agentbox note");
	fresh_image();
	(void)snprintf(image.note.name, sizeof(image.note.name), "%s", "../evil");
	refused("damaged agentbox note");
	fresh_image();
	memset(image.note.version, '9', sizeof(image.note.version));
	refused("damaged agentbox note");
	fresh_image();
	image.note.version[0] = '\x1b';
	refused("damaged agentbox note");
	fresh_image();
	image.note.abi_minor_min = 5;
	refused("damaged agentbox note");
}
END_TEST

/* Other notes stand before it, as the linker puts them. */
START_TEST(behind_other_notes)
{
	struct {
		struct image i;
		Elf64_Nhdr other;
		char owner[4], desc[20];
		struct abx_note note;
	} file = {.other = {4, 20, 3}, .owner = "GNU"};

	file.i = image;
	file.note = image.note;
	file.i.note_header.p_offset = sizeof(struct image);
	file.i.note_header.p_filesz = sizeof(file) - sizeof(struct image);
	unit_ok(read_bytes(&file, sizeof(file)));
	ck_assert_str_eq(found.name, "acme");
}
END_TEST

START_TEST(a_directory)
{
	abx_autoclose int fd = open(unit_dir(), O_RDONLY | O_CLOEXEC);

	ck_assert_int_eq(abx_elfnote_read(fd, "/d", &found, &unit_err), ABX_EPROVIDER);
}
END_TEST

static Suite *suite(void)
{
	const TTest *const tests[] = {
		a_good_one,	      not_elf,
		every_truncation,     another_machine,
		another_kind_of_file, absurd_program_headers,
		absurd_segments,      absurd_notes,
		broken_words,	      behind_other_notes,
		a_directory,
	};
	Suite *s = suite_create("elfnote");
	TCase *tc = tcase_create("read");

	tcase_add_checked_fixture(tc, setup, unit_dir_teardown);
	for (size_t i = 0; i < ABX_N_ELEMENTS(tests); i++)
		tcase_add_test(tc, tests[i]);
	suite_add_tcase(s, tc);
	return s;
}

UNIT_MAIN(suite)
