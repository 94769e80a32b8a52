/* SPDX-License-Identifier: MIT */
/*
 * abxsdk/plugin.h: what every provider says to its host in the same way.
 *
 *	static int32_t acme_init(const struct abx_host *host)
 *	{
 *		abx_plugin_host = host;
 *		return ABX_OK;
 *	}
 *
 *	return abx_fail(call, ABX_ESTATE, "start it", "box %s: it is not running", id);
 *
 * The failing functions return the code that they were given or chose.  A text is one line; a
 * remedy may be NULL.  Each plugin has a host of its own: this is linked into it.
 */
#ifndef ABXSDK_PLUGIN_H
#define ABXSDK_PLUGIN_H

#include <stddef.h>

#include "abxsdk/base.h"
#include "agentbox/cloud_backend.h"

extern const struct abx_host *abx_plugin_host; /* set by the plugin's init() */

int32_t abx_fail(struct abx_call *call, int32_t code, const char *remedy, const char *fmt, ...)
	ABX_PRINTF(4, 5);
/* The same of what may have happened all the same: it must not be done again. */
int32_t abx_fail_unknown(struct abx_call *call, int32_t code, const char *remedy, const char *fmt,
			 ...) ABX_PRINTF(4, 5);
/* Of a failed system call: the code is chosen, strerror(err) is added. */
int32_t abx_fail_errno(struct abx_call *call, int err, const char *fmt, ...) ABX_PRINTF(3, 4);
int32_t abx_fail_canceled(struct abx_call *call);
int32_t abx_fail_timed_out(struct abx_call *call);
int32_t abx_fail_no_memory(struct abx_call *call);

/* poll() with the call's cancel descriptor and deadline added: ABX_OK, ABX_ECANCELED or
 * ABX_ETIMEDOUT (both failed already), or ABX_OK with nothing ready after max_ms (< 0: never). */
struct pollfd;
int32_t abx_call_poll(struct abx_call *call, struct pollfd *fds, size_t n, int64_t max_ms);

/* Copy an option or another text; NULL stays NULL.  0 or -ENOMEM. */
int abx_take_text(char **to, const char *text);

/* "2026-12-01T04:20:20.048512965Z" in milliseconds; 0 when it is none, or before 1970. */
int64_t abx_rfc3339_ms(const char *text);
void abx_rfc3339(int64_t seconds, char out[40]);

#endif
