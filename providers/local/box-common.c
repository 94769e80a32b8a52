/* SPDX-License-Identifier: MIT */
/* What the helper programs share: request, answers, memory, a child that shares it. */
#include "providers/local/box.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/close_range.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abxsdk/fs.h"
#include "abxsdk/launch.h"
#include "abxsdk/text.h"

void box_harden(void)
{
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	if (syscall(SYS_close_range, 3u, ~0u, CLOSE_RANGE_CLOEXEC) < 0)
		for (int fd = LB_FD_REQUEST; fd <= LB_FD_LAST; fd++)
			(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
}

void box_send(const struct lb_msg *m)
{
	ssize_t n;

	do
		n = write(LB_FD_STATUS, m, sizeof(*m));
	while (n < 0 && errno == EINTR);
}

void box_unescape(char *s)
{
	char *to = s;

	for (; *s; s++) {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' && s[2] <= '7' &&
		    s[3] >= '0' && s[3] <= '7') {
			*to++ = (char)((s[1] - '0') * 64 + (s[2] - '0') * 8 + (s[3] - '0'));
			s += 3;
		} else {
			*to++ = *s;
		}
	}
	*to = '\0';
}

void box_send_kind(enum lb_kind kind, int64_t value)
{
	struct lb_msg m = {.kind = (uint32_t)kind, .value = value};

	box_send(&m);
}

void (*box_at_fail)(void);
static bool starting;

static _Noreturn __attribute__((format(printf, 4, 0))) void
fail_v(int code, const char *remedy, const char *why, const char *fmt, va_list ap)
{
	/* Whatever a start does not find, the box itself is there. */
	struct lb_msg m = {.kind = LB_MSG_FAIL,
			   .code = starting && code == ABX_ENOTFOUND ? ABX_EIO : code};
	int n = vsnprintf(m.text, sizeof(m.text), fmt, ap);

	if (why && n >= 0 && (size_t)n < sizeof(m.text))
		(void)snprintf(m.text + n, sizeof(m.text) - (size_t)n, ": %s", why);
	if (remedy)
		(void)snprintf(m.remedy, sizeof(m.remedy), "%s", remedy);
	if (box_at_fail)
		box_at_fail();
	box_send(&m);
	_exit(1);
}

void box_fail(int code, const char *remedy, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fail_v(code, remedy, NULL, fmt, ap);
}

static int code_of(int err)
{
	switch (err) {
	case ENOENT:
	case ENOTDIR:
		return ABX_ENOTFOUND;
	case EACCES:
	case EPERM:
	case EROFS:
		return ABX_EPERM;
	case EINVAL:
	case EISDIR:
	case ENAMETOOLONG:
	case ELOOP:
		return ABX_EINVAL;
	case EEXIST:
		return ABX_EEXIST;
	case ENOMEM:
		return ABX_ENOMEM;
	default:
		return ABX_EIO;
	}
}

void box_fail_errno(int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fail_v(code_of(err), abx_remedy_of_errno(err), strerror(err), fmt, ap);
}

void *box_alloc(size_t n)
{
	void *p = calloc(1, n ? n : 1);

	if (!p)
		box_fail(ABX_ENOMEM, NULL, "out of memory");
	return p;
}

void *box_shared(size_t n)
{
	void *p = abx_child_shared(n);

	if (!p)
		box_fail(ABX_ENOMEM, NULL, "out of memory");
	return p;
}

char *box_strdup(const char *s)
{
	char *p = strdup(s);

	if (!p)
		box_fail(ABX_ENOMEM, NULL, "out of memory");
	return p;
}

char *box_printf(const char *fmt, ...)
{
	va_list ap;
	char *p;

	va_start(ap, fmt);
	if (vasprintf(&p, fmt, ap) < 0)
		box_fail(ABX_ENOMEM, NULL, "out of memory");
	va_end(ap);
	return p;
}

/* The next string of a request, or the end of a request that is cut short. */
static char *next_string(char **at, const char *end)
{
	char *s = *at;
	char *nul = s < end ? memchr(s, '\0', (size_t)(end - s)) : NULL;

	if (!nul)
		box_fail(ABX_EPROTO, NULL, "helper: malformed request");
	*at = nul + 1;
	return s;
}

static char **next_vector(uint32_t n, char **at, const char *end)
{
	char **v;

	if (n > (size_t)(end - *at))
		box_fail(ABX_EPROTO, NULL, "helper: malformed request");
	v = box_alloc((n + 1) * sizeof(*v));
	for (uint32_t i = 0; i < n; i++)
		v[i] = next_string(at, end);
	return v;
}

