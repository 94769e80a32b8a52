/* SPDX-License-Identifier: MIT */
/*
 * The least that a command in a container can be: floor-docker SOCKET CONTAINER COMMAND...
 *
 * A whole process that loads libcurl and asks the engine for an exec: create, start, inspect.
 * The floor of `agentbox exec` in a box of Docker's.
 */
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ID_BYTES = 64, ANSWER_MAX = 65536 };

struct answer {
	char text[ANSWER_MAX];
	size_t len;
};

static void die(const char *what)
{
	(void)fprintf(stderr, "floor-docker: %s\n", what);
	exit(1);
}

static size_t take(char *data, size_t size, size_t n, void *ctx)
{
	struct answer *a = ctx;
	const size_t len = size * n;

	if (len < sizeof(a->text) - a->len) {
		memcpy(a->text + a->len, data, len);
		a->len += len;
		a->text[a->len] = '\0';
	}
	return len;
}

static void ask(CURL *curl, const char *path, const char *body, struct answer *ret)
{
	char url[256];
	long status = 0;

	ret->len = 0;
	(void)snprintf(url, sizeof(url), "http://docker/v1.41%s", path);
	(void)curl_easy_setopt(curl, CURLOPT_URL, url);
	if (body)
		(void)curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
	else
		(void)curl_easy_setopt(curl, CURLOPT_HTTPGET, 1L);
	(void)curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
	(void)curl_easy_setopt(curl, CURLOPT_WRITEDATA, ret);
	if (curl_easy_perform(curl) != CURLE_OK ||
	    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status) != CURLE_OK || status >= 300)
		die(path);
}

/* {"AttachStdout":true,...,"Cmd":["a","b"]}; the words are plain ones. */
static void describe(char **argv, char *out, size_t size)
{
	size_t n = (size_t)snprintf(out, size,
				    "{\"AttachStdout\":true,\"AttachStderr\":true,"
				    "\"Cmd\":[");

	for (int i = 0; argv[i] && n < size; i++)
		n += (size_t)snprintf(out + n, size - n, "%s\"%s\"", i ? "," : "", argv[i]);
	if (n + 3 > size)
		die("the command is too long");
	memcpy(out + n, "]}", 3);
}

int main(int argc, char **argv)
{
	static struct answer a;
	struct curl_slist *headers = NULL;
	char body[4096], path[256], id[ID_BYTES + 1];
	CURL *curl;
	const char *at;

	if (argc < 4)
		die("usage: floor-docker SOCKET CONTAINER COMMAND...");
	curl = curl_easy_init();
	headers = curl_slist_append(headers, "Content-Type: application/json");
	if (!curl || !headers)
		die("libcurl does not start");
	(void)curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, argv[1]);
	(void)curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	describe(argv + 3, body, sizeof(body));
	(void)snprintf(path, sizeof(path), "/containers/%.100s/exec", argv[2]);
	ask(curl, path, body, &a);
	at = strstr(a.text, "\"Id\":\"");
	if (!at || strlen(at) < 6 + ID_BYTES)
		die("no id");
	(void)snprintf(id, sizeof(id), "%.64s", at + 6);
	(void)snprintf(path, sizeof(path), "/exec/%s/start", id);
	ask(curl, path, "{\"Detach\":false,\"Tty\":false}", &a);
	(void)snprintf(path, sizeof(path), "/exec/%s/json", id);
	ask(curl, path, NULL, &a);
	curl_slist_free_all(headers);
	curl_easy_cleanup(curl);
	return strstr(a.text, "\"ExitCode\":0") ? 0 : 1;
}
