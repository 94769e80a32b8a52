/* SPDX-License-Identifier: MIT */
/* Words of any bytes, for a protocol of JSON texts. */
#include "providers/docker/words.h"

#include <string.h>

#include "abxsdk/buf.h"

#define SCRIPT_MAX_BYTES ((size_t)8 << 20)

/* How many bytes the character at `s` has; 0: it is none. */
static size_t utf8_length(const unsigned char *s)
{
	size_t n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;

	if (s[0] > 0xf4)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	/* Overlong forms, halves of surrogate pairs, and what is above the last character. */
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return n;
}

bool docker_is_utf8(const char *text)
{
	const unsigned char *at = (const unsigned char *)text;

	while (*at) {
		size_t n = utf8_length(at);

		if (!n)
			return false;
		at += n;
	}
	return true;
}

static void add(cJSON *array, const char *word)
{
	(void)cJSON_AddItemToArray(array, cJSON_CreateString(word));
}

/* A command substitution takes line feeds from an end: a dot is put there, and taken off. */
static void add_escaped(struct abx_buf *script, const char *word)
{
	abx_buf_adds(script, "w=$(printf '%b.' '");
	for (; *word; word++)
		abx_buf_addf(script, "\\0%03o", (unsigned char)*word);
	abx_buf_adds(script, "')\nset -- \"$@\" \"${w%.}\"\n");
}

cJSON *docker_words(const char *const *argv)
{
	abx_auto(abx_buf) struct abx_buf script = ABX_BUF_INIT(SCRIPT_MAX_BYTES);
	cJSON *array = cJSON_CreateArray();
	bool plain = true;

	for (size_t i = 0; argv[i] && plain; i++)
		plain = docker_is_utf8(argv[i]);
	for (size_t i = 0; argv[i]; i++)
		if (plain)
			add(array, argv[i]);
		else
			add_escaped(&script, argv[i]);
	if (plain)
		return array;
	abx_buf_adds(&script, "unset w\nexec \"$@\"\n");
	if (script.failed) {
		cJSON_Delete(array);
		return NULL;
	}
	add(array, "/bin/sh");
	add(array, "-c");
	add(array, script.data);
	return array;
}
