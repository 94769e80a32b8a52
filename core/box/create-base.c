/* SPDX-License-Identifier: MIT */
/* The image of boxes for which nobody named one. */
#include "core/base/prepare.h"
#include "core/box/create-io.h"
#include "core/util/log.h"
#include "core/util/mem.h"

static struct abx_preparer preparer(const struct abx_creating *c)
{
	return (struct abx_preparer){.home = &c->app->home,
				     .db = c->app->db,
				     .cloud = c->cloud,
				     .config = c->config,
				     .cancel_fd = c->app->host.cancel_fd};
}

bool abx_create_has_own_image(const struct abx_creating *c)
{
	static const char *const names[] = {"image", "template"};

	for (size_t i = 0; i < ABX_N_ELEMENTS(names); i++) {
		abx_autofree char *key = abx_xasprintf("%s.%s", abx_cloud_name(c->cloud), names[i]);
		const char *value = abx_config_get(c->config, key, NULL);

		if (value && *value)
			return true;
	}
	return false;
}

void abx_create_judge_base(const struct abx_creating *c, const struct abx_prepared *base)
{
	const struct abx_preparer p = preparer(c);
	bool current = true;

	if (abx_prepare_is_current(&p, base, &current, NULL) == 0 && !current)
		abx_warn("the image that boxes boot from at %s was made of something else than one "
			 "would be now (agentbox prepare --provider %s makes it anew)",
			 abx_cloud_name(c->cloud), abx_cloud_name(c->cloud));
}

static int make(struct abx_creating *c, const char *from, struct abx_err *err)
{
	const struct abx_preparer p = preparer(c);
	const struct abx_prepare_request req = {
		.name = from ? ABX_PREPARED_DEFAULT : NULL, .from = from, .log = c->req->build_log};
	struct abx_prepared made = {.name = NULL};
	bool is_new;
	int r = abx_prepare_image(&p, &req, &made, &is_new, err);

	if (r < 0)
		return r;
	abx_xreplace(&c->image, made.ref);
	abx_prepared_release(&made);
	return 0;
}

int abx_create_make_base(struct abx_creating *c, struct abx_err *err)
{
	const uint64_t caps = abx_cloud_caps(c->cloud);

	if (c->image || c->origin.point.ref || !(caps & ABX_CAP_NEEDS_BASE) ||
	    (caps & ABX_CAP_BASE_ASKED) || abx_create_has_own_image(c))
		return 0;
	abx_note("no image is prepared at %s yet: making one of " ABX_PREPARE_FROM
		 ", once; this takes minutes",
		 abx_cloud_name(c->cloud));
	return make(c, NULL, err);
}

int abx_create_replace_base(struct abx_creating *c, struct abx_err *err)
{
	const struct abx_preparer p = preparer(c);
	const uint64_t caps = abx_cloud_caps(c->cloud);
	int r;

	if (!c->base_from || c->origin.point.ref || !(caps & ABX_CAP_NEEDS_BASE) ||
	    (caps & ABX_CAP_BASE_ASKED) || abx_prepare_is_there(&p, c->image) != 0)
		return 0;
	abx_note("the image that boxes boot from is gone at %s: making it anew, of %s; this takes "
		 "minutes",
		 abx_cloud_name(c->cloud), c->base_from);
	r = make(c, c->base_from, err);
	return r < 0 ? r : 1;
}
