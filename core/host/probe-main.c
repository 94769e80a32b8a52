/* SPDX-License-Identifier: MIT */
/* Loading a plugin where it cannot hurt: the child. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "abxsdk/fs.h"
#include "core/host/descriptor.h"
#include "core/host/loader.h"
#include "core/host/probe.h"
#include "core/host/trust.h"
#include "core/util/mem.h"
#include "core/util/parse.h"

/* Our words go to where stdout was; the plugin's go nowhere. */
static int take_stdout(void)
{
	int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 64);
	abx_autoclose int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (fd < 0 || null < 0)
		return -1;
	for (int i = 0; i < 3; i++)
		if (dup2(null, i) < 0)
			return -1;
	return fd;
}

/* A crash is expected here: it needs no core file, and no handler that a sanitizer installed
 * may turn it into something else.  Nor may the child outlive its parent. */
static void limit_self(void)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
	const struct sigaction dfl = {.sa_handler = SIG_DFL};
	const struct rlimit none = {0, 0};

	for (size_t i = 0; i < ABX_N_ELEMENTS(faults); i++)
		(void)sigaction(faults[i], &dfl, NULL);
	(void)setrlimit(RLIMIT_CORE, &none);
	(void)alarm(30);
}

static int open_given(int argc, char **argv, int *ret_fd, struct abx_err *err)
{
	uint64_t fd;

	if (argc < 2)
		return abx_err_set(err, ABX_EUSAGE, ABX_PROBE_COMMAND " needs a path");
	if (argc < 3)
		return abx_trust_open(argv[1], ret_fd, err);
	if (!abx_parse_u64(argv[2], 1023, &fd) || fcntl((int)fd, F_SETFD, FD_CLOEXEC) < 0)
		return abx_err_set(err, ABX_EUSAGE, "'%s' is no open descriptor", argv[2]);
	*ret_fd = (int)fd;
	return 0;
}

static cJSON *describe_error(const struct abx_err *err)
{
	cJSON *doc = cJSON_CreateObject();

	(void)cJSON_AddStringToObject(doc, "error", err->text);
	if (err->remedy[0])
		(void)cJSON_AddStringToObject(doc, "remedy", err->remedy);
	return doc;
}

int abx_probe_main(int argc, char **argv)
{
	struct abx_err err = ABX_ERR_INIT;
	struct abx_plugin *plugin;
	int fd = -1, out = take_stdout(), r;
	char *text;
	cJSON *doc;

	if (out < 0)
		_exit(1);
	limit_self();
	r = open_given(argc, argv, &fd, &err);
	if (r == 0)
		r = abx_plugin_load_here(fd, argv[1], &plugin, &err);
	doc = r == 0 ? abx_descriptor_json(plugin->theirs, &plugin->table, argv[1])
		     : describe_error(&err);
	text = cJSON_PrintUnformatted(doc);
	if (!text || abx_fs_write_all(out, text, strlen(text)) < 0)
		_exit(1);
	/* No destructors: those of a stranger could still do harm to the answer. */
	_exit(0);
}
