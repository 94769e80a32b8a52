/* SPDX-License-Identifier: MIT */
/* The provider `local`: boxes as Linux namespaces on this machine. */
#include "providers/local/local.h"

#include <fcntl.h>
#include <string.h>
#include <sys/utsname.h>

#include "abxsdk/fs.h"

#define LOCAL_VERSION "0.1.0"

#ifndef ABX_LIBEXECDIR
#define ABX_LIBEXECDIR "/usr/libexec/agentbox"
#endif

static int32_t local_init(const struct abx_host *host)
{
	abx_plugin_host = host;
	return ABX_OK;
}

static void session_free(struct abx_session *s)
{
	local_state_close(s);
	(void)pthread_mutex_destroy(&s->lock);
	free(s->box_helper);
	free(s->tar_helper);
	free(s->net_helper);
	free(s->image);
	free(s->mirror);
	free(s->packages);
	free(s->network);
	free(s->proxy);
	free(s->no_proxy);
	free(s);
}

/* Helpers of an uninstalled tree come from where its wrapper says. */
static char *helper_path(const char *name)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(8192);
	const char *dir = secure_getenv("AGENTBOX_LIBEXEC_PATH");

	abx_buf_addf(&b, "%s/%s", dir && *dir ? dir : ABX_LIBEXECDIR, name);
	return abx_buf_steal(&b);
}

static int read_boot_id(char *id, size_t size)
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, id, size - 1);
	(void)close(fd);
	if (n <= 0)
		return -EIO;
	id[n] = '\0';
	id[strcspn(id, "\n")] = '\0';
	return 0;
}

static int take_text(char **to, const char *text)
{
	if (!text || !*text)
		return 0;
	free(*to);
	*to = strdup(text);
	return *to ? 0 : -ENOMEM;
}

static int take_option(struct abx_session *s, const struct abx_kv *o)
{
	if (strcmp(o->key, "image") == 0)
		return take_text(&s->image, o->value);
	if (strcmp(o->key, "mirror") == 0)
		return take_text(&s->mirror, o->value);
	if (strcmp(o->key, "packages") == 0)
		return take_text(&s->packages, o->value);
	if (strcmp(o->key, "network") == 0)
		return take_text(&s->network, o->value);
	return 0;
}

static int session_fill(struct abx_session *s, const struct abx_session_args *args)
{
	struct utsname u;

	s->box_helper = helper_path("agentbox-local-box");
	s->tar_helper = helper_path("agentbox-local-tar");
	s->net_helper = helper_path("agentbox-local-net");
	if (!s->box_helper || !s->tar_helper || !s->net_helper)
		return -ENOMEM;
	if (take_text(&s->proxy, args->proxy) < 0 || take_text(&s->no_proxy, args->no_proxy) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < args->n_options; i++)
		if (take_option(s, &args->options[i]) < 0)
			return -ENOMEM;
	(void)snprintf(s->account, sizeof(s->account), "uid:%u", geteuid());
	if (uname(&u) == 0)
		(void)snprintf(s->arch, sizeof(s->arch), "%.31s", u.machine);
	return 0;
}

static int32_t local_session_open(struct abx_call *call, const struct abx_session_args *args,
				  struct abx_session **ret)
{
	struct abx_session *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return abx_fail(call, ABX_ENOMEM, NULL, "out of memory");
	(void)pthread_mutex_init(&s->lock, NULL);
	s->store_fd = s->boxes_fd = s->tmp_fd = s->images_fd = -1;
	s->volumes_fd = s->prepared_fd = -1;
	s->layers_fd = s->snapshots_fd = -1;
	r = read_boot_id(s->boot_id, sizeof(s->boot_id));
	if (r < 0) {
		session_free(s);
		return abx_fail(call, ABX_EIO, "mount -t proc proc /proc", "/proc: %s",
				strerror(-r));
	}
	r = session_fill(s, args);
	if (r == 0)
		r = local_state_open(s, args->state_dir);
	if (r < 0) {
		session_free(s);
		return abx_fail_errno(call, -r, "state directory: %s", args->state_dir);
	}
	*ret = s;
	return ABX_OK;
}

