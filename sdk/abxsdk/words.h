/* SPDX-License-Identifier: MIT */
/*
 * abxsdk/words.h: words of any bytes, for a protocol whose texts are UTF-8.
 *
 *	abx_auto(abx_buf) struct abx_buf script = ABX_BUF_INIT(ABX_WORDS_SCRIPT_MAX);
 *
 *	if (abx_words_are_utf8(argv))
 *		... they go as they are
 *	else
 *		abx_words_script(argv, &script);     /bin/sh -c SCRIPT becomes the command
 *
 * The script is ASCII; it has failed when it is longer than its buffer may be.
 */
#ifndef ABXSDK_WORDS_H
#define ABXSDK_WORDS_H

#include "abxsdk/buf.h"

#define ABX_WORDS_SCRIPT_MAX ((size_t)8 << 20)

bool abx_is_utf8(const char *text);
bool abx_words_are_utf8(const char *const *argv);
void abx_words_script(const char *const *argv, struct abx_buf *script);

#endif
