/* SPDX-License-Identifier: MIT */
/*
 * core/base/ca.h: certificates of authorities that are to be trusted beside a system's own:
 * box.ca_file, and with box.host_ca what the administrator of this machine added to it.
 *
 * They are trusted by the services' connections (the host does that), while images are built,
 * and in boxes.
 */
#ifndef ABX_CA_H
#define ABX_CA_H

#include "abxsdk/buf.h"
#include "core/state/config.h"
#include "core/util/err.h"

#define ABX_CA_MAX_BYTES ((size_t)4 << 20)

/* As one PEM text; nothing is added when none are asked for.  ABX_EINVAL for a file that is no
 * certificate or has a private key in it: it would go into every box. */
int abx_ca_load(const struct abx_config *config, struct abx_buf *ret, struct abx_err *err);

#endif
