/* SPDX-License-Identifier: MIT */
/* core/box/spec-parse.h: the entries of a spec's lists, from text.  ABX_EINVAL, ABX_EPOLICY. */
#ifndef ABX_SPEC_PARSE_H
#define ABX_SPEC_PARSE_H

#include "core/box/spec.h"

/* "8080" */
int abx_spec_add_port(struct abx_box_spec *s, const char *text, struct abx_err *err);
/* "SRC:DST[:ro|:rw]"; neither path may contain a colon.  SRC must be there; read-only unless
 * it says rw.  Nothing of `home` may be given to a box. */
int abx_spec_add_mount(struct abx_box_spec *s, const char *text, const struct abx_home *home,
		       struct abx_err *err);
/* "NAME:DST" */
int abx_spec_add_volume(struct abx_box_spec *s, const char *text, struct abx_err *err);
/* No two at the same place. */
int abx_spec_check_targets(const struct abx_box_spec *s, struct abx_err *err);

/* Is it a name for a volume or an image?  [a-z0-9][a-z0-9._-]{0,62} */
bool abx_spec_is_name(const char *name);

#endif
