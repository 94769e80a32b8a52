/* SPDX-License-Identifier: MIT */
/*
 * core/util/redact.h: values that must never be seen.
 *
 * Every text that leaves the program for a person, a log or a file passes abx_redact().
 * Secrets are added from configuration and by providers at run time.  Values shorter than
 * six bytes are not added: they would blank ordinary words.  The forms that a value takes
 * when it is percent-encoded or base64-encoded are blanked too.  Thread-safe.
 */
#ifndef ABX_REDACT_H
#define ABX_REDACT_H

#include <stddef.h>

void abx_redact_add(const char *secret);
/* Blank secrets in place; the text never grows. */
void abx_redact(char *text);
void abx_redact_forget_all(void);

#endif
