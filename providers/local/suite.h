/* SPDX-License-Identifier: MIT */
/*
 * suite.h: what mmdebstrap is told for a suite of Debian or Ubuntu, and where it downloads.
 *
 *	struct local_suite su = LOCAL_SUITE_INIT;
 *
 *	if (local_suite_is("debian:bookworm")) {
 *		r = local_suite_make(&su, "debian:bookworm", mirror, packages, proxy);
 *		... su.argv, su.env ...
 *		local_suite_release(&su);
 *	}
 *
 * Packages come from `mirror` when it is given, else from where this machine's own apt gets
 * those of that distribution, else from the distribution.  Proxies are `proxy`'s or apt's;
 * they go into the environment, never into the argv or the image.
 */
#ifndef LOCAL_SUITE_H
#define LOCAL_SUITE_H

#include <stdbool.h>
#include <stddef.h>

#include "agentbox/cloud_backend.h"

#define LOCAL_SUITE_ARGS_MAX 96
#define LOCAL_SUITE_TARGET "/tmp/root" /* in the mount namespace of LB_OP_BOOTSTRAP */

struct local_suite {
	char *argv[LOCAL_SUITE_ARGS_MAX];
	size_t n_argv;
	char *env[8];
	size_t n_env;
	struct abx_kv pairs[8]; /* env, taken apart */
	bool failed;
};

#define LOCAL_SUITE_INIT     \
	{                    \
		.n_argv = 0, \
	}

bool local_suite_is(const char *from);
/* Packages of a suite beyond the essential ones and apt, when nobody says otherwise. */
extern const char local_suite_packages[];
/* 0 or -errno. */
int local_suite_make(struct local_suite *su, const char *from, const char *mirror,
		     const char *packages, const char *proxy, const char *no_proxy);
void local_suite_release(struct local_suite *su);

/* sources.c: visit what apt has as sources below `dir` ("/etc/apt"), one suite at a time;
 * signed_by and options may be "". */
struct local_apt_source {
	const char *uri, *suite, *components, *signed_by;
};
int local_sources_each(const char *dir, int (*visit)(void *ctx, const struct local_apt_source *),
		       void *ctx);

#endif
