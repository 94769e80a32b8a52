/* SPDX-License-Identifier: MIT */
/*
 * core/state/names.h: names for boxes that were given none: "quiet-otter".
 *
 * `attempt` counts from 0; from the 8th on a number follows ("quiet-otter-57"), with more
 * room each time, so that a free name is found soon however many boxes there are.  Never
 * only digits, never only hexadecimal digits, always a valid box name.
 */
#ifndef ABX_NAMES_H
#define ABX_NAMES_H

#include <stddef.h>

#define ABX_NAME_BYTES 64

void abx_name_make(unsigned int attempt, char text[ABX_NAME_BYTES]);

#endif
