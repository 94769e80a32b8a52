/* SPDX-License-Identifier: MIT */
/*
 * abxsdk/suite.h: what mmdebstrap is told for a suite of Debian or Ubuntu, and where it downloads.
 *
 *	struct abx_suite su = ABX_SUITE_INIT;
 *
 *	if (abx_suite_is("debian:bookworm")) {
 *		r = abx_suite_make(&su, &how);
 *		... su.argv, su.env ...
 *		abx_suite_release(&su);
 *	}
 *
 * Packages come from `mirror` when it is given, else from where this machine's own apt gets
 * those of that distribution, else from the distribution.  Proxies are `proxy`'s or apt's;
 * they go into the environment, never into the argv or the image.
 */
#ifndef ABXSDK_SUITE_H
#define ABXSDK_SUITE_H

#include <stdbool.h>
#include <stddef.h>

#include "agentbox/cloud_backend.h"

#define ABX_SUITE_ARGS_MAX 96

struct abx_suite_how {
	const char *from, *mirror, *packages;
	const char *proxy, *no_proxy;
	const char *mode;   /* mmdebstrap(1): "root", "auto" */
	const char *format; /* "directory", "tar" */
	const char *target;
};

struct abx_suite {
	char *argv[ABX_SUITE_ARGS_MAX];
	size_t n_argv;
	char *env[8];
	size_t n_env;
	struct abx_kv pairs[8]; /* env, taken apart */
	bool failed;
};

#define ABX_SUITE_INIT       \
	{                    \
		.n_argv = 0, \
	}

bool abx_suite_is(const char *from);
/* Packages of a suite beyond the essential ones and apt, when nobody says otherwise. */
extern const char abx_suite_packages[];
/* Names of packages, separated by commas, that can stand in a list of mmdebstrap's. */
bool abx_suite_packages_ok(const char *packages);
/* 0 or -errno. */
int abx_suite_make(struct abx_suite *su, const struct abx_suite_how *how);
void abx_suite_release(struct abx_suite *su);

/* suite-sources.c: visit what apt has as sources below `dir` ("/etc/apt"), one suite at a time;
 * signed_by and options may be "". */
struct abx_apt_source {
	const char *uri, *suite, *components, *signed_by;
};
int abx_apt_sources_each(const char *dir, int (*visit)(void *ctx, const struct abx_apt_source *),
			 void *ctx);

#endif
