/* SPDX-License-Identifier: MIT */
/* Words of any bytes, for a protocol of JSON texts. */
#include "providers/docker/words.h"

#include <string.h>

#include "abxsdk/buf.h"
#include "abxsdk/text.h"

#define SCRIPT_MAX_BYTES ((size_t)8 << 20)

bool docker_is_utf8(const char *text)
{
	const unsigned char *at = (const unsigned char *)text;

	while (*at) {
		size_t n = abx_utf8_len(at);

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