void box_req_load(struct box_req *ret)
{
	struct stat st;
	char *base, *at;

	if (fstat(LB_FD_REQUEST, &st) < 0 || st.st_size < (off_t)sizeof(ret->h))
		box_fail(ABX_EPROTO, NULL, "helper: not for use by hand");
	base = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, LB_FD_REQUEST,
		    0);
	if (base == MAP_FAILED)
		box_fail_errno(errno, "helper: request");
	(void)close(LB_FD_REQUEST);
	memcpy(&ret->h, base, sizeof(ret->h));
	if (ret->h.magic != LB_MAGIC || ret->h.strings_len != (uint64_t)st.st_size - sizeof(ret->h))
		box_fail(ABX_EPROTO, "install plugin and helpers of one version",
			 "helper: malformed request");
	starting = ret->h.op == LB_OP_START;
	at = base + sizeof(ret->h);
	ret->user = next_string(&at, base + st.st_size);
	ret->path = next_string(&at, base + st.st_size);
	ret->name = next_string(&at, base + st.st_size);
	ret->argv = next_vector(ret->h.n_argv, &at, base + st.st_size);
	ret->env = next_vector(ret->h.n_env, &at, base + st.st_size);
}

char *box_read_file(int dirfd, const char *path, size_t max, size_t *ret_len)
{
	/* Non-blocking: in a box this may be a FIFO or a device. */
	int fd = openat(dirfd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	char *data = NULL;
	size_t len = 0;
	struct stat st;

	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > (off_t)max) {
		(void)close(fd);
		errno = EFBIG;
		return NULL;
	}
	data = box_alloc((size_t)st.st_size + 1);
	while (len < (size_t)st.st_size) {
		ssize_t n = read(fd, data + len, (size_t)st.st_size - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		len += (size_t)n;
	}
	(void)close(fd);
	data[len] = '\0';
	if (ret_len)
		*ret_len = len;
	return data;
}

void box_keep_lock(int fd)
{
	/* A mapping keeps the open file, and with it the lock; the links that /proc has of
	 * mappings open for nobody in a user namespace. */
	if (mmap(NULL, 1, PROT_NONE, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		box_fail_errno(errno, "keep a lock");
	(void)close(fd);
}

void box_write_all(int fd, const void *data, size_t len)
{
	int r = abx_fs_write_all(fd, data, len);

	if (r < 0)
		box_fail_errno(-r, "write");
}

void box_make_parents(const char *path, bool itself)
{
	char *copy = box_strdup(path);

	for (char *at = copy + 1; *at; at++) {
		if (*at != '/')
			continue;
		*at = '\0';
		if (mkdir(copy, 0755) < 0 && errno != EEXIST)
			box_fail_errno(errno, "make directory %s", copy);
		*at = '/';
	}
	if (itself && mkdir(copy, 0755) < 0 && errno != EEXIST)
		box_fail_errno(errno, "make directory %s", copy);
	free(copy);
}

void box_enter_target(const struct box_req *rq)
{
	if (rq->path[0] != '/')
		box_fail(ABX_EINVAL, NULL, "put: %.512s: not an absolute path", rq->path);
	if (rq->h.flags & LB_F_CREATE_PARENTS)
		box_make_parents(rq->path, true);
	if (chdir(rq->path) < 0)
		box_fail_errno(errno, "put: %.512s", rq->path);
}

int box_run_child(int (*fn)(void *), void *arg)
{
	pid_t pid = abx_child_start(fn, arg, CLONE_FILES);
	int status;

	if (pid < 0)
		box_fail_errno(errno, "helper: new process in the box");
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return status;
}

static int forget_segments(struct dl_phdr_info *info, size_t size, void *arg)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

	(void)size;
	(void)arg;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uintptr_t first = (info->dlpi_addr + ph->p_vaddr + page - 1) & ~(page - 1);
		uintptr_t end = (info->dlpi_addr + ph->p_vaddr + ph->p_memsz) & ~(page - 1);

		/* Never written, so the file has them whenever they are needed again. */
		if (ph->p_type == PT_LOAD && !(ph->p_flags & PF_W) && first < end)
			(void)madvise((void *)first, end - first, MADV_DONTNEED);
	}
	return 0;
}

void box_forget_pages(void)
{
#ifdef __GLIBC__
	(void)malloc_trim(0);
#endif
	(void)dl_iterate_phdr(forget_segments, NULL);
}
