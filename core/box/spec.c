/* SPDX-License-Identifier: MIT */
/* What a box is given beyond its project. */
#include "core/box/spec.h"

#include <string.h>

#include "core/box/spec-parse.h"
#include "core/util/mem.h"
#include "core/util/parse.h"

static void mounts_release(struct abx_spec_mounts *m)
{
	for (size_t i = 0; i < m->len; i++) {
		free(m->items[i].source);
		free(m->items[i].target);
	}
	free(m->items);
	memset(m, 0, sizeof(*m));
}

void abx_box_spec_release(struct abx_box_spec *s)
{
	abx_egress_release(&s->egress);
	mounts_release(&s->mounts);
	mounts_release(&s->volumes);
	free(s->ports);
	free(s->size);
	free(s->subdir);
	free(s->location);
	memset(s, 0, sizeof(*s));
}

/* A value and where it came from, for the text of an error. */
struct value {
	const char *text, *name;
	bool is_option;
};

/* What the user wrote, else what the copied box has, else what is configured. */
static struct value choose(const char *arg, const char *option, bool has,
			   const struct abx_config *config, const char *key)
{
	struct value v = {arg, option, true};

	if (!arg && !has && config) {
		v.text = abx_config_get(config, key, /* ret_source= */ NULL);
		v.name = key;
		v.is_option = false;
	}
	if (v.text && !*v.text)
		v.text = NULL;
	return v;
}

static int blame(const struct value *v, int r, struct abx_err *err)
{
	if (r >= 0)
		return r;
	(void)abx_err_wrap(err, "%s%s", v->is_option ? "--" : "", v->name);
	if (!v->is_option || r != ABX_EINVAL)
		return r;
	if (err)
		err->code = ABX_EUSAGE;
	return ABX_EUSAGE;
}

static int take_egress(const struct value *v, struct abx_box_spec *s, struct abx_err *err)
{
	struct abx_egress e;
	int r = blame(v, abx_egress_parse(v->text, &e, err), err);

	if (r < 0)
		return r;
	abx_egress_release(&s->egress);
	s->egress = e;
	s->has_egress = true;
	return 0;
}

static int take_size(const struct value *v, uint64_t least, uint64_t *ret, struct abx_err *err)
{
	uint64_t bytes = 0;
	int r = abx_parse_size_bytes(v->text, &bytes, err);

	if (r == 0 && bytes < least)
		r = abx_err_set(err, ABX_EINVAL, "'%.40s' is too little: at least %lluM", v->text,
				(unsigned long long)(least >> 20));
	if (r < 0)
		return blame(v, r, err);
	*ret = bytes;
	return 0;
}

static int take_pids(const struct value *v, uint32_t *ret, struct abx_err *err)
{
	uint64_t n;

	if (!abx_parse_u64(v->text, 4194304, &n) || !n)
		return blame(v,
			     abx_err_set(err, ABX_EINVAL, "'%.40s' is not a number of processes",
					 v->text),
			     err);
	*ret = (uint32_t)n;
	return 0;
}

static int take_cpu(const struct value *v, uint32_t *ret, struct abx_err *err)
{
	return blame(v, abx_parse_cpu_milli(v->text, ret, err), err);
}

#define LEAST_MEMORY_BYTES (UINT64_C(16) << 20)
#define LEAST_DISK_BYTES (UINT64_C(1) << 20)

static int take_limits(const struct abx_spec_args *a, const struct abx_config *config,
		       struct abx_box_spec *s, struct abx_err *err)
{
	const struct value egress =
		choose(a->egress, "egress", s->has_egress, config, "box.egress");
	const struct value cpu = choose(a->cpu, "cpu", s->cpu_milli, config, "box.cpu");
	const struct value memory = choose(a->memory, "memory", s->mem_bytes, config, "box.memory");
	const struct value disk = choose(a->disk, "disk", s->disk_bytes, config, "box.disk");
	const struct value pids = choose(a->pids, "pids", s->max_pids, config, "box.pids");
	const struct value size = choose(a->size, "size", s->size, config, "box.size");
	const struct value location =
		choose(a->location, "location", s->location, config, "box.location");
	int r = 0;

