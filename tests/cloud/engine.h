/* SPDX-License-Identifier: MIT */
/*
 * tests/cloud/engine.h: sandboxes of emulated clouds, which are boxes of the provider `local`.
 *
 * All of them belong to AGENTBOX_HOME, and end with the engine.  What an earlier one left there
 * is removed when the next one opens it.  In each is the agent (agent/agent.h); what it does is
 * real, as root or a user there.  Ids are the service's own: 1 to 64 of [0-9a-z-].
 *
 * A light engine has no sandboxes: everything succeeds, and commands print nothing and exit with 0.
 *
 * Any thread may call anything; all of it blocks.
 */
#ifndef CLOUD_ENGINE_H
#define CLOUD_ENGINE_H

#include <stdbool.h>

#include "abxsdk/buf.h"
#include "core/util/err.h"

struct emu_engine;

struct emu_engine_options {
	bool light;
	bool no_network; /* sandboxes reach nothing */
	/* Made ready in every sandbox by root's shell, before the first one is. */
	const char *setup;
};

int emu_engine_open(const struct emu_engine_options *o, struct emu_engine **ret,
		    struct abx_err *err);
void emu_engine_close(struct emu_engine *e);
bool emu_engine_light(const struct emu_engine *e);

#define EMU_REF_BYTES 80
struct emu_box_options {
	const char *snapshot; /* NULL: what `setup` made */
	/* Where it may connect to, as abx_provision has it. */
	const char *const *allow, *const *deny;
};
int emu_box_make(struct emu_engine *e, const char *id, const struct emu_box_options *o,
		 struct abx_err *err);
/* The same of one that runs. */
int emu_box_set_egress(struct emu_engine *e, const char *id, const struct emu_box_options *o,
		       struct abx_err *err);
int emu_box_end(struct emu_engine *e, const char *id, struct abx_err *err);
/* Its processes are held, or go on. */
int emu_box_pause(struct emu_engine *e, const char *id, struct abx_err *err);
int emu_box_resume(struct emu_engine *e, const char *id, struct abx_err *err);
/* Its processes end, its files stay. */
int emu_box_stop(struct emu_engine *e, const char *id, struct abx_err *err);
int emu_box_start(struct emu_engine *e, const char *id, struct abx_err *err);
/* Of its files. */
int emu_box_snapshot(struct emu_engine *e, const char *id, char ref[EMU_REF_BYTES],
		     struct abx_err *err);
int emu_snapshot_end(struct emu_engine *e, const char *ref, struct abx_err *err);

struct emu_exec {
	const char *const *args; /* of the agent; NULL-terminated */
	int in_fd;		 /* -1: none */
	bool network;		 /* wait until there is one */
	/* What it says, on a thread of the provider's.  Non-zero: stop. */
	int32_t (*output)(void *ctx, const void *data, size_t len);
	void *ctx;
};
/* Until the agent has ended; 0 and its exit code. */
int emu_exec(struct emu_engine *e, const char *id, const struct emu_exec *x, int *ret_code,
	     struct abx_err *err);
/* The same, its answer collected. */
int emu_ask(struct emu_engine *e, const char *id, const char *const *args, struct abx_buf *answer,
	    struct abx_err *err);

#endif
