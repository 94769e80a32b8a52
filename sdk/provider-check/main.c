/* SPDX-License-Identifier: MIT */
/* agentbox-provider-check: does a provider keep the contract? */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>

#include "abxsdk/fs.h"
#include "config.h"
#include "core/host/probe.h"
#include "core/util/log.h"
#include "core/util/mem.h"
#include "core/util/parse.h"
#include "core/util/rand.h"
#include "sdk/provider-check/check.h"
#include "sdk/provider-check/live.h"

static const char help[] =
	"usage: agentbox-provider-check [--no-service] FILE.so [OPTION=VALUE...]\n"
	"       agentbox-provider-check --live NAME|FILE.so [--small] [--json] [SUITE...]\n"
	"\n"
	"Loads a provider, runs it through its contract and prints TAP; exits with 1 when\n"
	"anything failed.  It makes one sandbox, labelled agentbox.box=check-..., and destroys\n"
	"it.  OPTION is one of the provider's own options (agentbox provider info FILE.so), or\n"
	"timeout=DURATION, the deadline of an ordinary operation (default 2m).\n"
	"\n"
	"--no-service ends before anything is asked of the provider's service: the file, its\n"
	"tables, and that a session opens.\n"
	"--live runs the contract suites through agentbox instead, and prints a table.\n";

static int scratch_home(struct check *c)
{
	const char *tmp = secure_getenv("TMPDIR");

	(void)snprintf(c->home_path, sizeof(c->home_path), "%s/agentbox-check-XXXXXX",
		       tmp && *tmp == '/' ? tmp : "/tmp");
	if (!mkdtemp(c->home_path) || setenv("AGENTBOX_HOME", c->home_path, 1) < 0)
		return abx_err_errno(&c->err, errno, "make '%s'", c->home_path);
	return abx_home_open(&c->home, &c->err);
}

/* What anybody prints from now on lands in a file; TAP keeps the old stdout. */
static int redirect(struct check *c)
{
	int out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);

	c->tap = out < 0 ? NULL : fdopen(out, "w");
	c->said_fd = openat(c->home.fd, "said", O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (!c->tap || c->said_fd < 0 || dup2(c->said_fd, STDOUT_FILENO) < 0 ||
	    dup2(c->said_fd, STDERR_FILENO) < 0)
		return abx_err_errno(&c->err, errno, "redirect stdout and stderr");
	return 0;
}

/* The host's own lines begin with the program's name. */
static void check_silence(struct check *c)
{
	abx_auto(abx_buf) struct abx_buf said = ABX_BUF_INIT(1 << 20);
	const char *first = NULL;
	char *at;

	(void)fflush(NULL);
	(void)lseek(c->said_fd, 0, SEEK_SET);
	(void)abx_buf_read_fd(&said, c->said_fd);
	for (at = said.data; at && *at;) {
		char *end = strchrnul(at, '\n');
		const bool more = *end != '\0';

		*end = '\0';
		if (!first && strncmp(at, "agentbox: ", 10) != 0)
			first = at;
		at = end + more;
	}
	(void)tap_ok(c, !first, "it printed nothing on stdout or stderr");
	if (first)
		tap_note(c, "it said: %.200s", first);
}

static int set_option(struct check *c, const char *arg)
{
	const char *eq = strchr(arg, '=');
	abx_autofree char *key = NULL, *full = NULL;

	if (!eq)
		return abx_err_set(&c->err, ABX_EUSAGE, "'%s' is not OPTION=VALUE", arg);
	key = abx_xstrndup(arg, (size_t)(eq - arg));
	if (strcmp(key, "timeout") == 0)
		return abx_parse_duration_ms(eq + 1, &c->timeout_ms, &c->err);
	full = strchr(key, '.') ? abx_xstrdup(key) : abx_xasprintf("%s.%s", c->name, key);
	return abx_config_set_flag(c->config, full, eq + 1, &c->err);
}

static int open_cloud(struct check *c, int argc, char **argv)
{
	struct abx_provider_file file;
	struct abx_plugin *plugin;
	int r = abx_config_open(&c->home, /* project_key= */ NULL, /* workspace= */ NULL,
				&c->config, &c->err);

	if (r == 0)
		r = abx_registry_find(c->path, &file, &c->err);
	if (r < 0)
		return r;
	r = abx_plugin_get(&file, &c->home, &plugin, &c->err);
	abx_provider_file_release(&file);
	if (r == 0 && plugin->table.options)
		abx_config_declare_provider(c->config, c->name, plugin->table.options);
	for (int i = 0; i < argc && r == 0; i++)
		r = set_option(c, argv[i]);
	if (r == 0)
		r = abx_cloud_open(c->path, &c->ctx, c->config, &c->cloud, &c->err);
	return r;
}

