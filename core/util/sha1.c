/* SPDX-License-Identifier: MIT */
/* Hashes of contents, computed by libcrypto. */
#include "core/util/sha1.h"

#include <dlfcn.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIBRARY "libcrypto.so.3"
#define DIGEST_BYTES 20
#define DIGEST_256_BYTES 32

#define FUNCTIONS(F)       \
	F(EVP_MD_CTX_new)  \
	F(EVP_MD_CTX_free) \
	F(EVP_sha1)        \
	F(EVP_sha256) F(EVP_DigestInit_ex) F(EVP_DigestUpdate) F(EVP_DigestFinal_ex)

#define MEMBER(name) __typeof__(name) *name;
static struct {
	FUNCTIONS(MEMBER)
} api;
#undef MEMBER
static pthread_once_t api_once = PTHREAD_ONCE_INIT;
static char api_problem[200] = "not opened";

static void open_library(void)
{
	void *lib = dlopen(LIBRARY, RTLD_LAZY | RTLD_LOCAL);
	const char *why;

	api_problem[0] = '\0';
	if (!lib) {
		why = dlerror();
		(void)snprintf(api_problem, sizeof(api_problem), "%s", why ? why : "unknown");
		return;
	}
	/* POSIX lets dlsym's object pointers carry functions; C does not, hence the copies. */
#define LOAD(name)                                                                             \
	do {                                                                                   \
		void *at = dlsym(lib, #name);                                                  \
		memcpy(&api.name, &at, sizeof(at));                                            \
		if (!at)                                                                       \
			(void)snprintf(api_problem, sizeof(api_problem), LIBRARY " has no %s", \
				       #name);                                                 \
	} while (0);
	FUNCTIONS(LOAD)
#undef LOAD
}

int abx_sha1_open(struct abx_err *err)
{
	(void)pthread_once(&api_once, open_library);
	if (!api_problem[0])
		return 0;
	(void)abx_err_set(err, ABX_EIO, "libcrypto: not usable: %s", api_problem);
	return abx_err_remedy(err, "install OpenSSL's libcrypto, version 3 (libssl3)");
}

/* None of these fails but for want of memory, or without abx_sha1_open(). */
static void must(int ok)
{
	if (!ok)
		abort();
}

static void init(struct abx_sha1 *h, const EVP_MD *kind)
{
	if (!h->context)
		h->context = api.EVP_MD_CTX_new();
	must(h->context != NULL);
	must(api.EVP_DigestInit_ex(h->context, kind, NULL));
}

void abx_sha1_init(struct abx_sha1 *h)
{
	must(!api_problem[0]);
	init(h, api.EVP_sha1());
}

void abx_sha256_init(struct abx_sha1 *h)
{
	must(!api_problem[0]);
	init(h, api.EVP_sha256());
}

void abx_sha1_update(struct abx_sha1 *h, const void *data, size_t len)
{
	must(api.EVP_DigestUpdate(h->context, data, len));
}

static void hex(const unsigned char *digest, size_t n, char *text)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < n; i++) {
		text[2 * i] = digits[digest[i] >> 4];
		text[2 * i + 1] = digits[digest[i] & 15];
	}
	text[2 * n] = '\0';
}

void abx_sha1_hex(struct abx_sha1 *h, char text[ABX_SHA1_HEX_BYTES])
{
	unsigned char digest[DIGEST_BYTES];

	must(api.EVP_DigestFinal_ex(h->context, digest, NULL));
	hex(digest, sizeof(digest), text);
}

void abx_sha256_hex(struct abx_sha1 *h, char text[ABX_SHA256_HEX_BYTES])
{
	unsigned char digest[DIGEST_256_BYTES];

	must(api.EVP_DigestFinal_ex(h->context, digest, NULL));
	hex(digest, sizeof(digest), text);
}

void abx_sha1_release(struct abx_sha1 *h)
{
	if (h->context)
		api.EVP_MD_CTX_free(h->context);
	h->context = NULL;
}

void abx_blob_id_init(struct abx_sha1 *h, uint64_t size)
{
	char head[32];
	int n = snprintf(head, sizeof(head), "blob %llu", (unsigned long long)size);

	abx_sha1_init(h);
	abx_sha1_update(h, head, (size_t)n + 1);
}
