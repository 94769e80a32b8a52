/* SPDX-License-Identifier: MIT */
/* How prune and recover report what they found. */
#include "core/cli/leftovers.h"

static const char *const kinds[] = {
	[ABX_LEFT_BOX] = "box",	    [ABX_LEFT_SANDBOX] = "sandbox",
	[ABX_LEFT_FILES] = "files", [ABX_LEFT_SNAPSHOT] = "snapshot",
	[ABX_LEFT_IMAGE] = "image", [ABX_LEFT_RESOURCE] = "resource",
};

static void add_json(cJSON *doc, const struct abx_leftover *one)
{
	cJSON *o = cJSON_CreateObject();

	abx_json_text(o, "kind", kinds[one->kind]);
	abx_json_text(o, "provider", one->provider);
	abx_json_text(o, "name", one->name);
	abx_json_text(o, "id", one->id);
	abx_json_text(o, "done", one->done);
	abx_json_text(o, "problem", one->problem);
	(void)cJSON_AddItemToArray(doc, o);
}

static void print_one(const struct abx_leftover *one)
{
	(void)printf("%s %s%s%s%s%s: %s\n", kinds[one->kind], one->name ? one->name : "",
		     one->name ? " " : "", one->id, one->provider ? " at " : "",
		     one->provider ? one->provider : "",
		     one->problem ? one->problem
		     : one->done  ? one->done
				  : "left behind");
}

int abx_leftovers_report(struct abx_cli *cli, const struct abx_leftovers *found,
			 struct abx_err *err)
{
	cJSON *doc = cli->json ? cJSON_CreateArray() : NULL;
	size_t n_problems = 0;
	int r;

	for (size_t i = 0; i < found->len; i++) {
		if (doc)
			add_json(doc, &found->items[i]);
		else
			print_one(&found->items[i]);
		n_problems += found->items[i].problem != NULL;
	}
	if (doc)
		r = abx_out_json(doc, err);
	else if (!found->len)
		r = abx_out_line(err, "nothing was left behind");
	else
		r = 0;
	if (r == 0 && n_problems)
		return abx_err_set(err, ABX_EIO, "%zu of %zu could not be dealt with", n_problems,
				   found->len);
	return r;
}
