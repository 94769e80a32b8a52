/* SPDX-License-Identifier: MIT */
/* The table that a plugin returns, checked and copied. */
#include "core/host/descriptor.h"

#include <string.h>

#include "core/host/hostapi.h"
#include "core/host/text.h"
#include "core/util/parse.h"

#define MIN_BYTES                                            \
	(offsetof(struct abx_cloud_backend, volume_delete) + \
	 sizeof(((struct abx_cloud_backend *)0)->volume_delete))
#define MAX_OPTIONS 128
#define MAX_TEXT_BYTES 1024

#define OP(name, required)                                                \
	{                                                                 \
#name, offsetof(struct abx_cloud_backend, name), required \
	}
const struct abx_op_info abx_op_infos[] = {
	OP(init, true),
	OP(fini, false),
	OP(session_open, true),
	OP(session_close, true),
	OP(verify, false),
	OP(doctor, false),
	OP(choices, false),
	OP(command, false),
	OP(prepare, false),
	OP(image_list, false),
	OP(image_delete, false),
	OP(provision, true),
	OP(get, true),
	OP(list, true),
	OP(start, true),
	OP(stop, true),
	OP(pause, false),
	OP(resume, false),
	OP(destroy, true),
	OP(renew, false),
	OP(watch, false),
	OP(stats, false),
	OP(logs, false),
	OP(rates, false),
	OP(usage, false),
	OP(resource_list, false),
	OP(resource_delete, false),
	OP(exec, true),
	OP(exec_attach, false),
	OP(exec_signal, false),
	OP(ssh, false),
	OP(upload, true),
	OP(download, true),
	OP(put_tar, false),
	OP(get_tar, false),
	OP(list_files, false),
	OP(url, false),
	OP(set_egress, false),
	OP(set_inbound, false),
	OP(repair, false),
	OP(snapshot_create, false),
	OP(snapshot_list, false),
	OP(snapshot_exists, false),
	OP(snapshot_delete, false),
	OP(volume_ensure, false),
	OP(volume_list, false),
	OP(volume_delete, false),
	{NULL, 0, false},
};

bool abx_descriptor_has(const struct abx_cloud_backend *table, const struct abx_op_info *op)
{
	void (*fn)(void);

	memcpy(&fn, (const char *)table + op->offset, sizeof(fn));
	return fn != NULL;
}

struct check {
	const struct abx_elfnote *note;
	const char *path;
	struct abx_err *err;
};

static int broken(const struct check *c, const char *fmt, ...) ABX_PRINTF(2, 3);

static int broken(const struct check *c, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	(void)abx_err_set(c->err, ABX_EPROVIDER, "%s: provider '%s' %s", c->path, c->note->name,
			  text);
	return abx_err_remedy(c->err, "reinstall it");
}

static bool text_ok(const char *text, bool required)
{
	if (!text)
		return !required;
	return strnlen(text, MAX_TEXT_BYTES) < MAX_TEXT_BYTES && (!required || *text);
}

/* As a key of configuration: [a-z][a-z0-9_-]* */
static bool option_name_ok(const char *name)
{
	if (!text_ok(name, true) || strlen(name) > 63 || name[0] < 'a' || name[0] > 'z')
		return false;
	return name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-")] == '\0';
}

static bool env_name_ok(const char *name)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

	return !name || (text_ok(name, true) && name[strspn(name, allowed)] == '\0');
}

static int check_options(const struct check *c, const struct abx_cloud_backend *t)
{
	const size_t min = offsetof(struct abx_option, dflt) + sizeof(char *);

	for (size_t i = 0; t->options && t->options[i]; i++) {
		const struct abx_option *o = t->options[i];

		if (i == MAX_OPTIONS)
			return broken(c, "has more than %d options", MAX_OPTIONS);
		if (o->struct_size < min || o->struct_size > ABX_STRUCT_MAX_BYTES)
			return broken(c, "has an option of an impossible size");
		if (!option_name_ok(o->name))
			return broken(c, "has an option without a proper name");
		if (o->type < ABX_OPT_STRING || o->type > ABX_OPT_LIST)
			return broken(c, "has option '%s' of an unknown type", o->name);
		if (!env_name_ok(o->env) || !text_ok(o->help, false) || !text_ok(o->dflt, false))
			return broken(c, "has option '%s' with a broken text", o->name);
	}
	return 0;
}

