/* SPDX-License-Identifier: MIT */
/*
 * tests/cloud/faults.h: failures to order, by route and count, and what was asked of the server.
 *
 * Any thread may call anything here.
 */
#ifndef CLOUD_FAULTS_H
#define CLOUD_FAULTS_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum emu_fault_kind {
	EMU_FAULT_NONE,
	EMU_FAULT_STATUS,   /* this status and body; nothing is done */
	EMU_FAULT_RESET,    /* the connection is reset; nothing is done */
	EMU_FAULT_HANG,	    /* no answer for as long as the client waits; nothing is done */
	EMU_FAULT_TRUNCATE, /* done; half of the answer */
	EMU_FAULT_LOSE,	    /* done; the connection is reset instead of an answer */
	EMU_FAULT_DENY,	    /* done; this status and body instead of the answer */
	EMU_FAULT_SLOW,	    /* done, delay_ms later */
};

struct emu_fault {
	enum emu_fault_kind kind;
	int status;
	int64_t delay_ms;
	char *body;
	cJSON *headers;
};

struct emu_faults;

struct emu_faults *emu_faults_new(void);
void emu_faults_free(struct emu_faults *f);
/* NULL, or what is wrong with it. */
const char *emu_faults_add(struct emu_faults *f, const cJSON *doc);
void emu_faults_clear(struct emu_faults *f);
/* The fault that this request gets. */
void emu_faults_take(struct emu_faults *f, const char *method, const char *path,
		     struct emu_fault *ret);
void emu_fault_release(struct emu_fault *f);

struct emu_log;

struct emu_log *emu_log_new(void);
void emu_log_free(struct emu_log *l);
/* Number of the entry. */
size_t emu_log_begin(struct emu_log *l, const char *method, const char *uri);
void emu_log_status(struct emu_log *l, size_t at, int status);
void emu_log_end(struct emu_log *l, size_t at);
void emu_log_clear(struct emu_log *l);
/* {"requests": [{"method", "path", "status" (0: none), "began_ms", "ended_ms" (0: under way)}]} */
cJSON *emu_log_json(struct emu_log *l);

#endif
