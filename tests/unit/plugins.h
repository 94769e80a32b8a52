/* SPDX-License-Identifier: MIT */
/*
 * tests/unit/plugins.h: plugins to test the host with.
 *
 * plugins_setup() makes the test's directory an AGENTBOX_HOME with an empty plugins/, which
 * is all of AGENTBOX_PROVIDER_PATH.  Files are copied there from the build tree and, where a
 * test wants them broken, patched: cheaper than one more shared object for each breakage.
 *
 *	plugin_install("mock");
 *	plugin_patch("plugins/agentbox-mock.so", "libcjson.so.1", "libnothere.so");
 *
 * tests/abi/fixture.c is a plugin whose misbehaviour is a word in the file itself:
 *
 *	plugin_install_fixture("crash");
 */
#ifndef ABX_TEST_PLUGINS_H
#define ABX_TEST_PLUGINS_H

#include "core/host/cloud.h"
#include "core/host/loader.h"
#include "core/host/probe.h"
#include "tests/unit/unit.h"

/* As UNIT_MAIN, for a program that is its own probe. */
#define PLUGINS_MAIN(suite_fn)                                           \
	int main(int argc, char **argv)                                  \
	{                                                                \
		SRunner *sr;                                             \
		int failed;                                              \
                                                                         \
		if (argc > 1 && strcmp(argv[1], ABX_PROBE_COMMAND) == 0) \
			return abx_probe_main(argc - 1, argv + 1);       \
		sr = srunner_create(suite_fn());                         \
		srunner_set_tap(sr, "-");                                \
		srunner_run_all(sr, CK_SILENT);                          \
		failed = srunner_ntests_failed(sr);                      \
		srunner_free(sr);                                        \
		return failed ? 1 : 0;                                   \
	}

#define FIXTURE "plugins/agentbox-fixture.so"
#define MOCK "plugins/agentbox-mock.so"

void plugins_setup(void);

/* Where the build tree has it; valid until the next call. */
const char *plugin_built(const char *name);
/* Copy it to plugins/agentbox-<name>.so. */
void plugin_install(const char *name);
void plugin_install_fixture(const char *misbehaviour);
/* Replace the first place where these bytes are by as many others. */
void plugin_patch_bytes(const char *file, const void *from, const void *to, size_t len);
/* The same for text; a shorter one is filled up with NUL. */
void plugin_patch(const char *file, const char *from, const char *to);
/* Change the note of a file. */
void plugin_patch_note(const char *file, void (*change)(struct abx_note *note));

/* Find and load it, with the test's home; the code, and unit_err. */
int plugin_load(const char *name, struct abx_plugin **ret);

#endif
