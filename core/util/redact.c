/* SPDX-License-Identifier: MIT */
/* Values that must never be seen. */
#include "core/util/redact.h"

#include <pthread.h>
#include <string.h>

#include "core/util/mem.h"

#define REDACT_MIN_BYTES 6

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct abx_strv secrets;

static void add_once(const char *value)
{
	if (strlen(value) < REDACT_MIN_BYTES)
		return;
	for (size_t i = 0; i < secrets.len; i++)
		if (strcmp(secrets.items[i], value) == 0)
			return;
	abx_strv_add(&secrets, value);
	/* Longest first: a short secret inside a long one must not leave the rest of it. */
	for (size_t i = secrets.len - 1;
	     i > 0 && strlen(secrets.items[i - 1]) < strlen(secrets.items[i]); i--) {
		char *shorter = secrets.items[i - 1];

		secrets.items[i - 1] = secrets.items[i];
		secrets.items[i] = shorter;
	}
}

static void add_percent_encoded(const char *value, const char hex[16])
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789-._~";
	char *text = abx_xcalloc(strlen(value) * 3 + 1, 1), *at = text;

	for (const char *s = value; *s; s++) {
		if (strchr(plain, *s)) {
			*at++ = *s;
			continue;
		}
		*at++ = '%';
		*at++ = hex[(unsigned char)*s >> 4];
		*at++ = hex[(unsigned char)*s & 15];
	}
	add_once(text);
	explicit_bzero(text, (size_t)(at - text));
	free(text);
}

/* A secret inside a longer base64 text appears in one of three alignments.  Only the whole
 * groups in the middle are certain, and enough to recognise it. */
static void add_base64_at(const char *value, size_t skip)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				     "0123456789+/";
	size_t len = strlen(value);
	char *text = abx_xcalloc(len * 2 + 4, 1), *at = text;

	for (size_t i = skip; i + 3 <= len; i += 3) {
		const unsigned char *s = (const unsigned char *)value + i;
		unsigned int group = (unsigned int)(s[0] << 16 | s[1] << 8 | s[2]);

		for (int shift = 18; shift >= 0; shift -= 6)
			*at++ = digits[group >> shift & 63];
	}
	if (at - text >= 12)
		add_once(text);
	explicit_bzero(text, (size_t)(at - text));
	free(text);
}

void abx_redact_add(const char *secret)
{
	if (!secret || strlen(secret) < REDACT_MIN_BYTES)
		return;
	(void)pthread_mutex_lock(&lock);
	add_once(secret);
	add_percent_encoded(secret, "0123456789ABCDEF");
	add_percent_encoded(secret, "0123456789abcdef");
	for (size_t skip = 0; skip < 3; skip++)
		add_base64_at(secret, skip);
	(void)pthread_mutex_unlock(&lock);
}

void abx_redact(char *text)
{
	static const char mask[] = "***";

	(void)pthread_mutex_lock(&lock);
	for (size_t i = 0; i < secrets.len; i++) {
		size_t len = strlen(secrets.items[i]);
		char *at = text;

		while ((at = strstr(at, secrets.items[i]))) {
			memcpy(at, mask, sizeof(mask) - 1);
			memmove(at + sizeof(mask) - 1, at + len, strlen(at + len) + 1);
			at += sizeof(mask) - 1;
		}
	}
	(void)pthread_mutex_unlock(&lock);
}

void abx_redact_forget_all(void)
{
	(void)pthread_mutex_lock(&lock);
	for (size_t i = 0; i < secrets.len; i++)
		explicit_bzero(secrets.items[i], strlen(secrets.items[i]));
	abx_strv_release(&secrets);
	(void)pthread_mutex_unlock(&lock);
}
