/* SPDX-License-Identifier: MIT */
/* tests/cloud/e2b/envd.h: envd of the emulated E2B, one for each sandbox. */
#ifndef CLOUD_E2B_ENVD_H
#define CLOUD_E2B_ENVD_H

#include "tests/cloud/e2b/e2b.h"

#define ENVD_USER_BYTES 64

/* The running sandbox that the request is one of. */
struct e2b_box *envd_box(const struct emu_request *req);
/* For whom; false: that cannot be a name. */
bool envd_user(const struct emu_request *req, char user[ENVD_USER_BYTES]);
void envd_error(struct emu_request *req, int status, const char *fmt, ...) ABX_PRINTF(3, 4);

/* port 0: it is about none. */
void envd_proxy_error(struct emu_request *req, int status, const char *message, uint64_t port);

/* port.c: the request is one of what listens there. */
void envd_port_begin(struct emu_request *req, struct e2b_box *b, uint64_t number);

/* process-rpc.c */
void envd_start(struct emu_request *req);
void envd_connect(struct emu_request *req);
void envd_list_processes(struct emu_request *req);
void envd_send_input(struct emu_request *req);
void envd_stream_input(struct emu_request *req);
void envd_stream_input_begin(struct emu_request *req);
void envd_close_stdin(struct emu_request *req);
void envd_send_signal(struct emu_request *req);
void envd_update(struct emu_request *req);

/* filesystem.c, watch.c */
void envd_stat(struct emu_request *req);
void envd_make_dir(struct emu_request *req);
void envd_move(struct emu_request *req);
void envd_list_dir(struct emu_request *req);
void envd_remove(struct emu_request *req);
void envd_watch_dir(struct emu_request *req);
/* What an entry of the agent's says, as EntryInfo; *at moves behind it.  NULL: it is cut short. */
cJSON *envd_entry(const char **at, const char *end);

/* files.c, upload.c */
void envd_get_file(struct emu_request *req);
void envd_post_file(struct emu_request *req);
void envd_post_file_begin(struct emu_request *req);
/* What its answer begins with; the rest is at *ret_rest. */
const char *envd_answer(const struct abx_buf *answer, const char **ret_rest);
/* The HTTP status of a word of the agent's. */
int envd_status(const char *kind);

#endif