static void local_session_close(struct abx_session *s)
{
	if (s)
		session_free(s);
}

static int32_t local_verify(struct abx_session *s, struct abx_call *call)
{
	const struct abx_kv row[] = {{"account", s->account}};

	return abx_plugin_host->emit_row(call, row, ABX_N_ELEMENTS(row));
}

static const struct abx_option option_image = {
	ABX_INIT(struct abx_option),
	.type = ABX_OPT_STRING,
	.flags = ABX_OPT_PER_BOX,
	.name = "image",
	.help = "root file system of the box: a directory, a tar file, or the name of a prepared "
		"image "
		"(default: this machine's)",
};

static const struct abx_option option_mirror = {
	ABX_INIT(struct abx_option),
	.type = ABX_OPT_STRING,
	.name = "mirror",
	.help = "where prepare downloads packages of a suite: a URL, or a line of sources.list "
		"(default: as this machine's apt)",
};

static const struct abx_option option_packages = {
	ABX_INIT(struct abx_option),
	.type = ABX_OPT_STRING,
	.name = "packages",
	.help = "packages of a prepared suite beside the essential ones, separated by commas",
};

static const struct abx_option option_network = {
	ABX_INIT(struct abx_option),
	.type = ABX_OPT_STRING,
	.flags = ABX_OPT_PER_BOX,
	.name = "network",
	.env = "AGENTBOX_LOCAL_NETWORK",
	.help = "the program that carries packets of the box: slirp4netns or pasta",
	.dflt = LOCAL_SLIRP,
};

static const struct abx_option *const options[] = {&option_image, &option_mirror, &option_packages,
						   &option_network, NULL};

static const struct abx_cloud_backend backend = {
	ABX_BACKEND_PREFIX("local", LOCAL_VERSION),
	.summary = "Boxes as namespaces on this machine",
	.caps = ABX_CAP_EXEC_STDIN | ABX_CAP_EXEC_SPLIT | ABX_CAP_EXEC_BINARY |
		ABX_CAP_EXEC_SIGNAL | ABX_CAP_EXEC_TREE_KILL | ABX_CAP_EXEC_PTY | ABX_CAP_PUT_GZIP |
		ABX_CAP_PUT_ZSTD | ABX_CAP_LOCAL | ABX_CAP_MEMORY_PAUSE | ABX_CAP_READ_ONLY,
	.thread_model = ABX_THREADS_PARALLEL,
	.options = options,
	.init = local_init,
	.session_open = local_session_open,
	.session_close = local_session_close,
	.verify = local_verify,
	.doctor = local_doctor,
	.prepare = local_prepare,
	.image_list = local_image_list,
	.image_delete = local_image_delete,
	.provision = local_provision,
	.get = local_get,
	.list = local_list,
	.start = local_start,
	.stop = local_stop,
	.pause = local_pause,
	.resume = local_resume,
	.destroy = local_destroy,
	.watch = local_watch,
	.stats = local_stats,
	.exec = local_exec,
	.exec_signal = local_exec_signal,
	.upload = local_upload,
	.download = local_download,
	.put_tar = local_put_tar,
	.get_tar = local_get_tar,
	.list_files = local_list_files,
	.volume_ensure = local_volume_ensure,
	.volume_list = local_volume_list,
	.volume_delete = local_volume_delete,
	.snapshot_create = local_snapshot_create,
	.snapshot_list = local_snapshot_list,
	.snapshot_exists = local_snapshot_exists,
	.snapshot_delete = local_snapshot_delete,
	.url = local_url,
	.set_egress = local_set_egress,
};

ABX_PROVIDER_NOTE("local", LOCAL_VERSION);

const struct abx_cloud_backend *agentbox_cloud_backend(void)
{
	return &backend;
}
