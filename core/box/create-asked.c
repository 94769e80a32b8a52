/* SPDX-License-Identifier: MIT */
/* What a create is asked for, from the request, the configuration and the provider: all that can
 * be refused before anything exists. */
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "core/box/create-io.h"
#include "core/box/recover.h"
#include "core/box/workspace.h"
#include "core/util/log.h"
#include "core/util/mem.h"
#include "core/util/parse.h"

/* In which providers agree. */
#define OPTION_SANDBOX "sandbox_id"
static int load_env(struct abx_creating *c, struct abx_err *err)
{
	const char *file = abx_config_get(c->config, "box.env_file", NULL);
	int r = 0;

	if (c->req->from)
		return abx_origin_env_load(c->app, c->req->from->box_id, &c->env, err);

	if (file && *file)
		r = abx_env_load(&c->env, file, err);
	if (r == 0 && c->req->env)
		for (size_t i = 0; i < c->req->env->len; i++)
			abx_env_set(&c->env, c->req->env->items[i].key,
				    c->req->env->items[i].value);
	return r;
}

static int load_timeout(struct abx_creating *c, struct abx_err *err)
{
	const char *text = abx_config_get(c->config, "box.timeout", NULL);
	int r = 0;

	if (c->req->has_timeout || c->req->timeout_ms)
		c->spec.timeout_ms = c->req->timeout_ms;
	else if (!c->spec.timeout_ms && !c->req->from && text && *text)
		r = abx_parse_duration_ms(text, &c->spec.timeout_ms, err);
	c->timeout_ms = c->spec.timeout_ms;
	return r;
}

/* A fork is given what its source was; a box from a checkpoint too, but for what is mounted, and
 * what that does not say is as configured. */
static int load_spec(struct abx_creating *c, struct abx_err *err)
{
	int r = abx_box_spec_make(c->req->spec, c->origin.point.spec,
				  c->req->from ? NULL : c->config, &c->app->home, &c->spec, err);

	/* Another branch may not have that directory. */
	if (r == 0 && c->subdir && !c->req->snapshot && !c->req->from &&
	    !c->req->seed.from_branch && !c->req->seed.use_branch)
		abx_xreplace(&c->spec.subdir, c->subdir);
	return r < 0 ? r : load_timeout(c, err);
}

static void load_included(struct abx_creating *c)
{
	const char *at = abx_config_get(c->config, "box.include_ignored", NULL);

	if (c->how.include_ignored && c->how.include_ignored->len)
		return;
	while (at) {
		const size_t len = strcspn(at, ",");

		if (len)
			abx_strv_take(&c->included, abx_xstrndup(at, len));
		at = at[len] ? at + len + 1 : NULL;
	}
	c->how.include_ignored = &c->included;
}

/* Which state of the project. */
static int load_seed_options(struct abx_creating *c, struct abx_err *err)
{
	const char *depth = abx_config_get(c->config, "box.depth", NULL);
	const struct abx_seed_options *o = &c->req->seed;
	char shown[200];
	const char *given = o->use_branch    ? "--use-branch"
			    : o->from_branch ? "--from-branch"
			    : o->no_dirty    ? "--no-dirty"
			    : o->skip_lfs    ? "--skip-lfs"
			    : o->depth	     ? "--depth"
					     : NULL;

	c->how = *o;
	c->how.keep_out = c->app->home.path;
	if (o->use_branch && o->from_branch)
		return abx_err_set(err, ABX_EUSAGE,
				   "--use-branch and --from-branch: only one of them");
	if (o->use_branch && !abx_is_branch_name(o->use_branch)) {
		abx_quote_text(o->use_branch, shown, sizeof(shown));
		return abx_err_set(err, ABX_EUSAGE, "--use-branch '%s': not a name for a branch",
				   shown);
	}
	if (c->origin.point.ref && given)
		return abx_err_set(err, ABX_EUSAGE,
				   "%s: a box from a checkpoint has the project of that", given);
	load_included(c);
	if (c->how.include_ignored && c->how.include_ignored->len > ABX_SEED_MAX_GLOBS)
		return abx_err_set(err, ABX_EUSAGE, "--include-ignored: more than %d of them",
				   ABX_SEED_MAX_GLOBS);
	return o->depth || !depth || !*depth ? 0 : abx_parse_depth(depth, &c->how.depth, err);
}

/* "debian:bookworm" is a name whatever lies in the current directory; a plain word is a file
 * when there is one. */
static bool is_path(const char *image)
{
	if (strchr(image, '/') || image[0] == '.')
		return true;
	return !strchr(image, ':') && access(image, F_OK) == 0;
}

/* What was prepared is known by its name; on this machine an image may be a file or a
 * directory; all else is the provider's to understand. */
