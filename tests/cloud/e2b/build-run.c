/* SPDX-License-Identifier: MIT */
/* The emulated E2B: a template is built, its steps in a sandbox. */
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "abxsdk/json.h"
#include "core/util/clock.h"
#include "core/util/mem.h"
#include "tests/cloud/command.h"
#include "tests/cloud/e2b/process.h"
#include "tests/cloud/e2b/template.h"

#define TEXT_MAX ((size_t)1 << 20)
#define LINE_MAX_BYTES 8192
#define READY_LIMIT_MS 600000
#define READY_POLL_MS 200
#define ARCHIVE "/tmp/.e2b-files.tar.gz"

/* What a step works with, and leaves to the next. */
struct builder {
	struct e2b *e;
	struct e2b_build *build;
	struct e2b_box *box;
	cJSON *env;
	char step[16]; /* "base", a number from 1 on, "finalize" */
	char prefix[48];
	struct abx_buf lines[2];
	struct abx_err err; /* why the step failed */
};

static cJSON *entry(const char *level, const char *step, const char *text)
{
	cJSON *o = cJSON_CreateObject();
	char now[40];

	e2b_time(abx_wall_ms(), now);
	(void)abx_json_add_str(o, "timestamp", now);
	(void)abx_json_add_str(o, "level", level);
	(void)abx_json_add_str(o, "message", text);
	(void)abx_json_add_str(o, "step", step);
	return o;
}

static void say(struct builder *x, const char *level, const char *text)
{
	(void)pthread_mutex_lock(&x->e->lock);
	(void)cJSON_AddItemToArray(x->build->log, entry(level, x->step, text));
	(void)pthread_mutex_unlock(&x->e->lock);
}

static void say_line(struct builder *x, char stream, struct abx_buf *line)
{
	char *text = abx_xasprintf("%s [%s]: %s", x->prefix,
				   stream == AGENT_STDOUT ? "stdout" : "stderr", abx_buf_str(line));

	say(x, stream == AGENT_STDOUT ? "info" : "warn", text);
	free(text);
	abx_buf_reset(line);
}

static void on_output(void *ctx, char stream, const char *data, size_t len)
{
	struct builder *x = ctx;
	struct abx_buf *line = &x->lines[stream == AGENT_STDERR];

	for (size_t i = 0; i < len; i++) {
		if (data[i] != '\n' && data[i])
			abx_buf_add(line, &data[i], 1);
		if (data[i] == '\n' || line->len + 1 >= LINE_MAX_BYTES)
			say_line(x, stream, line);
	}
}

static void collect(void *ctx, char stream, const char *data, size_t len)
{
	if (stream == AGENT_STDOUT)
		abx_buf_add(ctx, data, len);
}

/* As `user`; its output is the build's log. */
static int run(struct builder *x, const char *user, const char *const *argv)
{
	const struct emu_command c = {
		.user = user,
		.cwd = x->build->boot.cwd,
		.argv = argv,
		.env = x->env,
		.output = on_output,
		.ctx = x,
	};
	int code = 0, r = emu_command(x->e->engine, x->box->id, &c, &code, &x->err);

	if (x->lines[0].len)
		say_line(x, AGENT_STDOUT, &x->lines[0]);
	if (x->lines[1].len)
		say_line(x, AGENT_STDERR, &x->lines[1]);
	if (r == 0 && code)
		r = abx_err_set(&x->err, ABX_EINVAL, "exit status %d", code);
	return r;
}

/* A script of our own, by root, with words. */
static int script(struct builder *x, const char *text, const char *a, const char *b, const char *c,
		  const char *d)
{
	const char *const argv[] = {"sh", "-euc", text, "sh", a, b, c, d, NULL};

	return run(x, "root", argv);
}

static const char *arg(const cJSON *args, int i)
{
	const cJSON *item = cJSON_GetArrayItem(args, i);

	return cJSON_IsString(item) ? item->valuestring : "";
}

