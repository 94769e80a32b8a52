/* SPDX-License-Identifier: MIT */
/*
 * tests/unit/clouds.h: a cloud of the provider mock or mockbare, to test what is done with one.
 *
 * clouds_setup() makes a home with both, its database and a cancel descriptor; then
 *
 *	open_cloud("mock", "list:fail=ERATE,times=2");
 */
#ifndef ABX_TEST_CLOUDS_H
#define ABX_TEST_CLOUDS_H

#include "tests/unit/plugins.h"

extern struct abx_host_ctx ctx;
extern struct abx_cloud *cloud; /* NULL until it is opened; closed by the teardown */
extern const struct abx_call_opts no_opts;
extern const struct abx_stop_req stop_req;
extern const struct abx_start_req start_req;

void clouds_setup(void);
void clouds_teardown(void);
void open_cloud(const char *name, const char *faults);

#endif
