/* SPDX-License-Identifier: MIT */
/* agentbox-cloud-emulator: a cloud on this machine, to try and to test things with. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abxsdk/fs.h"
#include "abxsdk/number.h"
#include "core/host/probe.h"
#include "core/util/log.h"
#include "core/util/mem.h"
#include "tests/cloud/e2b/service.h"
#include "tests/cloud/engine.h"
#include "tests/cloud/server.h"

static const char usage[] =
	"usage: agentbox-cloud-emulator SERVICE [--port N] [--home DIR] [--light] [--no-network]\n"
	"       [--record FILE]\n"
	"\n"
	"Serves the HTTP interface of a cloud on 127.0.0.1 until it is interrupted, and says "
	"where.\n"
	"Sandboxes are boxes of the provider `local`.  Services: e2b\n"
	"\n"
	"  --port N      listen there instead of on a free port\n"
	"  --home DIR    keep sandboxes below DIR instead of in a temporary directory\n"
	"  --light       no sandboxes at all: for what does not run commands\n"
	"  --no-network  sandboxes reach nothing\n"
	"  --record FILE append a line of JSON about each request\n";

struct options {
	const struct emu_service *service;
	const char *setup, *home, *record;
	uint64_t port;
	bool light, no_network;
};

static bool parse(int argc, char **argv, struct options *ret)
{
	for (int i = 1; i < argc; i++) {
		const char *a = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;

		if (strcmp(a, "--light") == 0)
			ret->light = true;
		else if (strcmp(a, "--no-network") == 0)
			ret->no_network = true;
		else if (strcmp(a, "--home") == 0 && value && *value)
			ret->home = argv[++i];
		else if (strcmp(a, "--record") == 0 && value && *value)
			ret->record = argv[++i];
		else if (strcmp(a, "--port") == 0 && value &&
			 abx_parse_u64(value, UINT16_MAX, &ret->port))
			i++;
		else if (strcmp(a, "e2b") == 0 && !ret->service) {
			ret->service = &e2b_service;
			ret->setup = e2b_setup;
		} else
			return false;
	}
	return ret->service != NULL;
}

static int serve(const struct options *o, const sigset_t *ending, struct abx_err *err)
{
	const struct emu_engine_options eo = {
		.light = o->light, .no_network = o->no_network, .setup = o->setup};
	struct emu_options so = {
		.address = "127.0.0.1", .port = (uint16_t)o->port, .record = o->record};
	struct emu_server *server = NULL;
	int signo, r = emu_engine_open(&eo, &so.engine, err);

	if (r < 0)
		return r;
	r = emu_server_start(o->service, &so, &server, err);
	if (r == 0) {
		(void)printf("http://%s:%u\n", so.address, emu_server_port(server));
		(void)fflush(stdout);
		(void)sigwait(ending, &signo);
		emu_server_stop(server);
	}
	emu_engine_close(so.engine);
	return r;
}

int main(int argc, char **argv)
{
	struct abx_err err = ABX_ERR_INIT;
	struct options o = {0};
	char made[] = "/tmp/agentbox-cloud-XXXXXX";
	sigset_t ending;
	int r;

	if (argc > 1 && strcmp(argv[1], ABX_PROBE_COMMAND) == 0)
		return abx_probe_main(argc - 1, argv + 1);
	if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
		(void)fputs(usage, stdout);
		return 0;
	}
	if (!parse(argc, argv, &o)) {
		(void)fputs(usage, stderr);
		return 2;
	}
	(void)sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
	(void)sigemptyset(&ending);
	(void)sigaddset(&ending, SIGINT);
	(void)sigaddset(&ending, SIGTERM);
	(void)sigaddset(&ending, SIGHUP);
	(void)pthread_sigmask(SIG_BLOCK, &ending, NULL);
	abx_log_init(false);
	if (!o.home && !o.light && !mkdtemp(made)) {
		(void)fprintf(stderr, "agentbox-cloud-emulator: %s: %s\n", made, strerror(errno));
		return 1;
	}
	if (!o.light)
		(void)setenv("AGENTBOX_HOME", o.home ? o.home : made, 1);
	r = serve(&o, &ending, &err);
	if (r < 0)
		(void)fprintf(stderr, "agentbox-cloud-emulator: %s\n", err.text);
	if (!o.home && !o.light)
		(void)abx_fs_remove_tree(AT_FDCWD, made);
	return r < 0 ? 1 : 0;
}
