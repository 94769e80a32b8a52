/* SPDX-License-Identifier: MIT */
/* Finding the engine, once in a session, and agreeing on a version of its API. */
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "abxsdk/number.h"
#include "providers/docker/docker.h"

/* 0 when somebody listens there, or -errno. */
static int listens(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	abx_autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	(void)snprintf(a.sun_path, sizeof(a.sun_path), "%.107s", path);
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0 && errno != EAGAIN)
		return -errno;
	return 0;
}

static int32_t fail_denied(struct abx_call *call, const char *path)
{
	return abx_fail(call, ABX_EPERM,
			"add your user to the group of the socket (sudo usermod -aG docker "
			"$USER) and log in again",
			"Docker engine at %s: permission denied", path);
}

static int32_t fail_not_running(struct abx_call *call, const char *tried)
{
	return abx_fail(call, ABX_EBROKEN,
			"start it (systemctl start docker, or your Docker program), or set "
			"DOCKER_HOST to where it is",
			"the Docker engine is not running: nothing answers at %s", tried);
}

/* The first that somebody listens at. */
static int32_t choose(struct abx_call *call, const struct docker_endpoint *list, size_t n,
		      const struct docker_endpoint **ret)
{
	abx_auto(abx_buf) struct abx_buf tried = ABX_BUF_INIT(4096);
	const char *denied = NULL;

	for (size_t i = 0; i < n; i++) {
		int r = *list[i].unix_path ? listens(list[i].unix_path) : 0;

		if (r == 0) {
			*ret = &list[i];
			return ABX_OK;
		}
		if (r == -EACCES && !denied)
			denied = list[i].unix_path;
		/* Of a guess, only what is there or is the usual one is worth a word. */
		if (list[i].from || i == 0 || r != -ENOENT)
			abx_buf_addf(&tried, "%s%s", tried.len ? ", " : "", list[i].unix_path);
	}
	return denied ? fail_denied(call, denied) : fail_not_running(call, abx_buf_str(&tried));
}

static int32_t open_http(struct abx_session *s, struct abx_call *call,
			 const struct docker_endpoint *e)
{
	char ca[1100], cert[1100], key[1100];
	struct abx_http_options o = {.host = abx_plugin_host,
				     .user_agent = s->user_agent,
				     .base_url = "http://docker",
				     .plain = true};

	if (*e->unix_path) {
		o.unix_path = e->unix_path;
		(void)snprintf(s->where, sizeof(s->where), "%s", e->unix_path);
	} else {
		o.base_url = e->url;
		o.ca_file = s->ca_file;
		o.proxy = s->proxy;
		o.no_proxy = s->no_proxy;
		(void)snprintf(s->where, sizeof(s->where), "%s", e->url);
	}
	if (*e->tls_dir) {
		(void)snprintf(ca, sizeof(ca), "%s/ca.pem", e->tls_dir);
		(void)snprintf(cert, sizeof(cert), "%s/cert.pem", e->tls_dir);
		(void)snprintf(key, sizeof(key), "%s/key.pem", e->tls_dir);
		if (access(ca, R_OK) == 0)
			o.ca_file = ca;
		if (access(cert, R_OK) == 0) {
			o.cert_file = cert;
			o.key_file = key;
		}
	}
	return abx_http_open_for(call, "Docker", &o, &s->http);
}

/* "1.41" */
static bool minor_of(const char *text, uint64_t *ret)
{
	const char *at = text + 2;

	return strncmp(text, "1.", 2) == 0 && abx_parse_digits(&at, 9999, ret);
}

static int32_t agree(struct abx_session *s, struct abx_call *call, const char *version)
{
	uint64_t minor;

	if (!minor_of(version, &minor))
		return abx_fail(call, ABX_EPROTO,
				"set DOCKER_HOST to the address of a Docker engine",
				"%s: what answers there is no Docker engine", s->where);
	if (minor < DOCKER_API_MINOR_MIN)
		return abx_fail(call, ABX_EBROKEN, "upgrade it to Docker 20.10 or newer",
				"Docker engine at %s: too old: it speaks API %.16s, and 1.%d is "
				"the oldest that will do",
				s->where, version, DOCKER_API_MINOR_MIN);
	atomic_store(&s->api_minor,
		     minor < DOCKER_API_MINOR_MAX ? (int)minor : DOCKER_API_MINOR_MAX);
	return ABX_OK;
}