static int step_run(struct builder *x, const cJSON *args)
{
	const char *user = *arg(args, 1) ? arg(args, 1) : x->build->boot.user;
	const char *const argv[] = {"/bin/bash", "-l", "-c", arg(args, 0), NULL};
	char *command = abx_xstrndup(arg(args, 0), 200);
	int r = run(x, user, argv);

	if (r < 0) {
		char why[sizeof(x->err.text)];

		(void)snprintf(why, sizeof(why), "%s", x->err.text);
		r = abx_err_set(&x->err, r, "failed to run command '%s': %s", command, why);
	}
	free(command);
	return r;
}

/* Variables of earlier steps count. */
static int step_env(struct builder *x, const cJSON *args)
{
	for (int i = 0; *arg(args, i); i += 2) {
		abx_auto(abx_buf) struct abx_buf value = ABX_BUF_INIT(TEXT_MAX);
		char *text = abx_xasprintf("printf %%s \"%s\"", arg(args, i + 1));
		const char *const argv[] = {"/bin/bash", "-c", text, NULL};
		const struct emu_command c = {
			.user = x->build->boot.user,
			.argv = argv,
			.env = x->env,
			.output = collect,
			.ctx = &value,
		};
		int code = 0, r = emu_command(x->e->engine, x->box->id, &c, &code, &x->err);

		free(text);
		if (r < 0)
			return r;
		cJSON_DeleteItemFromObjectCaseSensitive(x->env, arg(args, i));
		(void)abx_json_add_str(x->env, arg(args, i), abx_buf_str(&value));
	}
	return 0;
}

/* Absolute, or from where the build is. */
static char *resolve(const struct builder *x, const char *path)
{
	const char *cwd = x->build->boot.cwd;

	return *path == '/' ? abx_xstrdup(path)
			    : abx_xasprintf("%s/%s", cwd ? cwd : "/home/user", path);
}

static int step_workdir(struct builder *x, const cJSON *args)
{
	static const char text[] = "[ -d \"$1\" ] || { mkdir -p \"$1\"; chown \"$2:\" \"$1\"; }\n";
	char *path = resolve(x, arg(args, 0));
	int r = script(x, text, path, x->build->boot.user, NULL, NULL);

	if (r < 0) {
		free(path);
		return r;
	}
	(void)pthread_mutex_lock(&x->e->lock);
	free(x->build->boot.cwd);
	x->build->boot.cwd = path;
	(void)pthread_mutex_unlock(&x->e->lock);
	return 0;
}

