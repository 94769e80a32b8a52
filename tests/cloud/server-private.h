/* SPDX-License-Identifier: MIT */
/* tests/cloud/server-private.h: what the files of the server share. */
#ifndef CLOUD_SERVER_PRIVATE_H
#define CLOUD_SERVER_PRIVATE_H

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#include "tests/cloud/server.h"

#define EMU_CONTROL "/_emulator/"

struct MHD_Daemon;

struct emu_server {
	const struct emu_service *service;
	void *service_data;
	struct MHD_Daemon *daemon;
	struct emu_faults *faults;
	struct emu_log *log;
	int record_fd; /* -1: none */
	atomic_bool ending;
	pthread_mutex_t lock; /* of what follows */
	struct emu_limits limits;
	int64_t second; /* in which so many requests came */
	int64_t asked;
	uint16_t port;
};

/* server.c */
bool emu_client_left(const struct emu_request *req);

#endif
