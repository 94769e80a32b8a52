/* SPDX-License-Identifier: MIT */
/* abxsdk/pass.h: one message over a unix socket, and a descriptor with it. */
#ifndef ABXSDK_PASS_H
#define ABXSDK_PASS_H

#include <sys/types.h>

/* fd -1: none.  0 or -errno; no SIGPIPE. */
int abx_pass_send(int sock, const void *data, size_t len, int fd);
/* As recv(2), but -errno; *ret_fd is the caller's to close, or -1. */
ssize_t abx_pass_recv(int sock, void *data, size_t size, int flags, int *ret_fd);

#endif
