/* SPDX-License-Identifier: MIT */
/*
 * A Docker engine of its own in a box (docker.start_dockerd).
 *
 * Its container then has more than any other: it may mount and set up networks, unfiltered.  So
 * its root is no longer kept from the engine's machine, and that is said.  The engine in the box
 * is started by a script of the base image (core/base/context/start-dockerd.sh), after every
 * start of the box, and ends with it.
 */
#include <string.h>

#include "providers/docker/docker.h"

#define SCRIPT "/usr/local/lib/agentbox/start-dockerd"
#define DATA_DIR "/var/lib/docker"
/* Character device 10:229, /dev/fuse: whether the engine's machine has one or not. */
#define FUSE_RULE "c 10:229 rwm"
#define WORDS_MAX 400
#define STOP_ROUND_MS 50
#define REMEDY_WITHOUT "create the box without docker.start_dockerd, or at another engine"

/* The engine is root's, and a box's first process may be a user's, who cannot tell it to end.
 * $1: so many times it is looked after. */
static const char stop_script[] = "p=$(cat /var/run/docker.pid 2>/dev/null) || exit 0\n"
				  "kill -TERM \"$p\" 2>/dev/null || exit 0\n"
				  "n=$1\n"
				  "while [ \"$n\" -gt 0 ] && kill -0 \"$p\" 2>/dev/null; do\n"
				  "	sleep 0.05; n=$((n - 1))\n"
				  "done\n";

static void add_words(cJSON *obj, const char *key, const char *const *words, size_t n)
{
	cJSON *list = cJSON_AddArrayToObject(obj, key);

	for (size_t i = 0; i < n; i++)
		(void)cJSON_AddItemToArray(list, cJSON_CreateString(words[i]));
}

void docker_inside_ask(cJSON *host)
{
	static const char *const caps[] = {"SYS_ADMIN", "NET_ADMIN"};
	static const char *const filters[] = {"seccomp=unconfined", "apparmor=unconfined"};
	static const char *const devices[] = {FUSE_RULE};
	const cJSON *one;
	cJSON *mounts = cJSON_GetObjectItemCaseSensitive(host, "Mounts");

	add_words(host, "CapAdd", caps, ABX_N_ELEMENTS(caps));
	add_words(host, "SecurityOpt", filters, ABX_N_ELEMENTS(filters));
	add_words(host, "DeviceCgroupRules", devices, ABX_N_ELEMENTS(devices));
	cJSON_ArrayForEach(one, mounts)
		if (strcmp(abx_json_get_text(one, "Target"), DATA_DIR) == 0)
			return;
	/* A volume without a name: layers cannot lie on the box's own, and it goes with the box. */
	docker_add_mount(mounts, "volume", "", DATA_DIR, /* read_only= */ false);
}

void docker_inside_warn(void)
{
	abx_plugin_host->log(
		abx_plugin_host->ctx, ABX_LOG_WARN, "docker",
		"docker.start_dockerd: the box may mount and set up networks; root in it "
		"can get at the machine that its engine runs on");
}

bool docker_inside_is(const cJSON *inspected)
{
	return strcmp(abx_json_get_text(
			      abx_json_get_part(abx_json_get_part(inspected, "Config"), "Labels"),
			      DOCKER_LABEL_INSIDE),
		      "1") == 0;
}

int32_t docker_inside_refused(struct abx_session *s, struct abx_call *call, const char *why)
{
	return abx_fail(call, ABX_ENOTSUP, REMEDY_WITHOUT,
			"docker.start_dockerd: the Docker engine at %s does not give a box what "
			"an engine in it needs: %.300s",
			s->where, why);
}

struct words {
	char text[WORDS_MAX + 1];
	size_t n;
};

static int32_t take(void *io, int32_t stream ABX_UNUSED, const void *data, size_t len)
{
	struct words *w = io;

	if (len > WORDS_MAX - w->n)
		len = WORDS_MAX - w->n;
	memcpy(w->text + w->n, data, len);
	w->n += len;
	return ABX_OK;
}

static int32_t judge(struct abx_session *s, struct abx_call *call, const struct abx_exit *e,
		     struct words *w)
{
	w->text[strcspn(w->text, "\r\n")] = '\0';
	if (!e->code && strcmp(w->text, "vfs") == 0)
		abx_plugin_host->log(
			abx_plugin_host->ctx, ABX_LOG_WARN, "docker",
			"the engine in the box copies images as a whole: nothing better "
			"works there (fuse-overlayfs in the image might)");
	if (!e->code)
		return ABX_OK;
	if (e->code == 44 || e->code == 126 || e->code == 127)
		return abx_fail(call, ABX_EINVAL,
				"agentbox prepare makes an image with it while "
				"docker.start_dockerd is set",
				"docker.start_dockerd: no engine is in the box's image, or no "
				"%s that starts it",
				SCRIPT);
	if (e->code == 45)
		return docker_inside_refused(s, call, w->text);
	return abx_fail(call, ABX_EIO, REMEDY_WITHOUT, "docker.start_dockerd: %.300s",
			*w->text ? w->text : "the engine in the box does not start");
}

static int32_t run(struct abx_session *s, struct abx_call *call, const char *id,
		   const char *const *argv, struct words *w, struct abx_exit *e)
{
	const struct abx_sandbox sb = {ABX_INIT(struct abx_sandbox), .id = id};
	const struct abx_exec req = {
		ABX_INIT(struct abx_exec), .argv = argv, .user = "0",	.cwd = "/", .stdin_fd = -1,
		.control_fd = -1,	   .io = w,	 .output = take};
	int32_t r = docker_exec(s, call, &sb, &req, e);

	w->text[w->n] = '\0';
	return r;
}

int32_t docker_inside_start(struct abx_session *s, struct abx_call *call, const char *id)
{
	static const char *const argv[] = {SCRIPT, NULL};
	struct words w = {.n = 0};
	struct abx_exit e = {ABX_INIT(struct abx_exit)};
	int32_t r = run(s, call, id, argv, &w, &e);

	return r == ABX_OK ? judge(s, call, &e, &w) : r;
}

int32_t docker_inside_stop(struct abx_session *s, struct abx_call *call, const char *id,
			   int64_t grace_ms)
{
	char rounds[32];
	const char *const argv[] = {"/bin/sh", "-c", stop_script, "agentbox", rounds, NULL};
	struct words w = {.n = 0};
	struct abx_exit e = {ABX_INIT(struct abx_exit)};

	(void)snprintf(rounds, sizeof(rounds), "%lld", (long long)grace_ms / STOP_ROUND_MS);
	return run(s, call, id, argv, &w, &e);
}
