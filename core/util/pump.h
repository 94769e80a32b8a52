/* SPDX-License-Identifier: MIT */
/*
 * core/util/pump.h: a stream from one descriptor to another, on request compressed on its way.
 *
 *	const struct abx_pump pump = {.from = in, .to = out, .stop_fd = stop, .zstd = true};
 *	r = abx_pump_run(&pump, &count, err);
 *
 * Compressed is one zstd frame of level 1, made in constant memory; what cannot be made smaller
 * passes almost as fast as it is read.  A stream that is zstd already stays as it is.
 *
 * The caller blocks SIGPIPE.
 */
#ifndef ABX_PUMP_H
#define ABX_PUMP_H

#include <stdbool.h>
#include <stdint.h>

#include "core/util/err.h"

struct abx_pump {
	int from;
	int to;	     /* a pipe; becomes non-blocking */
	int stop_fd; /* readable: give up, ABX_ECANCELED; -1 = never */
	bool zstd;
};
struct abx_pump_count {
	uint64_t in, out; /* bytes */
};

/* Can this machine compress?  Opens libarchive. */
bool abx_pump_can_zstd(void);

/* Of a pipe, where the system lets it: sixteen pages make reader and writer wait for each other. */
void abx_pump_widen(int fd);
/* Until the end of `from`. */
int abx_pump_run(const struct abx_pump *pump, struct abx_pump_count *ret, struct abx_err *err);

#endif