static int step_user(struct builder *x, const cJSON *args)
{
	static const char text[] =
		"if ! grep -q \"^$1:\" /etc/passwd; then\n"
		"	n=$(awk -F: '$3 >= 1000 && $3 < 60000 && $3 > n { n = $3 }\n"
		"		END { print (n ? n : 1000) + 1 }' /etc/passwd)\n"
		"	echo \"$1:x:$n:$n::/home/$1:/bin/bash\" >>/etc/passwd\n"
		"	echo \"$1:x:$n:\" >>/etc/group\n"
		"	mkdir -p \"/home/$1\"; chown \"$n:$n\" \"/home/$1\"\n"
		"fi\n"
		"if [ -n \"$2\" ] && [ -d /etc/sudoers.d ]; then\n"
		"	echo \"$1 ALL=(ALL) NOPASSWD:ALL\" >\"/etc/sudoers.d/$1\"\n"
		"fi\n";
	const char *name = arg(args, 0);
	int r;

	if (!*name || strlen(name) >= sizeof(x->build->boot.user) ||
	    strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-") != strlen(name))
		return abx_err_set(&x->err, ABX_EINVAL, "invalid user '%.64s'", name);
	r = script(x, text, name, strcmp(arg(args, 1), "true") == 0 ? "sudo" : "", NULL, NULL);
	if (r == 0) {
		(void)pthread_mutex_lock(&x->e->lock);
		(void)snprintf(x->build->boot.user, sizeof(x->build->boot.user), "%s", name);
		(void)pthread_mutex_unlock(&x->e->lock);
	}
	return r;
}

static int put_archive(struct builder *x, const char *hash)
{
	static const char *const args[] = {"put", "root", ARCHIVE, NULL};
	abx_autoclose int fd = e2b_file_open(x->e, hash);
	const struct emu_exec exec = {.args = args, .in_fd = fd};
	int code = 0, r;

	if (fd < 0)
		return abx_err_set(&x->err, ABX_ENOTFOUND, "files '%.64s' were not uploaded", hash);
	r = emu_exec(x->e->engine, x->box->id, &exec, &code, &x->err);
	if (r == 0 && code)
		r = abx_err_set(&x->err, ABX_EINTERNAL, "the files cannot be put");
	return r;
}

/* The contents of a directory go into the destination; a file becomes it, or goes into it when
 * it is a directory or said to be one. */
static int step_copy(struct builder *x, const cJSON *args, const char *hash)
{
	static const char text[] = "d=$(mktemp -d)\n"
				   "trap 'rm -rf \"$d\" " ARCHIVE "' EXIT\n"
				   "tar -xzf " ARCHIVE " -C \"$d\"\n"
				   "cd \"$d\"\n"
				   "chown -R -h \"$3:\" .\n"
				   "[ -z \"$4\" ] || chmod -R \"$4\" .\n"
				   "n=0\n"
				   "for f in $1; do\n"
				   "	[ -e \"$f\" ] || [ -L \"$f\" ] || continue\n"
				   "	n=$((n + 1))\n"
				   "done\n"
				   "[ $n -gt 0 ] || { echo \"$1: no such file\" >&2; exit 1; }\n"
				   "to=$2\n"
				   "for f in $1; do\n"
				   "	if [ -d \"$f\" ] && ! [ -L \"$f\" ]; then\n"
				   "		mkdir -p \"$to\"; cp -a \"$f/.\" \"$to/\"\n"
				   "		continue\n"
				   "	fi\n"
				   "	case $to in\n"
				   "	*/) dir=$to ;;\n"
				   "	*) [ $n -gt 1 ] || [ -d \"$to\" ] && dir=$to/ || dir= ;;\n"
				   "	esac\n"
				   "	if [ -n \"$dir\" ]; then mkdir -p \"$dir\"; else mkdir -p "
				   "\"$(dirname \"$to\")\"; fi\n"
				   "	cp -a \"$f\" \"$to\"\n"
				   "done\n";
	const char *user = *arg(args, 2) ? arg(args, 2) : x->build->boot.user;
	char *to = resolve(x, arg(args, 1));
	const char *from = arg(args, 0);
	int r;

	while (*from == '/')
		from++;
	r = put_archive(x, hash);
	if (r == 0 && !emu_engine_light(x->e->engine))
		r = script(x, text, *from ? from : ".", to, user, arg(args, 3));
	free(to);
	return r;
}

static int step(struct builder *x, const cJSON *doc)
{
	const cJSON *args = cJSON_GetObjectItemCaseSensitive(doc, "args");
	const char *type = "", *hash = "";

	(void)abx_json_str(doc, "type", 16, &type);
	(void)abx_json_str(doc, "filesHash", 256, &hash);
	if (strcmp(type, "RUN") == 0)
		return step_run(x, args);
	if (strcmp(type, "ENV") == 0 || strcmp(type, "ARG") == 0)
		return step_env(x, args);
	if (strcmp(type, "WORKDIR") == 0)
		return step_workdir(x, args);
	if (strcmp(type, "USER") == 0)
		return step_user(x, args);
	if (strcmp(type, "COPY") == 0 || strcmp(type, "ADD") == 0)
		return step_copy(x, args, hash);
	return abx_err_set(&x->err, ABX_EINVAL, "unknown step '%s'", type);
}

/* "[builder 2/3] RUN make" */
static void announce(struct builder *x, const cJSON *doc, int at, int n)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(TEXT_MAX);
	const cJSON *i;
	const char *type = "";

	(void)abx_json_str(doc, "type", 16, &type);
	(void)snprintf(x->step, sizeof(x->step), "%d", at);
	(void)snprintf(x->prefix, sizeof(x->prefix), "[builder %d/%d]", at, n);
	abx_buf_addf(&b, "%s %s", x->prefix, type);
	cJSON_ArrayForEach(i, cJSON_GetObjectItemCaseSensitive(doc, "args"))
		if (cJSON_IsString(i))
			abx_buf_addf(&b, " %s", i->valuestring);
	say(x, "info", abx_buf_str(&b));
}

