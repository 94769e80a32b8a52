/* SPDX-License-Identifier: MIT */
/* Words of any bytes, for a protocol whose texts are UTF-8. */
#include "abxsdk/words.h"

#include "abxsdk/text.h"

bool abx_is_utf8(const char *text)
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

bool abx_words_are_utf8(const char *const *argv)
{
	for (size_t i = 0; argv[i]; i++)
		if (!abx_is_utf8(argv[i]))
			return false;
	return true;
}

/* A command substitution takes line feeds from an end: a dot is put there, and taken off. */
static void add_escaped(struct abx_buf *script, const char *word)
{
	abx_buf_adds(script, "w=$(printf '%b.' '");
	for (; *word; word++)
		abx_buf_addf(script, "\\0%03o", (unsigned char)*word);
	abx_buf_adds(script, "')\nset -- \"$@\" \"${w%.}\"\n");
}

void abx_words_script(const char *const *argv, struct abx_buf *script)
{
	for (size_t i = 0; argv[i]; i++)
		add_escaped(script, argv[i]);
	abx_buf_adds(script, "unset w\nexec \"$@\"\n");
}
