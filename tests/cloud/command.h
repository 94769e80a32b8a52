/* SPDX-License-Identifier: MIT */
/*
 * tests/cloud/command.h: commands in sandboxes, through the agent; and its frames (agent/frames.h).
 */
#ifndef CLOUD_COMMAND_H
#define CLOUD_COMMAND_H

#include <cjson/cJSON.h>

#include "tests/cloud/agent/frames.h"
#include "tests/cloud/engine.h"

void emu_frame_add(struct abx_buf *to, char kind, const void *data, size_t len);
void emu_frame_add_text(struct abx_buf *to, char kind, const char *text);
void emu_frame_add_env(struct abx_buf *to, const char *key, const char *value);
/* More of them came: whole ones are told, the rest stays in `in`.  False: it is none. */
bool emu_frames_take(struct abx_buf *in, const void *data, size_t len,
		     void (*fn)(void *ctx, char kind, const char *data, size_t len), void *ctx);

struct emu_command {
	const char *user, *cwd; /* cwd NULL: the user's home */
	const char *const *argv;
	const cJSON *env; /* a map of text; may be NULL */
	/* AGENT_STDOUT or AGENT_STDERR; may be NULL. */
	void (*output)(void *ctx, char stream, const char *data, size_t len);
	void *ctx;
};
/* Without input, until it has ended: 0 and its exit code. */
int emu_command(struct emu_engine *e, const char *id, const struct emu_command *c, int *ret_code,
		struct abx_err *err);

#endif
