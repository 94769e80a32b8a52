/* SPDX-License-Identifier: MIT */
/*
 * abxsdk/base64.h: bytes as text, with padding.
 *
 *	abx_base64_add(&b, data, len);
 */
#ifndef ABXSDK_BASE64_H
#define ABXSDK_BASE64_H

#include "abxsdk/buf.h"

void abx_base64_add(struct abx_buf *to, const void *data, size_t len);

#endif
