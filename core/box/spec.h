/* SPDX-License-Identifier: MIT */
/*
 * core/box/spec.h: what a box is given beyond its project: network, limits, mounts, volumes,
 * ports.
 *
 * Made once, when the box is: from options, from a box that is copied, or from settings.
 * What makes no sense is refused before anything exists.  Kept with the box's record as JSON,
 * so that starting, forking and showing it know the same.
 *
 *	r = abx_box_spec_make(&args, config, home, &spec, err);
 *	abx_box_spec_fill(&spec, &lists, &provision);
 */
#ifndef ABX_SPEC_H
#define ABX_SPEC_H

#include "core/state/boxes.h"
#include "core/state/config.h"
#include "core/util/egress.h"

/* As a user writes them; NULL and empty: as the copied box has it, else as configured. */
struct abx_spec_args {
	const char *egress, *cpu, *memory, *disk, *pids, *size, *location;
	const struct abx_strv *mounts, *volumes, *ports; /* may be NULL */
	bool read_only, private_urls;
};

struct abx_spec_mount {
	char *source; /* absolute, real; of a volume: its name */
	char *target; /* absolute, normal */
	bool read_only;
};
struct abx_spec_mounts {
	struct abx_spec_mount *items;
	size_t len;
};

struct abx_box_spec {
	bool has_egress; /* otherwise the provider's own default */
	struct abx_egress egress;
	uint32_t cpu_milli, max_pids;	/* 0 = no limit of ours */
	uint64_t mem_bytes, disk_bytes; /* the same */
	struct abx_spec_mounts mounts, volumes;
	uint16_t *ports;
	uint32_t n_ports;
	bool read_only, private_urls;
	bool committed; /* seeded with what a commit says, not with what is checked out */
	char *size, *location;
	char *subdir;	    /* of the workspace, where commands start; NULL: itself */
	int64_t timeout_ms; /* its life from each start on; 0 = the provider's own */
};

void abx_box_spec_release(struct abx_box_spec *s);

/* `base` is the spec (JSON) of a box that is copied, or NULL; what is not in it is as configured.
 * config may be NULL.  ABX_EUSAGE, ABX_EINVAL, ABX_EPOLICY. */
int abx_box_spec_make(const struct abx_spec_args *args, const char *base,
		      const struct abx_config *config, const struct abx_home *home,
		      struct abx_box_spec *ret, struct abx_err *err);

/* What is seeded must not be written into a directory of this machine or into a volume:
 * nothing may be mounted where the project at `workspace` has something. */
int abx_box_spec_check_project(const struct abx_box_spec *s, const char *workspace,
			       const char *dir_in_box, struct abx_err *err);

/* Of a box's record; a missing one is an empty spec. */
int abx_box_spec_parse(const char *json, struct abx_box_spec *ret, struct abx_err *err);
/* Without what is mounted.  *json may be NULL, before and after; free it. */
int abx_box_spec_drop_mounts(char **json, struct abx_err *err);
/* Is anything mounted in it?  `json` may be NULL. */
bool abx_box_spec_has_mounts(const char *json);
/* NULL for an empty one; free it. */
char *abx_box_spec_json(const struct abx_box_spec *s);
/* What a provision request points to. */
struct abx_spec_lists {
	struct abx_mount *mounts;
	const struct abx_mount **mount_list;
	struct abx_kv *volumes;
};
/* volume_ids[i] is the provider's id of volumes.items[i].  The request points into the spec,
 * the ids and the lists. */
void abx_box_spec_fill(const struct abx_box_spec *s, const struct abx_strv *volume_ids,
		       struct abx_spec_lists *lists, struct abx_provision *req);
void abx_spec_lists_release(struct abx_spec_lists *l);

/* What every start and resume of a box asks for. */
struct abx_start_req abx_box_start_req(const struct abx_box *box);

/* Where its commands start unless it is said, or NULL: in the workspace.  free() it. */
char *abx_box_spec_cwd(const struct abx_box_spec *s);

#endif
