/* SPDX-License-Identifier: MIT */
/* Why something failed. */
#include "core/util/err.h"

#include <string.h>

#include "abxsdk/text.h"
#include "core/util/redact.h"

static const struct {
	int code, exit_code;
	const char *name;
} codes[] = {
	{ABX_OK, 0, "ok"},
	{ABX_EINTERNAL, 1, "internal"},
	{ABX_ENOTSUP, 1, "not_supported"},
	{ABX_EINVAL, 1, "invalid"},
	{ABX_ENOTFOUND, 1, "not_found"},
	{ABX_EEXIST, 1, "exists"},
	{ABX_ESTATE, 1, "wrong_state"},
	{ABX_EAUTH, 4, "not_logged_in"},
	{ABX_EPERM, 1, "not_permitted"},
	{ABX_EQUOTA, 1, "quota"},
	{ABX_ERATE, 1, "rate_limited"},
	{ABX_ETIMEDOUT, 1, "timed_out"},
	{ABX_ECANCELED, 130, "canceled"},
	{ABX_ENETWORK, 1, "network"},
	{ABX_EREMOTE, 1, "service_failed"},
	{ABX_EIO, 1, "io"},
	{ABX_ENOMEM, 1, "no_memory"},
	{ABX_EPROTO, 1, "protocol"},
	{ABX_EBROKEN, 5, "provider"},
	{ABX_EUSAGE, 2, "usage"},
	{ABX_ENOBOX, 3, "no_such_box"},
	{ABX_EPROVIDER, 5, "provider"},
	{ABX_EPOLICY, 6, "refused"},
	{ABX_ECORRUPT, 1, "damaged"},
	{ABX_EDENIED, 10, "denied"},
};

static void format(char *text, size_t size, const char *fmt, va_list ap) ABX_PRINTF(3, 0);

/* Redacted whole, then cut: the first half of a secret would not be recognised later. */
static void format(char *text, size_t size, const char *fmt, va_list ap)
{
	char *whole = NULL;

	if (vasprintf(&whole, fmt, ap) < 0)
		whole = NULL;
	if (whole)
		abx_redact(whole);
	(void)snprintf(text, size, "%s", whole ? whole : "out of memory");
	free(whole);
}

static int err_vset(struct abx_err *err, int code, const char *fmt, va_list ap) ABX_PRINTF(3, 0);

static int err_vset(struct abx_err *err, int code, const char *fmt, va_list ap)
{
	if (!err)
		return code;
	memset(err, 0, sizeof(*err));
	err->retry_after_ms = -1;
	err->code = code;
	format(err->text, sizeof(err->text), fmt, ap);
	return code;
}

int abx_err_set(struct abx_err *err, int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)err_vset(err, code, fmt, ap);
	va_end(ap);
	return code;
}

static int code_of_errno(int errnum)
{
	switch (errnum) {
	case ENOENT:
		return ABX_ENOTFOUND;
	case EEXIST:
		return ABX_EEXIST;
	case ENOMEM:
		return ABX_ENOMEM;
	case EACCES:
	case EPERM:
		return ABX_EPERM;
	case ETIMEDOUT:
		return ABX_ETIMEDOUT;
	case EINVAL:
		return ABX_EINVAL;
	default:
		return ABX_EIO;
	}
}

int abx_err_errno(struct abx_err *err, int errnum, const char *fmt, ...)
{
	int positive = errnum < 0 ? -errnum : errnum;
	int code = code_of_errno(positive);
	const char *remedy;
	va_list ap;
	size_t len;

	if (!err)
		return code;
	va_start(ap, fmt);
	(void)err_vset(err, code, fmt, ap);
	va_end(ap);
	len = strlen(err->text);
	(void)snprintf(err->text + len, sizeof(err->text) - len, ": %s", strerror(positive));
	remedy = abx_remedy_of_errno(positive);
	if (remedy)
		(void)abx_err_remedy(err, "%s", remedy);
	return code;
}

const char *abx_text_of_full_disk(const char *text)
{
	static const char *const words[] = {"No space left on device", "Disk quota exceeded"};

	for (size_t i = 0; i < ABX_N_ELEMENTS(words); i++)
		if (strstr(text, words[i]))
			return words[i];
	return NULL;
}

int abx_err_wrap(struct abx_err *err, const char *fmt, ...)
{
	char old[sizeof(err->text)];
	va_list ap;
	size_t len;

	if (!err)
		return ABX_EINTERNAL;
	memcpy(old, err->text, sizeof(old));
	va_start(ap, fmt);
	format(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	len = strlen(err->text);
	(void)snprintf(err->text + len, sizeof(err->text) - len, ": %s", old);
	return err->code;
}

int abx_err_remedy(struct abx_err *err, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return ABX_EINTERNAL;
	va_start(ap, fmt);
	format(err->remedy, sizeof(err->remedy), fmt, ap);
	va_end(ap);
	return err->code;
}

const char *abx_err_name(int code)
{
	for (size_t i = 0; i < ABX_N_ELEMENTS(codes); i++)
		if (codes[i].code == code)
			return codes[i].name;
	return "internal";
}

int abx_err_exit_code(int code)
{
	for (size_t i = 0; i < ABX_N_ELEMENTS(codes); i++)
		if (codes[i].code == code)
			return codes[i].exit_code;
	return 1;
}

bool abx_err_may_have_happened(int r, const struct abx_err *err)
{
	return r < 0 && (err->outcome_unknown || r == ABX_ECANCELED || r == ABX_EPROTO);
}

bool abx_err_retryable(int code)
{
	return code == ABX_ERATE || code == ABX_ENETWORK || code == ABX_EREMOTE ||
	       code == ABX_ETIMEDOUT;
}
