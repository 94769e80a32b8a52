/* SPDX-License-Identifier: MIT */
/* What mmdebstrap is told for a suite of Debian or Ubuntu. */
#include "abxsdk/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abxsdk/fs.h"
#include "abxsdk/spawn.h"

#define CONFIG_MAX_BYTES ((size_t)64 << 10)
#define NAME_MAX_BYTES 40

const char abx_suite_packages[] = "sudo,git,ca-certificates,zstd,curl,procps,less,tmux,"
				  "jq,openssh-client,patch,ripgrep,unzip,xz-utils";

bool abx_suite_packages_ok(const char *packages)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789+-.:,";

	return !packages[strspn(packages, allowed)] && packages[0] != '-';
}

struct distribution {
	const char *name, *components, *main, *security;
};

static const struct distribution distributions[] = {
	{"debian", "main", "http://deb.debian.org/debian", "http://deb.debian.org/debian-security"},
#if defined(__x86_64__) || defined(__i386__)
	{"ubuntu", "main universe", "http://archive.ubuntu.com/ubuntu",
	 "http://security.ubuntu.com/ubuntu"},
#else
	{"ubuntu", "main universe", "http://ports.ubuntu.com/ubuntu-ports",
	 "http://ports.ubuntu.com/ubuntu-ports"},
#endif
};

static const struct distribution *find(const char *from, const char **ret_suite)
{
	for (size_t i = 0; i < ABX_N_ELEMENTS(distributions); i++) {
		size_t n = strlen(distributions[i].name);
		const char *suite = from + n + 1;

		if (strncmp(from, distributions[i].name, n) != 0 || from[n] != ':')
			continue;
		n = strspn(suite, "abcdefghijklmnopqrstuvwxyz0123456789-.");
		if (!n || n > NAME_MAX_BYTES || suite[n] || *suite == '-' || *suite == '.')
			return NULL;
		*ret_suite = suite;
		return &distributions[i];
	}
	return NULL;
}

bool abx_suite_is(const char *from)
{
	const char *suite;

	return find(from, &suite) != NULL;
}

static void add(struct abx_suite *su, const char *fmt, ...) ABX_PRINTF(2, 3);

static void add(struct abx_suite *su, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (su->n_argv + 1 == ABX_SUITE_ARGS_MAX || vasprintf(&su->argv[su->n_argv], fmt, ap) < 0)
		su->failed = true;
	else
		su->argv[++su->n_argv] = NULL;
	va_end(ap);
}

/* "KEY" and "value" in one allocation. */
static void add_env(struct abx_suite *su, const char *key, const char *value)
{
	size_t n = su->n_env;

	for (size_t i = 0; i < n; i++)
		if (strcmp(su->pairs[i].key, key) == 0)
			return;
	if (!value || !*value)
		return;
	if (n == ABX_N_ELEMENTS(su->env) || asprintf(&su->env[n], "%s=%s", key, value) < 0) {
		su->failed = true;
		return;
	}
	su->env[n][strlen(key)] = '\0';
	su->pairs[n] = (struct abx_kv){su->env[n], su->env[n] + strlen(key) + 1};
	su->n_env++;
}

/* Is this the archive of the distribution itself, its security updates included?  Others
 * have suites of the same names. */
static bool is_official(const char *uri, const char *name)
{
	static const char *const ends[] = {"", "-security", "-ports"};
	char copy[256], *last;
	size_t n = strlen(name);

	if (strncmp(uri, "http", 4) != 0 || strlen(uri) >= sizeof(copy))
		return false;
	memcpy(copy, uri, strlen(uri) + 1);
	while (*copy && copy[strlen(copy) - 1] == '/')
		copy[strlen(copy) - 1] = '\0';
	last = strrchr(copy, '/');
	/* .../debian/20250520T000000Z of snapshot.debian.org */
	if (last && last[1] >= '0' && last[1] <= '9' && strchr(last, 'T')) {
		*last = '\0';
		last = strrchr(copy, '/');
	}
	if (!last || strncmp(last + 1, name, n) != 0)
		return false;
	for (size_t i = 0; i < ABX_N_ELEMENTS(ends); i++)
		if (strcmp(last + 1 + n, ends[i]) == 0)
			return true;
	return false;
}

struct own_sources {
	struct abx_suite *su;
	const struct distribution *dist;
	const char *suite;
	char host_suite[NAME_MAX_BYTES + 1]; /* that of this machine */
	size_t found;
};

static int add_own(void *ctx, const struct abx_apt_source *src)
{
	static const char *const ends[] = {"", "-updates", "-security"};
	struct own_sources *o = ctx;
	size_t n = strlen(o->host_suite);

	if (!is_official(src->uri, o->dist->name) || strncmp(src->suite, o->host_suite, n) != 0)
		return 0;
	for (size_t i = 0; i < ABX_N_ELEMENTS(ends); i++) {
		const char *signed_by = src->signed_by;

		if (strcmp(src->suite + n, ends[i]) != 0)
			continue;
		if (*signed_by == '/')
			add(o->su, "deb [signed-by=%s] %s %s%s %s", signed_by, src->uri, o->suite,
			    ends[i], o->dist->components);
		else
			add(o->su, "deb %s %s%s %s", src->uri, o->suite, ends[i],
			    o->dist->components);
		o->found++;
	}
	return 0;
}

