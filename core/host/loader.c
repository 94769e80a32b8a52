/* SPDX-License-Identifier: MIT */
/* Plugins in this process. */
#include "core/host/loader.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

#include "core/host/descriptor.h"
#include "core/host/elfcheck.h"
#include "core/host/hostapi.h"
#include "core/host/probe.h"
#include "core/host/text.h"
#include "core/host/trust.h"
#include "core/util/mem.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct abx_plugin *plugins;

typedef const struct abx_cloud_backend *(*entry_fn)(void);

/* At an orderly end only: nobody may be inside the plugin. */
static void fini_all(void)
{
	if (pthread_mutex_trylock(&lock) != 0)
		return;
	for (struct abx_plugin *p = plugins; p; p = p->next)
		if (p->table.fini && !atomic_load(&p->active) && !atomic_load(&p->lost))
			p->table.fini();
	(void)pthread_mutex_unlock(&lock);
}

static int load_failed(const char *path, const char *opened_as, struct abx_err *err)
{
	const char *why = dlerror();
	size_t prefix = strlen(opened_as);
	char text[512];

	if (!why)
		why = "unknown error";
	if (strncmp(why, opened_as, prefix) == 0 && strncmp(why + prefix, ": ", 2) == 0)
		why += prefix + 2;
	abx_text_line(why, strlen(why), text, sizeof(text));
	(void)abx_err_set(err, ABX_EPROVIDER, "%s: cannot load: %s", path, text);
	return abx_err_remedy(err, "check its dependencies with ldd(1)");
}

static int find_entry(int fd, const char *path, entry_fn *ret, struct abx_err *err)
{
	char opened_as[64];
	void *handle, *symbol;

	(void)snprintf(opened_as, sizeof(opened_as), "/proc/self/fd/%d", fd);
	handle = dlopen(opened_as, RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		return load_failed(path, opened_as, err);
	symbol = dlsym(handle, "agentbox_cloud_backend");
	if (!symbol) {
		(void)abx_err_set(err, ABX_EPROVIDER, "%s: does not export agentbox_cloud_backend",
				  path);
		return abx_err_remedy(err, "reinstall it");
	}
	memcpy(ret, &symbol, sizeof(*ret));
	return 0;
}

static struct abx_plugin *find_loaded(const struct stat *st)
{
	for (struct abx_plugin *p = plugins; p; p = p->next)
		if (p->dev == st->st_dev && p->ino == st->st_ino)
			return p;
	return NULL;
}

static int call_init(struct abx_plugin *p, struct abx_err *err)
{
	int32_t code = p->table.init(abx_hostapi());

	if (code == ABX_OK)
		return 0;
	return abx_err_set(err, ABX_EPROVIDER, "%s: provider '%s' could not be initialised: %s",
			   p->path, p->table.name, abx_hostapi_code_text(code));
}

static void plugin_free(struct abx_plugin *p)
{
	abx_gate_close(&p->gate);
	free(p->path);
	free(p);
}

/* Takes what `fd` names; on success the descriptor belongs to the process for ever. */
static int load_locked(int fd, const char *path, const struct abx_elfnote *note,
		       struct abx_plugin **ret, struct abx_err *err)
{
	struct abx_plugin *p = abx_xcalloc(1, sizeof(*p));
	const struct abx_gate none = ABX_GATE_INIT;
	entry_fn entry = NULL;
	struct stat st;
	int r = find_entry(fd, path, &entry, err);

	p->path = abx_xstrdup(path);
	p->gate = none;
	if (r == 0) {
		p->theirs = entry();
		r = abx_descriptor_take(p->theirs, note, path, &p->table, err);
	}
	if (r == 0 && p->table.thread_model < ABX_THREADS_SESSION)
		r = abx_gate_open(&p->gate, err);
	if (r == 0 && fstat(fd, &st) < 0)
		r = abx_err_errno(err, errno, "%s: stat", path);
	if (r == 0)
		r = call_init(p, err);
	if (r < 0) {
		plugin_free(p);
		return r;
	}
	p->their_size = p->theirs->struct_size;
	p->dev = st.st_dev;
	p->ino = st.st_ino;
	if (!plugins)
		(void)atexit(fini_all);
	p->next = plugins;
	plugins = p;
	*ret = p;
	return 0;
}

/* What may be known before anything of the file runs. */
static int check_note(int fd, const char *path, struct abx_elfnote *note, struct abx_err *err)
{
	int r = abx_elfnote_read(fd, path, note, err);

	return r == 0 ? abx_elfnote_check_abi(note, path, err) : r;
}

int abx_plugin_load_here(int fd, const char *path, struct abx_plugin **ret, struct abx_err *err)
{
	struct abx_elfnote note;
	int r = check_note(fd, path, &note, err);

	if (r == 0)
		r = abx_elfcheck(fd, path, err);
	if (r < 0)
		return r;
	(void)pthread_mutex_lock(&lock);
	r = load_locked(fd, path, &note, ret, err);
	(void)pthread_mutex_unlock(&lock);
	return r;
}

static int get_locked(const struct abx_provider_file *f, const struct abx_home *home,
		      struct abx_plugin **ret, struct abx_err *err)
{
	abx_autoclose int fd = -1;
	struct abx_elfnote note;
	struct abx_plugin *loaded;
	struct stat st;
	int r = abx_trust_open(f->path, &fd, err);

	if (r < 0)
		return r;
	if (fstat(fd, &st) < 0)
		return abx_err_errno(err, errno, "%s: stat", f->path);
	loaded = find_loaded(&st);
	if (loaded) {
		*ret = loaded;
		return 0;
	}
	r = check_note(fd, f->path, &note, err);
	if (r == 0 && strcmp(note.name, f->name) != 0)
		r = abx_err_set(err, ABX_EPROVIDER, "%s: provider '%s' calls itself '%s'", f->path,
				f->name, note.name);
	if (r == 0)
		r = abx_probe_ensure(fd, f->path, f->name, home, err);
	if (r < 0)
		return r;
	/* From here the dynamic linker may know the library by this descriptor's name. */
	return load_locked(abx_steal_fd(&fd), f->path, &note, ret, err);
}

int abx_plugin_get(const struct abx_provider_file *f, const struct abx_home *home,
		   struct abx_plugin **ret, struct abx_err *err)
{
	int r;

	(void)pthread_mutex_lock(&lock);
	r = get_locked(f, home, ret, err);
	(void)pthread_mutex_unlock(&lock);
	return r;
}