	if (egress.text)
		r = take_egress(&egress, s, err);
	if (r == 0 && cpu.text)
		r = take_cpu(&cpu, &s->cpu_milli, err);
	if (r == 0 && memory.text)
		r = take_size(&memory, LEAST_MEMORY_BYTES, &s->mem_bytes, err);
	if (r == 0 && disk.text)
		r = take_size(&disk, LEAST_DISK_BYTES, &s->disk_bytes, err);
	if (r == 0 && pids.text)
		r = take_pids(&pids, &s->max_pids, err);
	if (r == 0 && size.text)
		abx_xreplace(&s->size, size.text);
	if (r == 0 && location.text)
		abx_xreplace(&s->location, location.text);
	return r;
}

static int take_ports(const struct value *v, struct abx_box_spec *s, struct abx_err *err)
{
	for (const char *at = v->text; at;) {
		size_t len = strcspn(at, ",");
		abx_autofree char *one = abx_xstrndup(at, len);
		int r = abx_spec_add_port(s, one, err);

		if (r < 0)
			return blame(v, r, err);
		at = at[len] ? at + len + 1 : NULL;
	}
	return 0;
}

static int take_volumes(const struct value *v, struct abx_box_spec *s, struct abx_err *err)
{
	for (const char *at = v->text; at;) {
		size_t len = strcspn(at, ",");
		abx_autofree char *one = abx_xstrndup(at, len);
		int r = abx_spec_add_volume(s, one, err);

		if (r < 0)
			return blame(v, r, err);
		at = at[len] ? at + len + 1 : NULL;
	}
	return 0;
}

/* Lists: what is given replaces what is configured, as everywhere. */
static int take_lists(const struct abx_spec_args *a, const struct abx_config *config,
		      const struct abx_home *home, struct abx_box_spec *s, struct abx_err *err)
{
	const struct value option = {"", "mount", true};
	const size_t n_mounts = a->mounts ? a->mounts->len : 0;
	struct value v = choose(NULL, NULL, s->n_ports, config, "box.ports");
	int r = 0;

	if (a->ports && a->ports->len) {
		s->n_ports = 0;
		v = (struct value){NULL, "port", true};
	}
	for (size_t i = 0; a->ports && i < a->ports->len && r == 0; i++) {
		v.text = a->ports->items[i];
		r = take_ports(&v, s, err);
	}
	if (r == 0 && !v.is_option && v.text)
		r = take_ports(&v, s, err);
	v = choose(NULL, NULL, s->volumes.len, config, "box.volumes");
	if (a->volumes && a->volumes->len) {
		mounts_release(&s->volumes);
		v = (struct value){NULL, "volume", true};
	}
	for (size_t i = 0; a->volumes && i < a->volumes->len && r == 0; i++)
		r = blame(&v, abx_spec_add_volume(s, a->volumes->items[i], err), err);
	if (r == 0 && !v.is_option && v.text)
		r = take_volumes(&v, s, err);
	if (n_mounts)
		mounts_release(&s->mounts);
	for (size_t i = 0; i < n_mounts && r == 0; i++)
		r = blame(&option, abx_spec_add_mount(s, a->mounts->items[i], home, err), err);
	return r < 0 ? r : abx_spec_check_targets(s, err);
}

static int take_flags(const struct abx_spec_args *a, const struct abx_config *config,
		      struct abx_box_spec *s, struct abx_err *err)
{
	const char *text = config ? abx_config_get(config, "box.readonly", NULL) : NULL;
	bool on = false;
	int r = 0;

	if (text && *text)
		r = abx_parse_bool(text, &on, err);
	s->read_only = s->read_only || on || a->read_only;
	s->private_urls = s->private_urls || a->private_urls;
	return r;
}

