/* SPDX-License-Identifier: MIT */
/*
 * core/host/record.h: the structs of the ABI, as data.
 *
 * One table a struct says which members point somewhere and how long what they point to may
 * be.  From it come the check of what a provider hands over and the deep copy, in both
 * directions: results are copied because the provider's memory ends with the callback,
 * requests because a provider that is given up on may go on reading them.
 *
 *	struct abx_sandbox s;
 *	void *memory;
 *	int r = abx_record_copy(&abx_record_sandbox, theirs, &s, &memory, err);
 *	...
 *	free(memory);        everything that `s` points to
 *
 * A struct that is shorter than its 1.0 size, larger than ABX_STRUCT_MAX_BYTES, or that
 * breaks a rule of its table is ABX_EPROTO.  Members that an older, shorter struct does not
 * have read as zero.
 */
#ifndef ABX_RECORD_H
#define ABX_RECORD_H

#include <stdbool.h>
#include <stddef.h>

#include "core/util/err.h"

enum abx_field_kind {
	ABX_FIELD_STR,	  /* const char *, at most `max` bytes */
	ABX_FIELD_KV,	  /* const struct abx_kv *, `count` of them; max bytes a value */
	ABX_FIELD_STRV,	  /* const char *const *, NULL-terminated */
	ABX_FIELD_MOUNTS, /* const struct abx_mount *const *, `count` of them */
	ABX_FIELD_U16,	  /* const uint16_t *, `count` of them */
	ABX_FIELD_STEPS,  /* const struct abx_build_step *, `count` of them */
};

#define ABX_FIELD_REQUIRED 1 /* not NULL, not empty */
#define ABX_FIELD_LINE 2     /* one printable line of UTF-8 */
#define ABX_FIELD_CUT 4	     /* a longer one is cut, not refused */

struct abx_field {
	const char *name;
	size_t offset, count_offset, max;
	uint8_t kind, flags;
};

struct abx_record_type {
	const char *name;
	uint32_t min_size, size; /* of 1.0, of now */
	const struct abx_field *fields;
	size_t n_fields;
};

/* A row of emit_row, as a struct. */
struct abx_row_record {
	uint32_t struct_size, n_cells;
	const struct abx_kv *cells;
};

/* Arguments of operations that take no struct, as one. */
struct abx_plain_args {
	uint32_t struct_size, reserved0;
	const char *text;
	const char *const *argv;
	int64_t a, b;
};

/* From providers. */
extern const struct abx_record_type abx_record_sandbox, abx_record_resource, abx_record_snapshot,
	abx_record_url, abx_record_ssh, abx_record_file, abx_record_rate, abx_record_usage,
	abx_record_failure, abx_record_row;
/* To providers. */
extern const struct abx_record_type abx_record_sandbox_ref, abx_record_list_req,
	abx_record_provision, abx_record_start_req, abx_record_stop_req, abx_record_exec,
	abx_record_transfer, abx_record_prepare, abx_record_url_req, abx_record_snapshot_req,
	abx_record_logs_req, abx_record_volume_req, abx_record_policy, abx_record_plain;

/* ret points to t->size bytes. */
int abx_record_copy(const struct abx_record_type *t, const void *src, void *ret, void **ret_memory,
		    struct abx_err *err);

#endif
