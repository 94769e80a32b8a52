/* SPDX-License-Identifier: MIT */
/*
 * Where the engine is said to be: by the options (DOCKER_HOST, DOCKER_CONTEXT), by the current
 * context of the docker program, or by the places where engines put their sockets.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "abxsdk/fs.h"
#include "providers/docker/docker.h"

#define CONFIG_MAX_BYTES ((size_t)1 << 20)

/* $DOCKER_CONFIG, else ~/.docker. */
static void config_dir(char *out, size_t size)
{
	const char *dir = secure_getenv("DOCKER_CONFIG"), *home = secure_getenv("HOME");

	if (dir && *dir)
		(void)snprintf(out, size, "%s", dir);
	else
		(void)snprintf(out, size, "%s/.docker", home && *home ? home : "/root");
}

static cJSON *read_json(const char *path)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(CONFIG_MAX_BYTES);
	cJSON *doc = NULL;

	if (abx_fs_read(AT_FDCWD, path, &b) < 0)
		return NULL;
	(void)abx_json_parse(abx_buf_str(&b), b.len, CONFIG_MAX_BYTES, &doc);
	return doc;
}

static int32_t parse_tcp(struct abx_call *call, const char *host, const char *tls_dir, bool tls,
			 const char *from, struct docker_endpoint *ret)
{
	const char *authority = strstr(host, "://") + 3;
	size_t n = strcspn(authority, "/?#");

	if (!n || authority[n] || strpbrk(authority, " @\\\r\n") || n > 255)
		return abx_fail(call, ABX_EINVAL, "tcp://HOST:PORT", "%s: %.200s: not an address",
				from, host);
	(void)snprintf(ret->url, sizeof(ret->url), "%s://%s", tls ? "https" : "http", authority);
	if (tls && tls_dir)
		(void)snprintf(ret->tls_dir, sizeof(ret->tls_dir), "%s", tls_dir);
	return ABX_OK;
}

/* One host as docker writes them; `tls_dir` NULL: no TLS. */
static int32_t parse_host(struct abx_call *call, const char *host, const char *tls_dir,
			  const char *from, struct docker_endpoint *ret)
{
	const char *path = strncmp(host, "unix://", 7) == 0 ? host + 7 : host;

	*ret = (struct docker_endpoint){.from = from};
	if (*path == '/') {
		if (strlen(path) >= sizeof(ret->unix_path))
			return abx_fail(call, ABX_EINVAL, "use a shorter path, a link to it",
					"%s: %.200s: longer than the %zu bytes of a socket's path",
					from, host, sizeof(ret->unix_path) - 1);
		(void)snprintf(ret->unix_path, sizeof(ret->unix_path), "%s", path);
		return ABX_OK;
	}
	if (strncmp(host, "tcp://", 6) == 0 || strncmp(host, "http://", 7) == 0)
		return parse_tcp(call, host, tls_dir, tls_dir != NULL, from, ret);
	if (strncmp(host, "https://", 8) == 0)
		return parse_tcp(call, host, tls_dir, true, from, ret);
	if (strncmp(host, "ssh://", 6) == 0)
		return abx_fail(call, ABX_ENOTSUP,
				"forward its socket: ssh -nNT -L /tmp/docker.sock:"
				"/var/run/docker.sock USER@HOST, and set DOCKER_HOST to "
				"unix:///tmp/docker.sock",
				"%s: %.200s: ssh is not spoken here", from, host);
	return abx_fail(call, ABX_EINVAL, "unix:///PATH or tcp://HOST:PORT",
			"%s: %.200s: not an address of a Docker engine", from, host);
}

/* A directory below contexts/meta is named by a hash of the context's name: look into each. */
static cJSON *find_context(const char *config, const char *name, char *ret_tls, size_t size)
{
	char path[DOCKER_PATH_MAX];
	const char *found = NULL;
	struct dirent *e;
	cJSON *doc = NULL;
	DIR *d;

	(void)snprintf(path, sizeof(path), "%s/contexts/meta", config);
	d = abx_fs_opendir(AT_FDCWD, path);
	while (d && !doc && (e = readdir(d))) {
		if (abx_fs_is_dot(e->d_name))
			continue;
		(void)snprintf(path, sizeof(path), "%s/contexts/meta/%s/meta.json", config,
			       e->d_name);
		doc = read_json(path);
		if (abx_json_str(doc, "Name", 256, &found) == 0 && found &&
		    strcmp(found, name) == 0) {
			(void)snprintf(ret_tls, size, "%s/contexts/tls/%s/docker", config,
				       e->d_name);
			break;
		}
		cJSON_Delete(doc);
		doc = NULL;
	}
	if (d)
		(void)closedir(d);
	return doc;
}

