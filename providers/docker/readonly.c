/* SPDX-License-Identifier: MIT */
/*
 * A box whose workspace nobody in it changes.
 *
 * The engine decides how a directory is mounted when it makes a container, and the project gets in
 * after that.  So the box moves: what it is becomes an image, and a second container of that has
 * the workspace as a volume, which the engine fills from the image and mounts read-only, before any
 * process is there.  The volume has the container's name, and goes with it.  The image has the
 * workspace too, so checkpoints and forks of the box have it, although volumes are in none.
 *
 * The image is one that was removed from the beginning (removed.c): it goes with the container.
 * Both containers have the labels of the box, so what an interrupted create leaves is found; the
 * second is the box from when it is emitted.
 */
#include <string.h>

#include "providers/docker/docker.h"

#define SUFFIX "-readonly"
#define NAME_MAX_BYTES 220

bool docker_readonly_is(const cJSON *inspected)
{
	return strcmp(abx_json_get_text(
			      abx_json_get_part(abx_json_get_part(inspected, "Config"), "Labels"),
			      DOCKER_LABEL_READ_ONLY),
		      "1") == 0;
}

void docker_readonly_forget(struct abx_session *s, struct abx_call *call, const char *id)
{
	const struct docker_request q = {.method = "DELETE", .idempotent = true, .slow = true};
	struct docker_answer a = {.status = 0};

	(void)docker_ask(s, call, &q, &a, "/images/" DOCKER_REMOVED ":%.*s", DOCKER_TAG_BYTES, id);
	docker_answer_release(&a);
}

static int32_t commit(struct abx_session *s, struct abx_call *call, const char *id, char image[80])
{
	const struct docker_request q = {.method = "POST", .outcome_matters = true, .slow = true};
	struct docker_answer a = {.status = 0};
	const char *made;
	int32_t r;

	docker_readonly_forget(s, call, id);
	r = docker_ask(s, call, &q, &a, "/commit?container=%s&repo=" DOCKER_REMOVED "&tag=%.*s", id,
		       DOCKER_TAG_BYTES, id);
	if (r == ABX_OK)
		r = docker_expect(call, &a, "read-only box %.*s", DOCKER_ID_SHOWN, id);
	made = abx_json_get_text(a.doc, "Id");
	if (r == ABX_OK && !docker_is_word(made))
		r = abx_fail(call, ABX_EPROTO, NULL, "Docker engine: an image without id");
	if (r == ABX_OK)
		(void)snprintf(image, 80, "%.79s", made);
	docker_answer_release(&a);
	return r;
}

static int32_t drop_volume(struct abx_session *s, struct abx_call *call, const char *name)
{
	return docker_do(s, call, "DELETE", "a workspace that was read-only", "/volumes/%s?force=1",
			 name);
}

int32_t docker_readonly_sweep(struct abx_session *s, struct abx_call *call)
{
	/* filters={"dangling":["true"],"label":[...]} */
	static const char filters[] = "filters=%7B%22dangling%22%3A%5B%22true%22%5D%2C"
				      "%22label%22%3A%5B%22" DOCKER_LABEL_READ_ONLY "%22%5D%7D";
	const struct docker_request q = {.method = "GET", .idempotent = true};
	struct docker_answer a = {.status = 0};
	const cJSON *item;
	int32_t r = docker_ask(s, call, &q, &a, "/volumes?%s", filters);

	if (r == ABX_OK)
		r = docker_expect(call, &a, "workspaces that were read-only");
	if (r == ABX_OK)
		cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(a.doc, "Volumes")) {
			const char *name = abx_json_get_text(item, "Name");
			int32_t e = docker_is_word(name) ? drop_volume(s, call, name) : ABX_OK;

			r = r == ABX_OK ? e : r;
		}
	docker_answer_release(&a);
	return r;
}

static bool is_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return strncmp(path, dir, n) == 0 && (!path[n] || path[n] == '/');
}