static void read_codename(char *out, size_t size)
{
	static const char key[] = "VERSION_CODENAME=";
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(CONFIG_MAX_BYTES);
	const char *at;

	*out = '\0';
	if (abx_fs_read(AT_FDCWD, "/etc/os-release", &b) < 0)
		return;
	for (at = abx_buf_str(&b); at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL)
		if (strncmp(at, key, sizeof(key) - 1) == 0) {
			at += sizeof(key) - 1;
			at += *at == '"';
			(void)snprintf(out, size, "%.*s", (int)strcspn(at, "\"\n"), at);
			return;
		}
}

static void add_sources(struct abx_suite *su, const struct distribution *d, const char *suite,
			const char *mirror)
{
	/* These have no updates beside themselves. */
	bool rolling = strcmp(suite, "sid") == 0 || strcmp(suite, "unstable") == 0 ||
		       strcmp(suite, "experimental") == 0;
	struct own_sources own = {.su = su, .dist = d, .suite = suite};

	if (mirror && *mirror) {
		if (strncmp(mirror, "deb ", 4) == 0)
			add(su, "%s", mirror);
		else
			add(su, "deb %s %s %s", mirror, suite, d->components);
		return;
	}
	(void)snprintf(own.host_suite, sizeof(own.host_suite), "%s", suite);
	(void)abx_apt_sources_each("/etc/apt", add_own, &own);
	if (!own.found && !rolling) {
		/* Another suite of the same distribution is in the same places. */
		read_codename(own.host_suite, sizeof(own.host_suite));
		if (*own.host_suite)
			(void)abx_apt_sources_each("/etc/apt", add_own, &own);
	}
	if (own.found)
		return;
	add(su, "deb %s %s %s", d->main, suite, d->components);
	if (!rolling) {
		add(su, "deb %s %s-updates %s", d->main, suite, d->components);
		add(su, "deb %s %s-security %s", d->security, suite, d->components);
	}
}

/* What this machine's apt was told of proxies and of mirrors that stand still. */
static void add_apt_config(struct abx_suite *su)
{
	static const char *const argv[] = {"apt-config", "dump",    "--no-empty", "--format",
					   "%f=%v%n",	 "Acquire", NULL};
	static const char stale[] = "Acquire::Check-Valid-Until=", http[] = "Acquire::http::Proxy=",
			  https[] = "Acquire::https::Proxy=";
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(CONFIG_MAX_BYTES);
	struct abx_spawn sp = {.argv = argv, .fd_in = -1, .fd_out = -1, .fd_err = -1};
	char *line, *save = NULL;
	int status;

	if (abx_spawn_collect(&sp, NULL, &b, NULL, &status) < 0 || status || !b.len)
		return;
	for (line = strtok_r(b.data, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (strncmp(line, stale, sizeof(stale) - 1) == 0 &&
		    strcmp(line + sizeof(stale) - 1, "false") == 0)
			add(su, "--aptopt=Acquire::Check-Valid-Until \"false\"");
		else if (strncmp(line, http, sizeof(http) - 1) == 0 && !strstr(line, "DIRECT"))
			add_env(su, "http_proxy", line + sizeof(http) - 1);
		else if (strncmp(line, https, sizeof(https) - 1) == 0 && !strstr(line, "DIRECT"))
			add_env(su, "https_proxy", line + sizeof(https) - 1);
	}
}

int abx_suite_make(struct abx_suite *su, const struct abx_suite_how *how)
{
	const char *suite = "";
	const struct distribution *d = find(how->from, &suite);

	if (!d)
		return -EINVAL;
	add_env(su, "http_proxy", how->proxy);
	add_env(su, "https_proxy", how->proxy);
	add_env(su, "no_proxy", how->no_proxy);
	add(su, "mmdebstrap");
	add(su, "--mode=%s", how->mode);
	add(su, "--variant=apt");
	add(su, "--format=%s", how->format);
	/* A box has a /dev of its own, and is not there to survive power losses. */
	add(su, "--skip=output/dev,output/mknod");
	add(su, "--dpkgopt=force-unsafe-io");
	add(su, "--aptopt=Acquire::Retries \"3\"");
	add_apt_config(su);
	if (*how->packages)
		add(su, "--include=%s", how->packages);
	add(su, "%s", suite);
	add(su, "%s", how->target);
	add_sources(su, d, suite, how->mirror);
	return su->failed ? -ENOMEM : 0;
}

void abx_suite_release(struct abx_suite *su)
{
	for (size_t i = 0; i < su->n_argv; i++)
		free(su->argv[i]);
	for (size_t i = 0; i < su->n_env; i++)
		free(su->env[i]);
	*su = (struct abx_suite)ABX_SUITE_INIT;
}
