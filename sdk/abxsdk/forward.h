/* SPDX-License-Identifier: MIT */
/*
 * abxsdk/forward.h: connections to a listening socket go on to a port of a box, by the loop of
 * loop.h.
 *
 * A server in a box may listen on 127.0.0.1, on ::1, or on an address of the box's: they are
 * tried in this order, and which one it is is no business of whoever connects.  Bytes pass
 * unchanged, each direction ends by itself, and what fails on one side is reset on the other.
 */
#ifndef ABXSDK_FORWARD_H
#define ABXSDK_FORWARD_H

#include <stdint.h>

/* The box's address besides loopback, in the host's byte order; 0: it has none. */
void abx_forward_init(uint32_t address);
/* Serve a listening socket from now on; `port` is the box's, `outside` what others call it. */
void abx_forward_add(int listener, uint16_t port, uint16_t outside);
uint16_t abx_forward_find(uint16_t port); /* its `outside`, or 0 */

#endif
