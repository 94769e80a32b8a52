/* SPDX-License-Identifier: MIT */
/*
 * The least that boxes of Docker's can be: whole processes that load libcurl and ask an engine.
 *
 *	floor-docker SOCKET exec CONTAINER COMMAND...
 *		an exec: create, start, inspect; the floor of `agentbox exec`
 *	floor-docker SOCKET create IMAGE NAME TAR COMMAND...
 *		a container: create, start, the tar stream into its /workspace, one exec; the floor
 *		of `agentbox create`, beside git's work
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

struct request {
	const char *method, *path, *body;
	FILE *file; /* is sent instead, of `size` bytes */
	long size;
};

static void ask(CURL *curl, const struct request *q, struct answer *ret)
{
	char url[512];
	long status = 0;

	ret->len = 0;
	ret->text[0] = '\0';
	(void)snprintf(url, sizeof(url), "http://docker/v1.41%s", q->path);
	(void)curl_easy_setopt(curl, CURLOPT_URL, url);
	(void)curl_easy_setopt(curl, CURLOPT_HTTPGET, 1L);
	if (q->file) {
		(void)curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
		(void)curl_easy_setopt(curl, CURLOPT_READDATA, q->file);
		(void)curl_easy_setopt(curl, CURLOPT_INFILESIZE, q->size);
	} else if (q->body) {
		(void)curl_easy_setopt(curl, CURLOPT_POSTFIELDS, q->body);
	}
	(void)curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, q->method);
	(void)curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
	(void)curl_easy_setopt(curl, CURLOPT_WRITEDATA, ret);
	if (curl_easy_perform(curl) != CURLE_OK ||
	    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status) != CURLE_OK || status >= 300)
		die(*ret->text ? ret->text : q->path);
}

static void post(CURL *curl, const char *path, const char *body, struct answer *ret)
{
	const struct request q = {.method = "POST", .path = path, .body = body};

	ask(curl, &q, ret);
}

static void take_id(const struct answer *a, char ret[ID_BYTES + 1])
{
	const char *at = strstr(a->text, "\"Id\":\"");

	if (!at || strlen(at) < 6 + ID_BYTES)
		die("no id");
	(void)snprintf(ret, ID_BYTES + 1, "%.64s", at + 6);
}

/* ["a","b"]}; the words are plain ones. */
static void add_words(char **argv, char *out, size_t size)
{
	size_t n = strlen(out);

	for (int i = 0; argv[i] && n < size; i++)
		n += (size_t)snprintf(out + n, size - n, "%s\"%s\"", i ? "," : "[", argv[i]);
	if (n + 3 > size)
		die("the command is too long");
	memcpy(out + n, "]}", 3);
}

/* 0 when the command ended well. */
static int run_exec(CURL *curl, const char *container, char **argv)
{
	static struct answer a;
	struct request look = {.method = "GET"};
	char body[4096] = "{\"AttachStdout\":true,\"AttachStderr\":true,\"Cmd\":";
	char path[256], id[ID_BYTES + 1];

	add_words(argv, body, sizeof(body));
	(void)snprintf(path, sizeof(path), "/containers/%.100s/exec", container);
	post(curl, path, body, &a);
	take_id(&a, id);
	(void)snprintf(path, sizeof(path), "/exec/%s/start", id);
	post(curl, path, "{\"Detach\":false,\"Tty\":false}", &a);
	(void)snprintf(path, sizeof(path), "/exec/%s/json", id);
	look.path = path;
	ask(curl, &look, &a);
	return strstr(a.text, "\"ExitCode\":0") ? 0 : 1;
}

static int run_create(CURL *curl, char **argv)
{
	static struct answer a;
	struct request put = {.method = "PUT", .file = fopen(argv[2], "re")};
	char body[1024], path[256], id[ID_BYTES + 1];

	if (!put.file || fseek(put.file, 0, SEEK_END) != 0)
		die(argv[2]);
	put.size = ftell(put.file);
	rewind(put.file);
	(void)snprintf(body, sizeof(body),
		       "{\"Image\":\"%.300s\",\"Cmd\":[\"sleep\",\"infinity\"],"
		       "\"WorkingDir\":\"/workspace\",\"HostConfig\":{\"Init\":true}}",
		       argv[0]);
	(void)snprintf(path, sizeof(path), "/containers/create?name=%.200s", argv[1]);
	post(curl, path, body, &a);
	take_id(&a, id);
	(void)snprintf(path, sizeof(path), "/containers/%s/start", id);
	post(curl, path, "", &a);
	(void)snprintf(path, sizeof(path), "/containers/%s/archive?path=/workspace", id);
	put.path = path;
	ask(curl, &put, &a);
	(void)fclose(put.file);
	return run_exec(curl, id, argv + 3);
}

int main(int argc, char **argv)
{
	struct curl_slist *headers = NULL;
	CURL *curl;
	int r = 1;

	if (argc < 5)
		die("usage: floor-docker SOCKET exec|create ...");
	curl = curl_easy_init();
	headers = curl_slist_append(headers, "Content-Type: application/json");
	headers = curl_slist_append(headers, "Expect:");
	if (!curl || !headers)
		die("libcurl does not start");
	(void)curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, argv[1]);
	(void)curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	if (strcmp(argv[2], "exec") == 0)
		r = run_exec(curl, argv[3], argv + 4);
	else if (strcmp(argv[2], "create") == 0 && argc > 6)
		r = run_create(curl, argv + 3);
	else
		die("exec CONTAINER COMMAND..., or create IMAGE NAME TAR COMMAND...");
	curl_slist_free_all(headers);
	curl_easy_cleanup(curl);
	return r;
}
