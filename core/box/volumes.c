/* SPDX-License-Identifier: MIT */
/* Volumes, which outlive boxes. */
#include "core/box/volumes.h"

#include <string.h>

#include "core/state/attempt.h"
#include "core/state/labels.h"
#include "core/util/mem.h"

#define VOLUME_TIMEOUT_MS 120000

static int ensure_one(struct abx_app *app, struct abx_cloud *cloud, const char *name,
		      struct abx_strv *ret_ids, struct abx_err *err)
{
	const struct abx_attempt_of what = {abx_cloud_name(cloud), "volume", name, NULL};
	struct abx_call_opts o = {.timeout_ms = VOLUME_TIMEOUT_MS};
	struct abx_volume_req req = {ABX_INIT(struct abx_volume_req)};
	struct abx_kv labels[ABX_N_INSTALL_LABELS + 2];
	struct abx_attempt a = ABX_ATTEMPT_INIT;
	struct abx_resource_copy got = {0};
	struct abx_err why = ABX_ERR_INIT;
	int r = abx_attempt_begin(&app->home, app->db, &what, &a, err);

	if (r < 0)
		return r;
	abx_labels_of_install(app->db, labels);
	labels[ABX_N_INSTALL_LABELS] = (struct abx_kv){ABX_LABEL_NAME, name};
	labels[ABX_N_INSTALL_LABELS + 1] = (struct abx_kv){ABX_LABEL_ATTEMPT, a.id};
	o.attempt = a.id;
	req.name = name;
	req.labels = labels;
	req.n_labels = ABX_N_INSTALL_LABELS + 2;
	r = abx_cloud_volume_ensure(cloud, &o, &req, &got, &why);
	if (r == 0)
		abx_strv_add(ret_ids, got.r.id);
	abx_resource_copy_release(&got);
	if (r < 0 && err)
		*err = why;
	/* Its name keeps it: from here on it is the user's. */
	abx_attempt_end(&app->home, app->db, &a, !abx_err_may_have_happened(r, &why));
	return r;
}

int abx_volumes_ensure(struct abx_app *app, struct abx_cloud *cloud,
		       const struct abx_spec_mounts *wanted, struct abx_strv *ret_ids,
		       struct abx_err *err)
{
	int r = 0;

	for (size_t i = 0; i < wanted->len && r == 0; i++)
		r = ensure_one(app, cloud, wanted->items[i].source, ret_ids, err);
	return r;
}

int abx_volumes_list(struct abx_app *app, struct abx_cloud *cloud, struct abx_resource_list *ret,
		     struct abx_err *err)
{
	const struct abx_call_opts o = {.timeout_ms = VOLUME_TIMEOUT_MS};
	struct abx_kv labels[ABX_N_INSTALL_LABELS];

	abx_labels_of_install(app->db, labels);
	return abx_cloud_volume_list(cloud, &o, labels, ABX_N_INSTALL_LABELS, ret, err);
}

static int find_user(struct abx_app *app, const char *provider, const char *name, char **ret_box,
		     struct abx_err *err)
{
	struct abx_box_list boxes = {0};
	int r = abx_boxes_list(app->db, NULL, &boxes, err);

	for (size_t i = 0; i < boxes.len && r == 0 && !*ret_box; i++) {
		struct abx_box_spec s = {0};

		if (strcmp(boxes.items[i].provider, provider) != 0 ||
		    abx_box_spec_parse(boxes.items[i].spec, &s, NULL) < 0)
			continue;
		for (size_t k = 0; k < s.volumes.len && !*ret_box; k++)
			if (strcmp(s.volumes.items[k].source, name) == 0)
				*ret_box = abx_xstrdup(boxes.items[i].name);
		abx_box_spec_release(&s);
	}
	abx_box_list_release(&boxes);
	return r;
}

int abx_volumes_find(struct abx_app *app, struct abx_cloud *cloud, const char *name, char **ret_id,
		     struct abx_err *err)
{
	struct abx_resource_list list = {NULL, 0};
	char *id = NULL;
	int r = abx_volumes_list(app, cloud, &list, err);

	for (size_t i = 0; i < list.len && !id; i++)
		if (list.items[i].r.name && strcmp(list.items[i].r.name, name) == 0)
			id = abx_xstrdup(list.items[i].r.id);
	abx_resource_list_release(&list);
	if (r < 0)
		return r;
	if (!id) {
		(void)abx_err_set(err, ABX_ENOBOX, "no volume '%s' of this install at %s", name,
				  abx_cloud_name(cloud));
		(void)abx_err_remedy(err, "agentbox volume ls shows all");
		return ABX_ENOBOX;
	}
	*ret_id = id;
	return 0;
}

int abx_volumes_remove(struct abx_app *app, struct abx_cloud *cloud, const char *name,
		       const char *id, struct abx_err *err)
{
	const struct abx_call_opts o = {.timeout_ms = VOLUME_TIMEOUT_MS};
	abx_autofree char *user = NULL;
	int r = find_user(app, abx_cloud_name(cloud), name, &user, err);

	if (r == 0 && user) {
		(void)abx_err_set(err, ABX_ESTATE, "volume '%s': box '%s' has it", name, user);
		(void)abx_err_remedy(err, "agentbox destroy %s first", user);
		return ABX_ESTATE;
	}
	return r < 0 ? r : abx_cloud_volume_delete(cloud, &o, id, err);
}
