/* SPDX-License-Identifier: MIT */
/*
 * core/state/config-edit.h: one key of a YAML text changed, everything else as it was.
 *
 * Comments, order, unknown keys and layout stay: the text is edited, not written anew.  The
 * result is read back and compared, so that it says what it should or is not used at all.
 */
#ifndef ABX_CONFIG_EDIT_H
#define ABX_CONFIG_EDIT_H

#include "abxsdk/buf.h"
#include "core/util/err.h"

/*
 * `key` is `section.name`; value NULL removes it (one that is not there is fine).  `ret` is
 * filled with the new text.  ABX_EINVAL: the text is not YAML, cannot hold the value, or is
 * laid out in a way that has to be edited by hand.
 */
int abx_yaml_edit(const char *name, const char *text, size_t len, const char *key,
		  const char *value, struct abx_buf *ret, struct abx_err *err);

#endif
