/* SPDX-License-Identifier: MIT */
/*
 * core/cli/cells.h: rows of a provider, shown.
 *
 * What a cell means is said by the end of its name: _ms, _bytes, _percent, _milli.  Values come
 * from a provider or a box, so they are quoted.
 */
#ifndef ABX_CELLS_H
#define ABX_CELLS_H

#include "core/cli/cmd.h"

/* "1.5 MiB" of mem_bytes; free it. */
char *abx_cell_text(const char *key, const char *value);
/* "mem" of mem_bytes, "disk limit" of disk_limit_bytes; free it. */
char *abx_cell_label(const char *key);
/* Numbers as numbers.  `except` (may be NULL) is a key that is left out. */
cJSON *abx_cell_json(const struct abx_row *row, const char *except);
/* Is the row of that kind?  One that does not say is of kind "box". */
bool abx_row_is(const struct abx_row *row, const char *kind);

#endif