static void check_account(struct check *c)
{
	const struct abx_call_opts o = check_opts(c);
	abx_autofree char *account = NULL;
	struct abx_row_list rows;

	(void)tap_r(c, abx_cloud_verify(c->cloud, &o, &account, &c->err),
		    "the credential is accepted");
	tap_note(c, "account: %s", account ? account : "-");
	if (!tap_r(c, abx_cloud_doctor(c->cloud, &o, &rows, &c->err), "doctor"))
		return;
	for (size_t i = 0; i < rows.len; i++) {
		const char *status = abx_row_get(&rows.items[i], "status");

		(void)tap_ok(c,
			     abx_row_get(&rows.items[i], "check") && status &&
				     (strcmp(status, "ok") == 0 || strcmp(status, "warn") == 0 ||
				      strcmp(status, "fail") == 0),
			     "a row of doctor has check and status");
	}
	abx_row_list_release(&rows);
}

static void use_service(struct check *c)
{
	check_account(c);
	check_missing(c);
	if (check_provision(c)) {
		check_exec(c);
		check_transfer(c);
		check_giving_up(c);
		check_raw(c);
		check_stop_start(c);
		check_descriptors(c);
	}
	if (c->box.s.id)
		check_destroy(c);
}

static void run_contract(struct check *c, int argc, char **argv)
{
	if (!check_file(c))
		return;
	if (!tap_r(c, open_cloud(c, argc, argv), "a session opens")) {
		tap_bail(c, "no session");
		return;
	}
	if (!c->no_service)
		use_service(c);
	abx_cloud_close(c->cloud);
	check_silence(c);
}

static int run(struct check *c, int argc, char **argv)
{
	abx_autofree char *path = realpath(argv[0], NULL);
	char nonce[17];
	int r;

	if (!path) {
		(void)fprintf(stderr, "agentbox-provider-check: %s: %s\n", argv[0],
			      strerror(errno));
		return 1;
	}
	r = scratch_home(c);
	if (r == 0)
		r = redirect(c);
	if (r < 0) {
		(void)fprintf(stderr, "agentbox-provider-check: %s\n", c->err.text);
		return 1;
	}
	abx_rand_hex(nonce, 16);
	(void)snprintf(c->box_label, sizeof(c->box_label), "check-%s", nonce);
	c->labels[0] = (struct abx_kv){"agentbox", "true"};
	c->labels[1] = (struct abx_kv){"agentbox.box", c->box_label};
	c->labels[2] = (struct abx_kv){"agentbox.install", "provider-check"};
	c->path = path;
	c->ctx.home = &c->home;
	c->ctx.cancel_fd = eventfd(0, EFD_CLOEXEC);
	run_contract(c, argc - 1, argv + 1);
	tap_plan(c);
	(void)abx_fs_remove_tree(AT_FDCWD, c->home_path);
	return c->failed ? 1 : 0;
}

int main(int argc, char **argv)
{
	const struct abx_home no_home = ABX_HOME_INIT;
	const struct sigaction ignore = {.sa_handler = SIG_IGN};
	struct check c = {.timeout_ms = 120000, .said_fd = -1};
	int r;

	if (argc > 1 && strcmp(argv[1], ABX_PROBE_COMMAND) == 0)
		return abx_probe_main(argc - 1, argv + 1);
	if (argc > 1 && strcmp(argv[1], "--live") == 0)
		return check_live(argc - 2, argv + 2);
	c.no_service = argc > 1 && strcmp(argv[1], "--no-service") == 0;
	argc -= c.no_service;
	argv += c.no_service;
	if (argc < 2 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "--help") == 0) {
		(void)fputs(help, argc < 2 ? stderr : stdout);
		return argc < 2 ? 2 : 0;
	}
	if (strcmp(argv[1], "--version") == 0) {
		(void)puts("agentbox-provider-check " PACKAGE_VERSION);
		return 0;
	}
	abx_log_init(false);
	(void)sigaction(SIGPIPE, &ignore, NULL);
	c.home = no_home;
	r = run(&c, argc - 1, argv + 1);
	abx_config_close(c.config);
	abx_home_release(&c.home);
	free(c.name);
	return r;
}