/* What is mounted in the workspace is part of it. */
static void fix_mounts(cJSON *host, const char *name)
{
	cJSON *mounts = cJSON_GetObjectItemCaseSensitive(host, "Mounts"), *one;
	bool covered = false;

	if (!cJSON_IsArray(mounts)) {
		cJSON_DeleteItemFromObjectCaseSensitive(host, "Mounts");
		mounts = cJSON_AddArrayToObject(host, "Mounts");
	}
	cJSON_ArrayForEach(one, mounts) {
		const char *target = abx_json_get_text(one, "Target");

		if (!is_below(target, DOCKER_WORKSPACE))
			continue;
		covered = covered || strcmp(target, DOCKER_WORKSPACE) == 0;
		cJSON_DeleteItemFromObjectCaseSensitive(one, "ReadOnly");
		(void)abx_json_add_bool(one, "ReadOnly", true);
	}
	if (covered)
		return;
	/* One without a name cannot be read-only.  From when it is made it is the container's. */
	docker_add_mount(mounts, "volume", name, DOCKER_WORKSPACE, /* read_only= */ true);
	one = cJSON_GetArrayItem(mounts, cJSON_GetArraySize(mounts) - 1);
	(void)abx_json_add_str(
		cJSON_AddObjectToObject(cJSON_AddObjectToObject(one, "VolumeOptions"), "Labels"),
		DOCKER_LABEL_READ_ONLY, "1");
}

static void set_text(cJSON *obj, const char *key, const char *value)
{
	cJSON_DeleteItemFromObjectCaseSensitive(obj, key);
	(void)abx_json_add_str(obj, key, value);
}

/* The container that it is, of that image, with that name, and its workspace read-only. */
static cJSON *describe(const cJSON *box, const char *name, const char *image)
{
	cJSON *body = cJSON_Duplicate(abx_json_get_part(box, "Config"), /* recurse= */ true),
	      *host = cJSON_Duplicate(abx_json_get_part(box, "HostConfig"), /* recurse= */ true),
	      *labels = cJSON_GetObjectItemCaseSensitive(body, "Labels");

	set_text(body, "Image", image);
	set_text(labels, DOCKER_LABEL_NAME, name);
	set_text(labels, DOCKER_LABEL_READ_ONLY, "1");
	fix_mounts(host, name);
	if (!cJSON_AddItemToObject(body, "HostConfig", host))
		cJSON_Delete(host);
	return body;
}

static int32_t emit(struct abx_session *s, struct abx_call *call, const char *id)
{
	const struct abx_sandbox sb = {ABX_INIT(struct abx_sandbox), .id = id};

	return docker_get(s, call, &sb);
}

/* Of one that was left by a start that was interrupted, nothing is known. */
static int32_t make(struct abx_session *s, struct abx_call *call, const cJSON *box,
		    const char *image, char id[80])
{
	char name[NAME_MAX_BYTES];
	bool missing = false;
	cJSON *body;
	int32_t r;

	(void)snprintf(
		name, sizeof(name), "%.200s" SUFFIX,
		abx_json_get_text(abx_json_get_part(abx_json_get_part(box, "Config"), "Labels"),
				  DOCKER_LABEL_NAME));
	r = docker_remove(s, call, name);
	if (r == ABX_OK)
		r = drop_volume(s, call, name);
	if (r != ABX_OK)
		return r;
	body = describe(box, name, image);
	r = docker_create(s, call, body, name, image, id, &missing);
	cJSON_Delete(body);
	return missing ? abx_fail(call, ABX_EREMOTE, "try again",
				  "read-only box: its image is gone already")
		       : r;
}

int32_t docker_readonly_make(struct abx_session *s, struct abx_call *call, const cJSON *box,
			     char ret_id[80])
{
	const char *id = abx_json_get_text(box, "Id");
	char image[80] = "";
	int32_t r;
	int e;

	if (docker_inside_is(box))
		return abx_fail(call, ABX_ENOTSUP, "leave out one of the two",
				"--readonly: root in a box with an engine (docker.start_dockerd) "
				"could undo it");
	if (docker_state(box) != ABX_STATE_STOPPED)
		return abx_fail(call, ABX_ESTATE, "stop it first",
				"box %.*s: it runs, and its workspace can be written",
				DOCKER_ID_SHOWN, id);
	r = commit(s, call, id, image);
	if (r == ABX_OK)
		r = make(s, call, box, image, ret_id);
	if (r == ABX_OK) {
		e = docker_env_copy(s, id, ret_id);
		if (e < 0)
			r = abx_fail_errno(call, -e, "box %.*s: keep its environment",
					   DOCKER_ID_SHOWN, ret_id);
	}
	if (r == ABX_OK)
		r = emit(s, call, ret_id);
	if (r == ABX_OK)
		r = docker_remove(s, call, id);
	if (r == ABX_OK)
		docker_env_remove(s, id);
	return r;
}
