/* SPDX-License-Identifier: MIT */
/* tests/cloud/e2b/service.h: the emulated E2B, for the program that serves it. */
#ifndef CLOUD_E2B_SERVICE_H
#define CLOUD_E2B_SERVICE_H

#include "tests/cloud/server.h"

extern const struct emu_service e2b_service;
/* What its sandboxes have: a user `user` that is not uid 1000. */
extern const char e2b_setup[];

#endif