int abx_box_spec_make(const struct abx_spec_args *args, const char *base,
		      const struct abx_config *config, const struct abx_home *home,
		      struct abx_box_spec *ret, struct abx_err *err)
{
	static const struct abx_spec_args none = {0};
	struct abx_box_spec s = {0};
	int r = 0;

	if (!args)
		args = &none;
	if (base)
		r = abx_box_spec_parse(base, &s, err);
	if (r == 0)
		r = take_limits(args, config, &s, err);
	if (r == 0)
		r = take_lists(args, config, home, &s, err);
	if (r == 0)
		r = take_flags(args, config, &s, err);
	if (r < 0) {
		abx_box_spec_release(&s);
		return r;
	}
	*ret = s;
	return 0;
}

bool abx_box_spec_has_mounts(const char *json)
{
	struct abx_box_spec s = {0};
	bool has;

	if (!json || abx_box_spec_parse(json, &s, NULL) < 0)
		return false;
	has = s.mounts.len || s.volumes.len;
	abx_box_spec_release(&s);
	return has;
}

int abx_box_spec_drop_mounts(char **json, struct abx_err *err)
{
	struct abx_box_spec s = {0};
	int r = abx_box_spec_parse(*json, &s, err);

	if (r < 0)
		return r;
	mounts_release(&s.mounts);
	mounts_release(&s.volumes);
	free(*json);
	*json = abx_box_spec_json(&s);
	abx_box_spec_release(&s);
	return 0;
}

void abx_spec_lists_release(struct abx_spec_lists *l)
{
	free(l->mounts);
	free(l->mount_list);
	free(l->volumes);
	memset(l, 0, sizeof(*l));
}

void abx_box_spec_fill(const struct abx_box_spec *s, const struct abx_strv *volume_ids,
		       struct abx_spec_lists *lists, struct abx_provision *req)
{
	lists->mounts = abx_xcalloc(s->mounts.len + 1, sizeof(*lists->mounts));
	lists->mount_list = abx_xcalloc(s->mounts.len + 1, sizeof(*lists->mount_list));
	lists->volumes = abx_xcalloc(s->volumes.len + 1, sizeof(*lists->volumes));
	for (size_t i = 0; i < s->mounts.len; i++) {
		const struct abx_spec_mount *m = &s->mounts.items[i];

		lists->mounts[i] = (struct abx_mount){ABX_INIT(struct abx_mount),
						      m->read_only ? ABX_MOUNT_READ_ONLY : 0,
						      m->source, m->target};
		lists->mount_list[i] = &lists->mounts[i];
	}
	for (size_t i = 0; i < s->volumes.len; i++)
		lists->volumes[i] =
			(struct abx_kv){volume_ids->items[i], s->volumes.items[i].target};
	req->mounts = lists->mount_list;
	req->n_mounts = (uint32_t)s->mounts.len;
	req->volumes = lists->volumes;
	req->n_volumes = (uint32_t)s->volumes.len;
	req->ports = s->ports;
	req->n_ports = s->n_ports;
	req->egress_allow = s->has_egress ? abx_egress_list(&s->egress) : NULL;
	req->cpu_milli = s->cpu_milli;
	req->max_pids = s->max_pids;
	req->mem_bytes = s->mem_bytes;
	req->disk_bytes = s->disk_bytes;
	req->size = s->size;
	req->location = s->location;
	req->flags |= s->private_urls ? ABX_PROV_PRIVATE_URLS : 0;
}

struct abx_start_req abx_box_start_req(const struct abx_box *box)
{
	struct abx_start_req req = {ABX_INIT(struct abx_start_req)};
	struct abx_box_spec s = {0};
	/* A record that cannot be read must not make a read-only box writable. */
	bool read_only = abx_box_spec_parse(box->spec, &s, NULL) < 0 || s.read_only;

	req.flags = read_only ? ABX_START_READ_ONLY : 0;
	req.timeout_ms = s.timeout_ms;
	abx_box_spec_release(&s);
	return req;
}

char *abx_box_spec_cwd(const struct abx_box_spec *s)
{
	return s->subdir ? abx_xasprintf("/workspace/%s", s->subdir) : NULL;
}
