/* SPDX-License-Identifier: MIT */
/* A box on stdout. */
#include "core/box/spec.h"
#include "core/cli/cmd.h"
#include "core/util/mem.h"

/* What is not limited is null. */
static void add_number(cJSON *o, const char *key, double n)
{
	if (n > 0)
		(void)cJSON_AddNumberToObject(o, key, n);
	else
		(void)cJSON_AddNullToObject(o, key);
}

static void add_mounts(cJSON *o, const char *key, const char *source_key,
		       const struct abx_spec_mounts *m, bool with_mode)
{
	cJSON *list = cJSON_AddArrayToObject(o, key);

	for (size_t i = 0; i < m->len; i++) {
		cJSON *one = cJSON_CreateObject();

		abx_json_text(one, source_key, m->items[i].source);
		abx_json_text(one, "target", m->items[i].target);
		if (with_mode)
			(void)cJSON_AddBoolToObject(one, "read_only", m->items[i].read_only);
		(void)cJSON_AddItemToArray(list, one);
	}
}

static void add_spec(cJSON *o, const struct abx_box_spec *s)
{
	abx_autofree char *egress = s->has_egress ? abx_egress_text(&s->egress) : NULL;
	cJSON *limits, *ports;

	abx_json_text(o, "egress", egress);
	limits = cJSON_AddObjectToObject(o, "limits");
	add_number(limits, "cpu", (double)s->cpu_milli / 1000);
	add_number(limits, "memory_bytes", (double)s->mem_bytes);
	add_number(limits, "disk_bytes", (double)s->disk_bytes);
	add_number(limits, "pids", s->max_pids);
	add_mounts(o, "mounts", "source", &s->mounts, true);
	add_mounts(o, "volumes", "name", &s->volumes, false);
	ports = cJSON_AddArrayToObject(o, "ports");
	for (uint32_t i = 0; i < s->n_ports; i++)
		(void)cJSON_AddItemToArray(ports, cJSON_CreateNumber(s->ports[i]));
	(void)cJSON_AddBoolToObject(o, "read_only", s->read_only);
	abx_json_text(o, "size", s->size);
	abx_json_text(o, "location", s->location);
}

cJSON *abx_json_box(const struct abx_box *box)
{
	cJSON *o = cJSON_CreateObject();
	struct abx_box_spec spec = {0};

	abx_json_text(o, "id", box->id);
	abx_json_text(o, "name", box->name);
	(void)cJSON_AddNumberToObject(o, "index", box->index);
	abx_json_text(o, "provider", box->provider);
	abx_json_text(o, "sandbox_id", box->sandbox_id);
	abx_json_text(o, "account", box->account);
	abx_json_text(o, "state", abx_box_state_name(box->state));
	abx_json_text(o, "project", box->project);
	abx_json_text(o, "workspace", box->workspace);
	abx_json_text(o, "branch", box->branch);
	abx_json_text(o, "base_commit", box->base_commit);
	abx_json_time(o, "created_at", box->created_at_ms);
	abx_json_time(o, "expires_at", box->expires_at_ms);
	abx_json_text(o, "checkpoint", box->checkpoint);
	if (abx_box_spec_parse(box->spec, &spec, NULL) == 0)
		add_spec(o, &spec);
	abx_box_spec_release(&spec);
	(void)cJSON_AddArrayToObject(o, "urls");
	(void)cJSON_AddArrayToObject(o, "agents");
	return o;
}
