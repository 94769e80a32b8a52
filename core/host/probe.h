/* SPDX-License-Identifier: MIT */
/*
 * core/host/probe.h: loading a plugin where it cannot hurt.
 *
 * A corrupt shared object can crash whoever loads it.  So the first load of a file happens
 * in a child process, which is this program again with the hidden command `provider-probe`:
 * it loads, checks every table and string, and calls init().  That a file passed is kept in
 * AGENTBOX_HOME/cache/providers, so later starts only compare its inode, size and times.
 *
 * A program that links the core and opens clouds answers to that command in its main():
 *
 *	if (argc > 1 && strcmp(argv[1], ABX_PROBE_COMMAND) == 0)
 *		return abx_probe_main(argc - 1, argv + 1);
 *
 * or names one that does with abx_probe_set_program(), before the first cloud is opened.
 */
#ifndef ABX_PROBE_H
#define ABX_PROBE_H

#include <cjson/cJSON.h>

#include "core/state/home.h"
#include "core/util/err.h"

#define ABX_PROBE_COMMAND "provider-probe"

/* Another program than our own executable; the text must stay. */
void abx_probe_set_program(const char *path);

/* Load what `fd` names in a child.  ret_info (may be NULL) is what abx_descriptor_json() says
 * about it.  ABX_EPROVIDER when it is no good, or took more than five seconds. */
int abx_probe_run(int fd, const char *path, const char *name, cJSON **ret_info,
		  struct abx_err *err);

/* The same unless the file is known to be good; remembers it when it is.  home may be NULL. */
int abx_probe_ensure(int fd, const char *path, const char *name, const struct abx_home *home,
		     struct abx_err *err);

/* The child: argv[1] is the path, argv[2] the descriptor.  Never returns. */
int abx_probe_main(int argc, char **argv);

#endif
