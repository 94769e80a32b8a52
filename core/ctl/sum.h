/* SPDX-License-Identifier: MIT */
/*
 * core/ctl/sum.h: is the agentbox-ctl in a box the one that we sent?
 *
 * Tells a file that was cut short or is of another build; no proof against somebody who wants
 * it to match, for the box is that somebody's anyway.
 */
#ifndef ABX_CTL_SUM_H
#define ABX_CTL_SUM_H

struct abx_sum {
	char text[40]; /* "SIZE-HASH" in hexadecimal */
};

/* 0 or -errno. */
int abx_sum_file(const char *path, struct abx_sum *ret);

#endif
