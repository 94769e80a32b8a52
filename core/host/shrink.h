/* SPDX-License-Identifier: MIT */
/*
 * core/host/shrink.h: what goes to a box elsewhere goes compressed.
 *
 * A tar stream is compressed with zstd on a thread of its own, where the provider's boxes are not
 * on this machine and whoever unpacks can read it: the provider (ABX_CAP_PUT_ZSTD), or a program
 * in the box.  The box is not asked beforehand, which would be one more round trip: the script
 * that unpacks says what it can read, and waits until it is told what comes.
 */
#ifndef ABX_SHRINK_H
#define ABX_SHRINK_H

#include "core/host/stream.h"

/* Is it worth it, and can this machine do it? */
bool abx_shrink_wanted(const struct abx_cloud *c);

/* `call` gets what `from` gives, compressed. */
int abx_shrink_run(int from, abx_stream_call_fn call, void *ctx, struct abx_err *err);

/* In a box: `zstd` is there. */
#define ABX_HAS_ZSTD_SH "command -v zstd >/dev/null 2>&1"
/* Unpacks stdin with whatever tar there is; "$2" is one more option for it.  Both programs have to
 * succeed; 127: there is no tar. */
#define ABX_UNPACK_ZSTD_SH                                                      \
	"bad=$({ { zstd -dcq || echo 1 >&3; } | tar -x -p \"$2\" -f - >&2 ||\n" \
	"	echo $? >&3; } 3>&1)\n"                                               \
	"case $bad in *127*) exit 127 ;; ?*) exit 1 ;; esac\n"
#define ABX_UNPACK_SH "exec tar -x -p \"$2\" -f - >&2\n"

/* The script that says what it can read: $1 the directory, $2 as above, $3 not empty: make the
 * directory. */
extern const char abx_shrink_script[];

/* What such a script answered, as it comes on its stdout. */
struct abx_shrink_answer {
	int fds[2]; /* from the reader of stdout to the writer of stdin */
};
int abx_shrink_answer_open(struct abx_shrink_answer *a, struct abx_err *err);
void abx_shrink_answer_close(struct abx_shrink_answer *a);
void abx_shrink_answer_feed(struct abx_shrink_answer *a, const void *data, size_t len);

/* `call` runs the script with the descriptor as its stdin, and feeds `a`. */
int abx_shrink_as_answered(int from, struct abx_shrink_answer *a, abx_stream_call_fn call,
			   void *ctx, struct abx_err *err);

#endif
