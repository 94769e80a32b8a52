/* SPDX-License-Identifier: MIT */
/* HTTP for providers: sessions, their pool of handles, and how a handle is driven. */
#include <arpa/inet.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <strings.h>

#include "abxsdk/http-private.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static CURLcode initialised;

/* Nobody cleans up: other providers of the process may use the same library. */
static void initialise(void)
{
	initialised = curl_global_init(CURL_GLOBAL_DEFAULT);
}

static bool is_loopback_name(const char *name)
{
	static const char below[] = ".localhost";
	const size_t len = strlen(name), n = sizeof(below) - 1;
	struct in_addr v4;
	struct in6_addr v6;

	if (strcasecmp(name, "localhost") == 0 ||
	    (len > n && strcasecmp(name + len - n, below) == 0))
		return true;
	if (inet_pton(AF_INET, name, &v4) == 1)
		return ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET;
	return inet_pton(AF_INET6, name, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

/* HOST or HOST:PORT of this machine; a name before an @ would be somebody's account elsewhere. */
static bool is_loopback(const char *authority)
{
	const bool bracket = *authority == '[';
	const size_t len = strcspn(authority, bracket ? "]" : ":");
	const char *behind = authority + len + bracket;
	char name[256];

	if (len >= sizeof(name) || (bracket && !authority[len]))
		return false;
	(void)snprintf(name, sizeof(name), "%.*s", (int)len - bracket, authority + bracket);
	if (*behind == ':')
		behind += 1 + strspn(behind + 1, "0123456789");
	return !*behind && is_loopback_name(name);
}

static int take(char **to, const char *from)
{
	if (!from || !*from)
		return 0;
	*to = strdup(from);
	return *to ? 0 : -ENOMEM;
}

int abx_http_open(const struct abx_http_options *o, struct abx_http **ret)
{
	const char *authority = strstr(o->base_url, "://");
	bool here, secure = strncasecmp(o->base_url, "https://", 8) == 0;
	struct abx_http *h;

	(void)pthread_once(&once, initialise);
	if (initialised != CURLE_OK)
		return -ENOSYS;
	if (!authority || (!secure && strncasecmp(o->base_url, "http://", 7) != 0))
		return -EINVAL;
	authority += 3;
	here = o->unix_path || (!secure && is_loopback(authority));
	if (!secure && !o->plain && !here)
		return -EPERM;
	h = calloc(1, sizeof(*h));
	if (!h)
		return -ENOMEM;
	h->host = o->host;
	h->here = here;
	h->plain = o->plain;
	(void)pthread_mutex_init(&h->lock, NULL);
	if (take(&h->base_url, o->base_url) < 0 || take(&h->authority, authority) < 0 ||
	    take(&h->unix_path, o->unix_path) < 0 || take(&h->user_agent, o->user_agent) < 0 ||
	    take(&h->ca_file, o->ca_file) < 0 || take(&h->cert_file, o->cert_file) < 0 ||
	    take(&h->key_file, o->key_file) < 0 || take(&h->proxy, o->proxy) < 0 ||
	    take(&h->no_proxy, o->no_proxy) < 0 ||
	    take(&h->id_header, o->id_header ? o->id_header : "X-Request-Id") < 0) {
		abx_http_close(h);
		return -ENOMEM;
	}
	*ret = h;
	return 0;
}

int abx_http_open_like(const struct abx_http *h, const struct abx_host *host, struct abx_http **ret)
{
	const struct abx_http_options o = {.host = host,
					   .base_url = h->base_url,
					   .unix_path = h->unix_path,
					   .user_agent = h->user_agent,
					   .ca_file = h->ca_file,
					   .cert_file = h->cert_file,
					   .key_file = h->key_file,
					   .proxy = h->proxy,
					   .no_proxy = h->no_proxy,
					   .id_header = h->id_header,
					   .plain = h->plain};

	return abx_http_open(&o, ret);
}

int32_t abx_http_open_for(struct abx_call *call, const char *service,
			  const struct abx_http_options *o, struct abx_http **ret)
{
	struct abx_failure f = {ABX_INIT(struct abx_failure), .retry_after_ms = -1};
	const int r = abx_http_open(o, ret);
	/* A password may stand before it. */
	const char *account = strrchr(o->base_url, '@');
	const char *shown = account ? account + 1 : o->base_url;
	char text[400];

	f.text = text;
	switch (r) {
	case 0:
		return ABX_OK;
	case -EINVAL:
		f.code = ABX_EINVAL;
		f.remedy = "https://HOST, or http://localhost:PORT";
		(void)snprintf(text, sizeof(text), "%s: '%.200s' is not an address", service,
			       shown);
		break;
	case -EPERM:
		f.code = ABX_EINVAL;
		f.remedy = "use https://; http:// is for this machine alone";
		(void)snprintf(text, sizeof(text),
			       "%s: %.200s: credentials would cross the network in clear text",
			       service, shown);
		break;
	case -ENOMEM:
		f.code = ABX_ENOMEM;
		(void)snprintf(text, sizeof(text), "out of memory");
		break;
	default:
		f.code = ABX_EBROKEN;
		f.remedy = "reinstall libcurl";
		(void)snprintf(text, sizeof(text), "libcurl does not start");
	}
	return o->host->fail(call, &f);
}

void abx_http_handle_free(struct abx_http_handle *handle)
{
	if (!handle)
		return;
	if (handle->multi && handle->easy)
		(void)curl_multi_remove_handle(handle->multi, handle->easy);
	curl_easy_cleanup(handle->easy);
	(void)curl_multi_cleanup(handle->multi);
	free(handle);
}

void abx_http_close(struct abx_http *h)
{
	if (!h)
		return;
	while (h->idle) {
		struct abx_http_handle *first = h->idle;

		h->idle = first->next;
		abx_http_handle_free(first);
	}
	(void)pthread_mutex_destroy(&h->lock);
	free(h->base_url);
	free(h->authority);
	free(h->unix_path);
	free(h->user_agent);
	free(h->ca_file);
	free(h->cert_file);
	free(h->key_file);
	free(h->proxy);
	free(h->no_proxy);
	free(h->id_header);
	free(h);
}

static void set_tls(const struct abx_http *h, CURL *e)
{
	if (h->ca_file)
		(void)curl_easy_setopt(e, CURLOPT_CAINFO, h->ca_file);
	if (h->cert_file)
		(void)curl_easy_setopt(e, CURLOPT_SSLCERT, h->cert_file);
	if (h->key_file)
		(void)curl_easy_setopt(e, CURLOPT_SSLKEY, h->key_file);
}

static void set_options(const struct abx_http *h, struct abx_http_handle *handle)
{
	CURL *e = handle->easy;

	(void)curl_easy_setopt(e, CURLOPT_ERRORBUFFER, handle->why);
	(void)curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
	(void)curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
	(void)curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, (long)ABX_HTTP_CONNECT_MS);
	(void)curl_easy_setopt(e, CURLOPT_TCP_KEEPALIVE, 1L);
	(void)curl_easy_setopt(e, CURLOPT_BUFFERSIZE, 128L << 10);
	if (h->user_agent)
		(void)curl_easy_setopt(e, CURLOPT_USERAGENT, h->user_agent);
	set_tls(h, e);
	if (h->unix_path)
		(void)curl_easy_setopt(e, CURLOPT_UNIX_SOCKET_PATH, h->unix_path);
	/* What is in clear text stays here; libcurl reads variables of its own. */
	if (h->here) {
		(void)curl_easy_setopt(e, CURLOPT_PROXY, "");
		return;
	}
	if (h->proxy)
		(void)curl_easy_setopt(e, CURLOPT_PROXY, h->proxy);
	if (h->no_proxy)
		(void)curl_easy_setopt(e, CURLOPT_NOPROXY, h->no_proxy);
}

static struct abx_http_handle *handle_new(void)
{
	struct abx_http_handle *handle = calloc(1, sizeof(*handle));

	if (!handle)
		return NULL;
	handle->easy = curl_easy_init();
	handle->multi = curl_multi_init();
	if (handle->easy && handle->multi)
		return handle;
	abx_http_handle_free(handle);
	return NULL;
}

struct abx_http_handle *abx_http_handle_take(struct abx_http *h, bool fresh)
{
	struct abx_http_handle *handle;

	(void)pthread_mutex_lock(&h->lock);
	handle = fresh ? NULL : h->idle;
	if (handle) {
		h->idle = handle->next;
		h->n_idle--;
	}
	(void)pthread_mutex_unlock(&h->lock);
	if (!handle)
		handle = handle_new();
	if (!handle)
		return NULL;
	handle->next = NULL;
	handle->why[0] = '\0';
	set_options(h, handle);
	return handle;
}

void abx_http_handle_put(struct abx_http *h, struct abx_http_handle *handle)
{
	(void)curl_multi_remove_handle(handle->multi, handle->easy);
	curl_easy_reset(handle->easy);
	(void)pthread_mutex_lock(&h->lock);
	if (h->n_idle < ABX_HTTP_IDLE_MAX) {
		handle->next = h->idle;
		h->idle = handle;
		h->n_idle++;
		handle = NULL;
	}
	(void)pthread_mutex_unlock(&h->lock);
	abx_http_handle_free(handle);
}

/* 0: time is up. */
static int wait_time(const struct abx_http_wait *w)
{
	const struct abx_host *host = w->h->host;
	int64_t left = host->time_left_ms(w->call);

	if (w->quiet_ms) {
		int64_t quiet = *w->moved_ms + w->quiet_ms - host->now_ms(host->ctx);

		left = quiet < left ? quiet : left;
	}
	return left < 0 ? 0 : left > 60000 ? 60000 : (int)left;
}

static bool is_ready(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return fd >= 0 && poll(&p, 1, 0) > 0;
}

static int32_t wait_more(struct abx_http_handle *handle, struct abx_http_wait *w)
{
	const int cancel = w->h->host->cancel_fd(w->call);
	const bool paused = w->paused && *w->paused;
	struct curl_waitfd fds[3] = {{.fd = cancel, .events = CURL_WAIT_POLLIN},
				     {.fd = w->stop_fd, .events = CURL_WAIT_POLLIN},
				     {.fd = w->fd, .events = CURL_WAIT_POLLIN}};
	int left = wait_time(w);

	if (!left)
		return ABX_ETIMEDOUT;
	if (curl_multi_poll(handle->multi, fds, paused ? 3 : 2, left, NULL) != CURLM_OK)
		return ABX_ENOMEM;
	if (is_ready(cancel) || is_ready(w->stop_fd))
		return ABX_ECANCELED;
	/* libcurl does not tell of a pipe that was closed at its other end. */
	if (paused && is_ready(w->fd)) {
		*w->paused = false;
		(void)curl_easy_pause(handle->easy, CURLPAUSE_CONT);
	}
	return ABX_OK;
}

int32_t abx_http_drive(struct abx_http_handle *handle, struct abx_http_wait *w)
{
	CURLMsg *m;
	int running = 1, left;

	if (curl_multi_add_handle(handle->multi, handle->easy) != CURLM_OK)
		return ABX_ENOMEM;
	for (;;) {
		int32_t r;

		if (curl_multi_perform(handle->multi, &running) != CURLM_OK)
			return ABX_ENOMEM;
		if (!running)
			break;
		r = wait_more(handle, w);
		if (r != ABX_OK)
			return r;
	}
	w->result = CURLE_RECV_ERROR;
	while ((m = curl_multi_info_read(handle->multi, &left)))
		if (m->msg == CURLMSG_DONE)
			w->result = m->data.result;
	return ABX_OK;
}

int32_t abx_http_why(const struct abx_http *h, const struct abx_http_handle *handle, CURLcode c,
		     struct abx_http_reply *reply)
{
	const char *text = *handle->why ? handle->why : curl_easy_strerror(c);
	curl_off_t ready_us = 0;
	long os_errno = 0;

	(void)snprintf(reply->text, sizeof(reply->text), "%s", text);
	/* With TLS 1.3 our certificate is refused once the connection is there. */
	if (c != CURLE_OK && strstr(text, " alert ") &&
	    (strstr(text, "certificate") || strstr(text, "unknown ca")))
		return ABX_EAUTH;
	switch ((unsigned int)c) {
	case CURLE_OUT_OF_MEMORY:
		return ABX_ENOMEM;
	case CURLE_COULDNT_CONNECT:
		(void)curl_easy_getinfo(handle->easy, CURLINFO_OS_ERRNO, &os_errno);
		reply->os_errno = (int)os_errno;
		if (os_errno)
			(void)snprintf(reply->text, sizeof(reply->text), "%s: %s",
				       h->unix_path ? h->unix_path : h->base_url,
				       strerror((int)os_errno));
		return ABX_ENETWORK;
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_RESOLVE_PROXY:
		return ABX_ENETWORK;
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_CERTPROBLEM:
		return ABX_EAUTH;
	case CURLE_URL_MALFORMAT:
		return ABX_EINVAL;
	case CURLE_UNSUPPORTED_PROTOCOL: /* an answer without a status line */
	case CURLE_WEIRD_SERVER_REPLY:
		reply->sent = true;
		return ABX_EPROTO;
	default:
		/* Was it connected?  Then what the other side did with it is not known. */
		(void)curl_easy_getinfo(handle->easy, CURLINFO_PRETRANSFER_TIME_T, &ready_us);
		reply->sent = ready_us > 0;
		return ABX_ENETWORK;
	}
}

/* Queries may hold what is nobody's business. */
void abx_http_trace(const struct abx_http *h, struct abx_call *call,
		    const struct abx_http_request *req, int32_t status, int64_t begun_ms)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%.*s", (int)strcspn(req->path, "?"), req->path);
	h->host->trace(call, req->method, path, status,
		       (h->host->now_ms(h->host->ctx) - begun_ms) * 1000);
}
