/* SPDX-License-Identifier: MIT */
/*
 * words.h: words of any bytes, for a protocol of JSON texts.
 *
 * Arguments that are valid UTF-8 go as they are.  With one that is not, /bin/sh of the box puts
 * them together from ASCII and becomes the command.
 */
#ifndef DOCKER_WORDS_H
#define DOCKER_WORDS_H

#include <cjson/cJSON.h>
#include <stdbool.h>

bool docker_is_utf8(const char *text);
/* A JSON array for the command `argv`; NULL: out of memory, or beyond what the engine takes. */
cJSON *docker_words(const char *const *argv);

#endif
