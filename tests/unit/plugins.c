/* SPDX-License-Identifier: MIT */
/* Plugins to test the host with. */
#include "tests/unit/plugins.h"

void plugins_setup(void)
{
	const char *build = secure_getenv("AGENTBOX_TEST_BUILDDIR");
	char ctl[1024];

	unit_home_setup();
	ck_assert_int_eq(mkdir(unit_path("plugins"), 0700), 0);
	ck_assert_int_eq(setenv("AGENTBOX_PROVIDER_PATH", unit_path("plugins"), 1), 0);
	(void)snprintf(ctl, sizeof(ctl), "%s/core/ctl/agentbox-ctl", build ? build : ".");
	ck_assert_int_eq(setenv("AGENTBOX_CTL", ctl, 1), 0);
	/* Where the fixture leaves its traces, in this process and in probes. */
	ck_assert_int_eq(setenv("TMPDIR", unit_dir(), 1), 0);
}

const char *plugin_built(const char *name)
{
	const char *build = secure_getenv("AGENTBOX_TEST_BUILDDIR");
	const char *folder = strcmp(name, "fixture") == 0 ? "abi" : "mock";
	static char path[1024];

	(void)snprintf(path, sizeof(path), "%s/tests/%s/.libs/agentbox-%s.so", build ? build : ".",
		       folder, name);
	return path;
}

void plugin_install(const char *name)
{
	abx_auto(abx_buf) struct abx_buf bytes = ABX_BUF_INIT(64 << 20);
	char file[256];

	(void)snprintf(file, sizeof(file), "plugins/agentbox-%s.so", name);
	ck_assert_msg(abx_fs_read(AT_FDCWD, plugin_built(name), &bytes) == 0,
		      "cannot read %s (set AGENTBOX_TEST_BUILDDIR)", plugin_built(name));
	unit_write(file, bytes.data, bytes.len);
}

static char *find_bytes(struct abx_buf *bytes, const void *from, size_t len)
{
	char *at = memmem(bytes->data, bytes->len, from, len);

	ck_assert_msg(at != NULL, "the bytes to change are not in the file");
	return at;
}

static void read_file(const char *file, struct abx_buf *bytes)
{
	ck_assert_int_eq(abx_fs_read(AT_FDCWD, unit_path(file), bytes), 0);
}

void plugin_patch_bytes(const char *file, const void *from, const void *to, size_t len)
{
	abx_auto(abx_buf) struct abx_buf bytes = ABX_BUF_INIT(64 << 20);

	read_file(file, &bytes);
	memcpy(find_bytes(&bytes, from, len), to, len);
	unit_write(file, bytes.data, bytes.len);
}

void plugin_patch(const char *file, const char *from, const char *to)
{
	char text[256] = "";

	ck_assert_uint_le(strlen(to), strlen(from));
	(void)snprintf(text, sizeof(text), "%s", to);
	plugin_patch_bytes(file, from, text, strlen(from));
}

void plugin_patch_note(const char *file, void (*change)(struct abx_note *note))
{
	static const char owner[12] = ABX_NOTE_OWNER;
	abx_auto(abx_buf) struct abx_buf bytes = ABX_BUF_INIT(64 << 20);
	struct abx_note note;
	char *at;

	read_file(file, &bytes);
	at = find_bytes(&bytes, owner, sizeof(owner)) - offsetof(struct abx_note, owner);
	memcpy(&note, at, sizeof(note));
	change(&note);
	memcpy(at, &note, sizeof(note));
	unit_write(file, bytes.data, bytes.len);
}

void plugin_install_fixture(const char *misbehaviour)
{
	plugin_install("fixture");
	plugin_patch(FIXTURE, "misbehave=nothing-at-all", "misbehave=");
	if (*misbehaviour) {
		char text[64];

		(void)snprintf(text, sizeof(text), "misbehave=%s", misbehaviour);
		plugin_patch_bytes(FIXTURE, "misbehave=\0\0\0\0\0\0\0\0\0\0\0\0\0\0", text,
				   strlen(text) + 1);
	}
}

int plugin_load(const char *name, struct abx_plugin **ret)
{
	struct abx_provider_file file;
	int r = abx_registry_find(name, &file, &unit_err);

	if (r < 0)
		return r;
	r = abx_plugin_get(&file, unit_home(), ret, &unit_err);
	abx_provider_file_release(&file);
	return r;
}
