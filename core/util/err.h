/* SPDX-License-Identifier: MIT */
/*
 * core/util/err.h: why something failed.
 *
 *	if (fd < 0)
 *		return abx_err_errno(err, errno, "open '%s'", path);
 *	...
 *	r = abx_box_find(..., err);
 *	if (r < 0)
 *		return abx_err_wrap(err, "status");
 *
 * Functions that can fail return 0 or a negative code, take `struct abx_err *err` last, and
 * leave it alone on success.  err may be NULL when the caller does not care.  Texts are
 * redacted.  The command prints the error once: what: which object: why (what to do).
 *
 * Codes are the ABI's ABX_E* plus those below, which never cross the plugin border.
 */
#ifndef ABX_ERR_H
#define ABX_ERR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include "abxsdk/base.h"
#include "agentbox/cloud_backend.h"

#define ABX_EUSAGE (-1001)    /* the command line makes no sense */
#define ABX_ENOBOX (-1002)    /* no such box, checkpoint, volume, image or run */
#define ABX_EPROVIDER (-1003) /* provider missing, broken or incompatible */
#define ABX_EPOLICY (-1004)   /* refused: forbidden key, secret found, not approved */
#define ABX_ECORRUPT (-1005)  /* a file of ours is damaged */
#define ABX_EDENIED (-1006)   /* a host action was denied */

struct abx_err {
	int code;
	int http_status;
	int64_t retry_after_ms; /* -1 = not said */
	bool outcome_unknown;	/* it may have happened all the same */
	char request_id[80];
	char text[1024];
	char remedy[512];
};

#define ABX_ERR_INIT                 \
	{                            \
		.retry_after_ms = -1 \
	}

/* Fill and return `code`. */
int abx_err_set(struct abx_err *err, int code, const char *fmt, ...) ABX_PRINTF(3, 4);
/* The same for an errno, positive or negative; its text is appended. */
int abx_err_errno(struct abx_err *err, int errnum, const char *fmt, ...) ABX_PRINTF(3, 4);
/* Put "context: " in front and return the code that is there. */
int abx_err_wrap(struct abx_err *err, const char *fmt, ...) ABX_PRINTF(2, 3);
/* Does this text of somebody's say that a disk is full?  Then what: "No space left on device",
 * in the C library's words; else NULL. */
const char *abx_text_of_full_disk(const char *text);
/* Say what to do about it, and return the code that is there. */
int abx_err_remedy(struct abx_err *err, const char *fmt, ...) ABX_PRINTF(2, 3);

/* The stable name of a code in JSON ("not_found"), and the exit code it means. */
const char *abx_err_name(int code);
int abx_err_exit_code(int code);
/* Of an operation that ended with `r`, < 0 with `err`: may it have been done all the same? */
bool abx_err_may_have_happened(int r, const struct abx_err *err);
/* Would the same request have a chance later? */
bool abx_err_retryable(int code);

#endif
