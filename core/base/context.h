/* SPDX-License-Identifier: MIT */
/*
 * core/base/context.h: what base images are built of: a Dockerfile, and the files beside it.
 *
 * They are installed with the program (AGENTBOX_BASE_PATH names another directory), and go to
 * a provider as one tar stream.  The fingerprint is of all that decides what comes out, so an
 * image that has another one was made of something else.
 *
 *	struct abx_base_context c = ABX_BASE_CONTEXT_INIT;
 *
 *	r = abx_base_context_open(home, &how, &c, err);
 *	... c.fd, c.fingerprint ...
 *	abx_base_context_release(&c);
 */
#ifndef ABX_BASE_CONTEXT_H
#define ABX_BASE_CONTEXT_H

#include "core/state/home.h"
#include "core/util/err.h"

/* A file that somebody gives, for /usr/local/lib/docker/cli-plugins/NAME. */
struct abx_base_file {
	const char *name, *path;
	const char *sha256; /* 64 hexadecimal digits in lower case, which it must have */
};

struct abx_base_how {
	const char *packages; /* separated by commas */
	const char *ca;	      /* PEM, trusted during the build and not after it; may be NULL */
	const struct abx_base_file *files;
	size_t n_files;
};

#define ABX_BASE_FINGERPRINT_BYTES 80

struct abx_base_context {
	int fd; /* tar, at its start */
	char fingerprint[ABX_BASE_FINGERPRINT_BYTES];
	char *dockerfile; /* its text */
};
#define ABX_BASE_CONTEXT_INIT \
	{                     \
		.fd = -1      \
	}

int abx_base_context_open(const struct abx_home *home, const struct abx_base_how *how,
			  struct abx_base_context *ret, struct abx_err *err);
/* Only the fingerprint: what people give is believed to be what they say it is. */
int abx_base_context_print(const struct abx_base_how *how,
			   char fingerprint[ABX_BASE_FINGERPRINT_BYTES], struct abx_err *err);
void abx_base_context_release(struct abx_base_context *c);

#endif
