/* SPDX-License-Identifier: MIT */
/*
 * sdk/provider-check/check.h: the contract of a provider, as a TAP test of one file.
 *
 * It runs the provider with the program's own host, so what passes here behaves in agentbox.
 * stdout and stderr of the process lead to a file from the start; TAP has a stream of its own.
 */
#ifndef ABX_CHECK_H
#define ABX_CHECK_H

#include <stdarg.h>
#include <stdio.h>

#include "abxsdk/buf.h"
#include "core/host/run.h"

struct check {
	FILE *tap;
	int said_fd; /* what was printed meanwhile */
	unsigned int n, failed;

	const char *path;
	char *name;
	char home_path[4096];
	struct abx_home home;
	struct abx_config *config;
	struct abx_host_ctx ctx;
	struct abx_cloud *cloud;
	struct abx_err err; /* of the last operation */
	int64_t timeout_ms; /* of an ordinary operation */
	bool no_service;    /* nothing is asked of what the provider stands for */

	char box_label[32];
	struct abx_kv labels[3];
	struct abx_sandbox_copy box;
};

/* tap.c: one point each. */
bool tap_ok(struct check *c, bool ok, const char *fmt, ...) ABX_PRINTF(3, 4);
/* r == 0; c->err is shown otherwise. */
bool tap_r(struct check *c, int r, const char *fmt, ...) ABX_PRINTF(3, 4);
/* r is this code. */
bool tap_code(struct check *c, int r, int wanted, const char *fmt, ...) ABX_PRINTF(4, 5);
void tap_note(struct check *c, const char *fmt, ...) ABX_PRINTF(2, 3);
/* Nothing can be judged any more. */
void tap_bail(struct check *c, const char *why);
void tap_plan(struct check *c);

/* file.c: the file alone; false when it must not be loaded. */
bool check_file(struct check *c);
/* raw.c: structs of other sizes, texts before they are redacted. */
void check_raw(struct check *c);
/* life.c */
bool check_provision(struct check *c);
void check_missing(struct check *c);
void check_stop_start(struct check *c);
void check_destroy(struct check *c);
/* exec.c */
void check_exec(struct check *c);
void check_giving_up(struct check *c);
void check_descriptors(struct check *c);
/* transfer.c */
void check_transfer(struct check *c);

struct abx_call_opts check_opts(const struct check *c);

/* A command in the box and what it printed. */
struct ran {
	struct abx_exit exit;
	struct abx_buf out, err;
	int cancel_fd; /* raised once output came; -1 = never */
	int64_t cancelled_ms;
};
#define RAN_INIT                                                                            \
	{                                                                                   \
		.out = ABX_BUF_INIT(8 << 20), .err = ABX_BUF_INIT(8 << 20), .cancel_fd = -1 \
	}
void ran_release(struct ran *ran);
/* `req` may be NULL: nothing but argv. */
int run_argv(struct check *c, const struct abx_exec *req, const char *const *argv, struct ran *ran);
int run_script(struct check *c, const char *script, struct ran *ran);

#endif