static int32_t ping(struct abx_session *s, struct abx_call *call, const struct docker_endpoint *e)
{
	const struct docker_request how = {.method = "GET"};
	const struct abx_http_request req = {ABX_HTTP_REQUEST_INIT,
					     .method = "GET",
					     .path = "/_ping",
					     .want_header = "Api-Version",
					     .max_bytes = 65536,
					     .idempotent = true,
					     .quiet_ms = docker_quiet_ms(s, &how)};
	struct abx_http_reply reply;
	int32_t r = abx_http_do(s->http, call, &req, &reply);

	if (r == ABX_ECANCELED)
		r = abx_fail_canceled(call);
	else if (r != ABX_OK && reply.os_errno == EACCES)
		r = fail_denied(call, s->where);
	else if (r != ABX_OK && reply.os_errno)
		r = fail_not_running(call, s->where);
	else if (r != ABX_OK)
		r = docker_tls_fail(s, call, e, r, reply.text);
	else if (reply.status == 400 && strstr(abx_buf_str(&reply.body), "HTTPS server"))
		r = abx_fail(call, ABX_EAUTH,
			     "set DOCKER_TLS_VERIFY=1, and DOCKER_CERT_PATH to the directory of "
			     "ca.pem, cert.pem and key.pem",
			     "Docker engine at %s: it wants TLS", s->where);
	else if (reply.status >= 500)
		r = abx_fail(call, ABX_EREMOTE, "wait for it, or look at its log",
			     "Docker engine at %s: not ready (HTTP %d)", s->where, reply.status);
	else
		r = agree(s, call, reply.header);
	abx_http_reply_release(&reply);
	return r;
}

/* Another operation may be waiting for the engine: this one can still be given up. */
static int32_t lock(struct abx_session *s, struct abx_call *call)
{
	while (pthread_mutex_trylock(&s->lock) != 0) {
		int32_t r = abx_plugin_host->wait_ms(call, 2);

		if (r != ABX_OK)
			return r == ABX_ECANCELED ? abx_fail_canceled(call)
						  : abx_fail_timed_out(call);
	}
	return ABX_OK;
}

static int32_t connect_locked(struct abx_session *s, struct abx_call *call)
{
	struct docker_endpoint list[DOCKER_ENDPOINTS_MAX];
	const struct docker_endpoint *chosen = NULL;
	size_t n = 0;
	int known, r = docker_endpoints(s, call, list, &n);

	if (r == ABX_OK)
		r = choose(call, list, n, &chosen);
	if (r == ABX_OK)
		r = open_http(s, call, chosen);
	if (r != ABX_OK)
		return r;
	known = docker_known_minor(s, chosen->unix_path);
	s->api_known = known != 0;
	if (known) {
		atomic_store(&s->api_minor, known);
		return ABX_OK;
	}
	r = ping(s, call, chosen);
	if (r == ABX_OK) {
		docker_known_keep(s, chosen->unix_path, atomic_load(&s->api_minor));
		return ABX_OK;
	}
	/* Elsewhere next time. */
	abx_http_close(s->http);
	s->http = NULL;
	return r;
}

int32_t docker_connect(struct abx_session *s, struct abx_call *call)
{
	int32_t r;

	if (atomic_load(&s->connected))
		return ABX_OK;
	r = lock(s, call);
	if (r != ABX_OK)
		return r;
	if (!atomic_load(&s->connected)) {
		r = connect_locked(s, call);
		atomic_store(&s->connected, r == ABX_OK);
	}
	(void)pthread_mutex_unlock(&s->lock);
	return r;
}

int32_t docker_agree_again(struct abx_session *s, struct abx_call *call, bool *ret)
{
	const int before = atomic_load(&s->api_minor);
	struct docker_endpoint e = {.url = ""};
	int32_t r = lock(s, call);

	if (r != ABX_OK)
		return r;
	/* Only of sockets something was known. */
	(void)snprintf(e.unix_path, sizeof(e.unix_path), "%.107s", s->where);
	/* Another operation may have been here meanwhile. */
	if (s->api_known) {
		docker_known_forget(s);
		r = ping(s, call, &e);
		s->api_known = r != ABX_OK;
	}
	(void)pthread_mutex_unlock(&s->lock);
	*ret = r == ABX_OK && atomic_load(&s->api_minor) != before;
	return r;
}