static int32_t parse_context(struct abx_call *call, const char *config, const char *name,
			     struct docker_endpoint *ret)
{
	char tls[1024];
	const cJSON *ends = NULL, *docker = NULL;
	const char *host = NULL;
	cJSON *doc = find_context(config, name, tls, sizeof(tls));
	int32_t r;

	if (!doc)
		return abx_fail(call, ABX_ENOTFOUND, "docker context ls shows those there are",
				"Docker context '%.100s': there is none below %s", name, config);
	if (abx_json_obj(doc, "Endpoints", &ends) == 0 && ends &&
	    abx_json_obj(ends, "docker", &docker) == 0 && docker)
		(void)abx_json_str(docker, "Host", 1024, &host);
	r = host ? parse_host(call, host, access(tls, F_OK) == 0 ? tls : NULL, "Docker context",
			      ret)
		 : abx_fail(call, ABX_EINVAL, NULL, "Docker context '%.100s': it names no host",
			    name);
	cJSON_Delete(doc);
	return r;
}

static bool is_given(const char *text)
{
	return text && *text;
}

static void add_place(struct docker_endpoint *list, size_t *n, const char *dir, const char *rest)
{
	struct docker_endpoint *e = &list[*n];

	if (*n == DOCKER_ENDPOINTS_MAX || !is_given(dir))
		return;
	*e = (struct docker_endpoint){.from = NULL};
	if (snprintf(e->unix_path, sizeof(e->unix_path), "%s%s", dir, rest) <
	    (int)sizeof(e->unix_path))
		(*n)++;
}

/* Where engines for people put their sockets. */
static size_t usual_places(struct docker_endpoint *list)
{
	const char *home = secure_getenv("HOME"), *run = secure_getenv("XDG_RUNTIME_DIR");
	size_t n = 0;

	add_place(list, &n, "/var/run", "/docker.sock");
	add_place(list, &n, run, "/docker.sock");
	add_place(list, &n, home, "/.docker/run/docker.sock");
	add_place(list, &n, home, "/.docker/desktop/docker.sock");
	add_place(list, &n, home, "/.orbstack/run/docker.sock");
	add_place(list, &n, home, "/.colima/default/docker.sock");
	add_place(list, &n, home, "/.colima/docker.sock");
	add_place(list, &n, home, "/.rd/docker.sock");
	add_place(list, &n, run, "/podman/podman.sock");
	add_place(list, &n, "/run", "/podman/podman.sock");
	return n;
}

/* The certificates' directory when TLS is wanted, else NULL. */
static const char *tls_dir(const struct abx_session *s, const char *config)
{
	if (!is_given(s->tls_verify))
		return NULL;
	return is_given(s->cert_path) ? s->cert_path : config;
}

int32_t docker_endpoints(const struct abx_session *s, struct abx_call *call,
			 struct docker_endpoint list[DOCKER_ENDPOINTS_MAX], size_t *ret_n)
{
	char config[512], path[DOCKER_PATH_MAX];
	const char *context = is_given(s->context) ? s->context : NULL;
	cJSON *doc = NULL;
	int32_t r = ABX_OK;

	config_dir(config, sizeof(config));
	*ret_n = 1;
	if (is_given(s->host))
		return parse_host(call, s->host, tls_dir(s, config), "docker.host", &list[0]);
	if (!context) {
		(void)snprintf(path, sizeof(path), "%s/config.json", config);
		doc = read_json(path);
		(void)abx_json_str(doc, "currentContext", 256, &context);
	}
	if (context && *context && strcmp(context, "default") != 0)
		r = parse_context(call, config, context, &list[0]);
	else
		*ret_n = usual_places(list);
	cJSON_Delete(doc);
	return r;
}