static int run_steps(struct builder *x)
{
	const cJSON *steps = cJSON_GetObjectItemCaseSensitive(x->build->request, "steps"), *i;
	int n = cJSON_GetArraySize(steps), at = 1, r = 0;

	cJSON_ArrayForEach(i, steps) {
		announce(x, i, at++, n);
		r = step(x, i);
		if (r < 0)
			break;
	}
	return r;
}

/* The sandbox to build in. */
static int make_box(struct builder *x)
{
	const char *template = NULL;
	struct e2b_boot boot, *mine = &x->build->boot;
	struct emu_box_options o = {.snapshot = NULL};
	char id[24], alias[64];
	int r;

	e2b_boot_init(&boot);
	(void)abx_json_str(x->build->request, "fromTemplate", 256, &template);
	if (template && !e2b_boot_find(x->e, template, &boot, id, alias))
		return abx_err_set(&x->err, ABX_ENOTFOUND, "template '%.128s' not found", template);
	(void)pthread_mutex_lock(&x->e->lock);
	(void)snprintf(mine->user, sizeof(mine->user), "%s", boot.user);
	mine->cwd = abx_xstrdup_null(boot.cwd);
	(void)pthread_mutex_unlock(&x->e->lock);
	say(x, "info", "[base] FROM");
	o.snapshot = *boot.ref ? boot.ref : NULL;
	/* Whoever ends it waits until it is there. */
	(void)pthread_mutex_lock(&x->box->op);
	r = emu_box_make(x->e->engine, x->box->id, &o, &x->err);
	(void)pthread_mutex_unlock(&x->box->op);
	e2b_boot_release(&boot);
	return r;
}

static void start_command(struct builder *x, const char *command)
{
	cJSON *doc = cJSON_CreateObject(), *p = cJSON_AddObjectToObject(doc, "process"), *list;
	struct e2b_proc *proc;

	(void)abx_json_add_str(p, "cmd", "/bin/bash");
	list = cJSON_AddArrayToObject(p, "args");
	(void)cJSON_AddItemToArray(list, cJSON_CreateString("-l"));
	(void)cJSON_AddItemToArray(list, cJSON_CreateString("-c"));
	(void)cJSON_AddItemToArray(list, cJSON_CreateString(command));
	(void)cJSON_AddItemToObject(p, "envs", cJSON_Duplicate(x->env, true));
	if (x->build->boot.cwd)
		(void)abx_json_add_str(p, "cwd", x->build->boot.cwd);
	(void)abx_json_add_bool(doc, "stdin", false);
	proc = proc_start(x->box, x->build->boot.user, doc, NULL, NULL, 0);
	proc_put(proc);
	cJSON_Delete(doc);
}

static void wait_a_little(struct e2b *e)
{
	int64_t at = abx_now_ms() + READY_POLL_MS;
	const struct timespec t = {.tv_sec = at / 1000, .tv_nsec = at % 1000 * 1000000};

	(void)pthread_mutex_lock(&e->lock);
	if (!e->ending)
		(void)pthread_cond_timedwait(&e->changed, &e->lock, &t);
	(void)pthread_mutex_unlock(&e->lock);
}

