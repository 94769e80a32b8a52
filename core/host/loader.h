/* SPDX-License-Identifier: MIT */
/*
 * core/host/loader.h: plugins in this process.
 *
 * A plugin is loaded once and never unloaded.  A file that is not known to be good is loaded
 * in a child process first (core/host/probe.h), so a corrupt one ends the child, not us.
 * What was checked is what is loaded: one descriptor goes through owner and mode checks,
 * note, probe and dlopen().  It stays open, for the dynamic linker knows a library by the
 * name it was opened with.  $ORIGIN in a plugin's RUNPATH is therefore not its directory.
 *
 * Thread-safe.
 */
#ifndef ABX_LOADER_H
#define ABX_LOADER_H

#include <stdatomic.h>
#include <sys/types.h>

#include "core/host/gate.h"
#include "core/host/registry.h"
#include "core/state/home.h"

struct abx_plugin {
	char *path;
	struct abx_cloud_backend table; /* our copy */
	uint32_t their_size;
	const struct abx_cloud_backend *theirs;
	struct abx_gate gate; /* for ABX_THREADS_SERIAL */
	atomic_bool lost;     /* a SERIAL one did not come back from an operation */
	atomic_uint active;   /* operations under way */
	dev_t dev;
	ino_t ino;
	struct abx_plugin *next;
};

/* `home` holds the memory of good files; NULL: there is none, each file is probed. */
int abx_plugin_get(const struct abx_provider_file *f, const struct abx_home *home,
		   struct abx_plugin **ret, struct abx_err *err);

/* Load without a probe and call init(); what the probe's own process does. */
int abx_plugin_load_here(int fd, const char *path, struct abx_plugin **ret, struct abx_err *err);

#endif