static int resolve_image(struct abx_creating *c, struct abx_err *err)
{
	const bool local = abx_cloud_caps(c->cloud) & ABX_CAP_LOCAL;
	const char *image =
		c->req->image ? c->req->image : abx_config_get(c->config, "box.image", NULL);
	struct abx_prepared_list prepared = {NULL, 0};
	const struct abx_prepared *found = NULL;
	char shown[256];
	int r = abx_prepared_load(&c->app->home, abx_cloud_name(c->cloud), &prepared, err);

	if (r < 0)
		return r;
	if (image && *image)
		found = abx_prepared_find(&prepared, image);
	else if (!local && !abx_create_has_own_image(c))
		found = abx_prepared_find(&prepared, ABX_PREPARED_DEFAULT);
	if (found)
		c->image = abx_xstrdup(found->ref);
	else if (image && *image && local && is_path(image))
		c->image = realpath(image, NULL);
	else if (image && *image)
		c->image = abx_xstrdup(image);
	r = errno;
	if (found && !(image && *image)) {
		abx_create_judge_base(c, found);
		c->base_from = abx_xstrdup_null(found->from);
	}
	abx_prepared_list_release(&prepared);
	if (c->image || !image || !*image)
		return 0;
	abx_quote_text(image, shown, sizeof(shown));
	return abx_err_errno(err, r, "image '%s'", shown);
}

/* What the provider's table tells already; the rest it refuses itself. */
static bool has_box_option(const struct abx_cloud_backend *t, const char *name)
{
	for (size_t i = 0; t->options && t->options[i]; i++)
		if (strcmp(t->options[i]->name, name) == 0)
			return t->options[i]->flags & ABX_OPT_PER_BOX;
	return false;
}

struct abx_kv *abx_create_options(const struct abx_creating *c, uint32_t *ret_n)
{
	uint32_t n = 0, n_all;
	const struct abx_kv *all = abx_cloud_box_options(c->cloud, &n_all);
	struct abx_kv *options = abx_xcalloc(n_all + 1, sizeof(*options));

	if (c->req->sandbox_id)
		options[n++] = (struct abx_kv){OPTION_SANDBOX, c->req->sandbox_id};
	for (uint32_t i = 0; i < n_all; i++)
		if (!c->req->sandbox_id || strcmp(all[i].key, OPTION_SANDBOX) != 0)
			options[n++] = all[i];
	*ret_n = n;
	return options;
}

static int check_provider(const struct abx_creating *c, struct abx_err *err)
{
	const struct abx_cloud_backend *t = abx_cloud_table(c->cloud);
	const char *what = c->spec.volumes.len && !t->volume_ensure ? "keep volumes"
			   : c->spec.n_ports && !t->url ? "make the ports of a box reachable"
			   : c->spec.read_only && !(t->caps & ABX_CAP_READ_ONLY)
				   ? "keep a box from writing to its workspace (--readonly)"
			   : c->req->sandbox_id && !has_box_option(t, OPTION_SANDBOX)
				   ? "use a sandbox that is there already (--sandbox-id)"
				   : NULL;

	if (!what)
		return 0;
	(void)abx_err_set(err, ABX_ENOTSUP, "provider '%s': cannot %s", abx_cloud_name(c->cloud),
			  what);
	return abx_err_remedy(err, "leave it out, or choose another --provider");
}

/* It is enforced outside of the box, whatever a program there is told. */
static void warn_proxies(const struct abx_creating *c)
{
	static const char *const names[] = {"http_proxy", "https_proxy", "all_proxy", "no_proxy"};

	if (!c->spec.has_egress || c->spec.egress.all)
		return;
	for (size_t i = 0; i < c->env.len; i++)
		for (size_t k = 0; k < ABX_N_ELEMENTS(names); k++)
			if (strcasecmp(c->env.items[i].key, names[k]) == 0)
				abx_warn("%s is set in the box, and its egress is restricted: the "
					 "variable opens nothing, and what it names must be "
					 "allowed too",
					 c->env.items[i].key);
}

/* The one that was named, that has the checkpoint, that is configured. */
static void choose_provider(struct abx_creating *c, const char *project)
{
	c->provider = c->req->provider;
	if (c->provider)
		return;
	c->provider = abx_config_get(c->config, "box.provider", NULL);
	if (c->req->snapshot && !c->req->from)
		c->elsewhere = abx_origin_elsewhere(c->app, c->provider, project, c->req->snapshot);
	if (c->elsewhere)
		c->provider = c->elsewhere;
}

int abx_create_prepare(struct abx_creating *c, struct abx_err *err)
{
	abx_autofree char *key = NULL;
	int r = abx_workspace_resolve(c->app, c->req->workspace, &c->workspace, &c->subdir, err);

	if (r < 0)
		return r;
	key = abx_project_key(c->workspace);
	r = abx_config_open(&c->app->home, key, c->workspace, &c->config, err);
	if (r == 0 && c->req->name)
		r = abx_check_box_name(c->req->name, err);
	if (r == 0)
		r = load_env(c, err);
	if (r == 0)
		r = abx_create_load_ca(c, err);
	if (r < 0)
		return r;
	choose_provider(c, key);
	r = abx_app_cloud(c->app, c->provider, c->config, &c->cloud, err);
	if (r == 0 && (c->req->snapshot || c->req->from))
		r = abx_origin_find(c->app, c->cloud, key, c->req, &c->origin, err);
	if (r == 0)
		r = load_spec(c, err);
	if (r == 0)
		r = load_seed_options(c, err);
	if (r == 0)
		r = check_provider(c, err);
	if (r == 0)
		r = resolve_image(c, err);
	if (r == 0 && !c->origin.point.ref)
		r = abx_box_spec_check_project(&c->spec, c->workspace, WORKSPACE_IN_BOX, err);
	if (r == 0)
		warn_proxies(c);
	if (r == 0)
		abx_recover_abandoned(c->app, abx_cloud_name(c->cloud));
	return r;
}