static int check_commands(const struct check *c, const struct abx_cloud_backend *t)
{
	const size_t min = offsetof(struct abx_command, help) + sizeof(char *);

	for (size_t i = 0; t->commands && t->commands[i]; i++) {
		const struct abx_command *cmd = t->commands[i];

		if (i == MAX_OPTIONS)
			return broken(c, "has more than %d commands", MAX_OPTIONS);
		if (cmd->struct_size < min || cmd->struct_size > ABX_STRUCT_MAX_BYTES)
			return broken(c, "has a command of an impossible size");
		if (!option_name_ok(cmd->name) || !text_ok(cmd->usage, false) ||
		    !text_ok(cmd->help, false))
			return broken(c, "has a command with a broken text");
	}
	return 0;
}

/* The frozen prefix: what may be read before the size is known to be right. */
static int check_prefix(const struct check *c, const struct abx_cloud_backend *p)
{
	if (!p)
		return broken(c, "returned no table");
	if (p->magic != ABX_ABI_MAGIC)
		return broken(c, "returned a table with a wrong magic number");
	if (p->struct_size < MIN_BYTES || p->struct_size > ABX_STRUCT_MAX_BYTES)
		return broken(c, "returned a table of %u bytes; %zu to %d are possible",
			      p->struct_size, MIN_BYTES, ABX_STRUCT_MAX_BYTES);
	if (p->abi_major != c->note->abi_major || p->abi_minor != c->note->abi_minor ||
	    p->abi_minor_min != c->note->abi_minor_min)
		return broken(c, "was built for ABI %u.%u but its note says %u.%u", p->abi_major,
			      p->abi_minor, c->note->abi_major, c->note->abi_minor);
	if (!text_ok(p->name, true) || strcmp(p->name, c->note->name) != 0)
		return broken(c, "has another name in its table than in its note");
	if (!text_ok(p->version, true) || strcmp(p->version, c->note->version) != 0)
		return broken(c, "has another version in its table than in its note");
	return 0;
}

int abx_descriptor_take(const struct abx_cloud_backend *theirs, const struct abx_elfnote *note,
			const char *path, struct abx_cloud_backend *ret, struct abx_err *err)
{
	const struct check c = {note, path, err};
	struct abx_cloud_backend t;
	uint64_t lacking;
	int r = check_prefix(&c, theirs);

	if (r < 0)
		return r;
	memset(&t, 0, sizeof(t));
	memcpy(&t, theirs, theirs->struct_size < sizeof(t) ? theirs->struct_size : sizeof(t));
	t.struct_size = (uint32_t)sizeof(t);
	for (const struct abx_op_info *op = abx_op_infos; op->name; op++)
		if (op->required && !abx_descriptor_has(&t, op))
			return broken(&c, "lacks the required operation '%s'", op->name);
	if (t.thread_model < ABX_THREADS_SERIAL)
		return broken(&c, "has an unknown thread model");
	if (!text_ok(t.summary, true) || !text_ok(t.homepage, false))
		return broken(&c, "has no proper summary or homepage");
	lacking = t.host_caps_required & ~abx_hostapi()->caps;
	if (lacking) {
		(void)broken(&c, "needs capabilities (0x%llx) that this agentbox lacks",
			     (unsigned long long)lacking);
		return abx_err_remedy(err, "upgrade agentbox");
	}
	r = check_options(&c, &t);
	if (r == 0)
		r = check_commands(&c, &t);
	if (r == 0)
		*ret = t;
	return r;
}