static int wait_ready(struct builder *x, const char *command)
{
	const char *const argv[] = {"/bin/bash", "-l", "-c", command, NULL};
	const struct emu_command c = {.user = x->build->boot.user,
				      .cwd = x->build->boot.cwd,
				      .argv = argv,
				      .env = x->env};
	int64_t until = abx_now_ms() + READY_LIMIT_MS;
	int code = 0, r;

	for (;;) {
		r = emu_command(x->e->engine, x->box->id, &c, &code, &x->err);
		if (r < 0 || code == 0)
			return r;
		if (abx_now_ms() > until || emu_server_ending(x->e->server))
			return abx_err_set(&x->err, ABX_ETIMEDOUT, "ready command timed out");
		wait_a_little(x->e);
	}
}

static int finalize(struct builder *x)
{
	const char *start = NULL, *ready = NULL;
	char ref[EMU_REF_BYTES];
	int r = 0;

	(void)snprintf(x->step, sizeof(x->step), "finalize");
	(void)snprintf(x->prefix, sizeof(x->prefix), "[finalize]");
	say(x, "info", "[finalize] Finalizing template build");
	(void)abx_json_str(x->build->request, "startCmd", TEXT_MAX, &start);
	(void)abx_json_str(x->build->request, "readyCmd", TEXT_MAX, &ready);
	if (start && *start && !emu_engine_light(x->e->engine))
		start_command(x, start);
	if (ready && *ready)
		r = wait_ready(x, ready);
	if (r < 0)
		return r;
	x->build->boot.procs = e2b_procs_describe(x->box);
	r = emu_box_snapshot(x->e->engine, x->box->id, ref, &x->err);
	if (r == 0)
		(void)snprintf(x->build->boot.ref, sizeof(x->build->boot.ref), "%s", ref);
	return r;
}

static void conclude(struct builder *x, int r)
{
	struct e2b_build *b = x->build;
	const cJSON *i;

	say(x, r < 0 ? "error" : "info", r < 0 ? x->err.text : "Build finished");
	(void)pthread_mutex_lock(&x->e->lock);
	b->state = r < 0 ? BUILD_ERROR : BUILD_READY;
	b->changed_ms = abx_wall_ms();
	if (r < 0) {
		cJSON *list;

		b->reason = cJSON_CreateObject();
		(void)abx_json_add_str(b->reason, "message", x->err.text);
		(void)abx_json_add_str(b->reason, "step", x->step);
		list = cJSON_AddArrayToObject(b->reason, "logEntries");
		(void)cJSON_AddItemToArray(list, entry("error", x->step, x->err.text));
	} else if (!b->of->gone) {
		cJSON_ArrayForEach(i, cJSON_GetObjectItemCaseSensitive(b->request, "tags"))
			e2b_tag_set(b->of, i->valuestring, b);
	}
	(void)pthread_mutex_unlock(&x->e->lock);
	e2b_builds_trim(b->of);
}

void *e2b_build_run(void *arg)
{
	struct e2b_build *build = arg;
	struct builder x = {
		.build = build, .env = cJSON_CreateObject(), .step = "base", .prefix = "[base]"};
	struct e2b_template *t = build->of;
	struct abx_err later = ABX_ERR_INIT;
	int r;

	x.e = t->e;
	x.lines[0] = x.lines[1] = (struct abx_buf)ABX_BUF_INIT(LINE_MAX_BYTES);
	x.box = e2b_box_new(x.e);
	(void)snprintf(x.box->template_id, sizeof(x.box->template_id), "%s", t->id);
	e2b_box_list_in(x.box);
	r = make_box(&x);
	if (r == 0)
		r = run_steps(&x);
	if (r == 0)
		r = finalize(&x);
	(void)pthread_mutex_lock(&x.box->op);
	(void)e2b_kill(x.box, &later);
	(void)pthread_mutex_unlock(&x.box->op);
	conclude(&x, r);
	e2b_box_put(x.box);
	abx_buf_release(&x.lines[0]);
	abx_buf_release(&x.lines[1]);
	cJSON_Delete(x.env);
	e2b_template_put(t);
	e2b_thread_over(x.e);
	return NULL;
}
