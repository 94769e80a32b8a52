/* SPDX-License-Identifier: MIT */
/* Run a program by argv, never through a shell. */
#include "abxsdk/spawn.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

#ifdef __GLIBC__
#if __GLIBC_PREREQ(2, 34)
#define HAVE_CLOSEFROM_NP 1
#endif
#endif
#ifndef HAVE_CLOSEFROM_NP
#define HAVE_CLOSEFROM_NP 0
#endif

/* Descriptors are first moved above every target, so that no dup2 hits one still needed. */
#define SPAWN_FD_FLOOR 64

static int add_fd(posix_spawn_file_actions_t *fa, int from, int to, int access_mode)
{
	if (from < 0)
		return posix_spawn_file_actions_addopen(fa, to, "/dev/null", access_mode, 0);
	return posix_spawn_file_actions_adddup2(fa, from, to);
}

static int lift(int fd, int *ret_fd)
{
	if (fd < 0)
		return 0;
	*ret_fd = fcntl(fd, F_DUPFD_CLOEXEC, SPAWN_FD_FLOOR);
	/* What a limit below the floor is called. */
	return *ret_fd >= 0 ? 0 : errno == EINVAL ? EMFILE : errno;
}

struct lifted {
	int std[3], extra[ABX_SPAWN_MAX_FDS];
};

static void lifted_close(struct lifted *l)
{
	for (size_t i = 0; i < ABX_N_ELEMENTS(l->std); i++)
		abx_cleanup_close(&l->std[i]);
	for (size_t i = 0; i < ABX_N_ELEMENTS(l->extra); i++)
		abx_cleanup_close(&l->extra[i]);
}

static int lift_all(const struct abx_spawn *s, struct lifted *l)
{
	const int std[3] = {s->fd_in, s->fd_out, s->fd_err};
	int r = 0;

	for (size_t i = 0; i < ABX_N_ELEMENTS(l->std); i++)
		l->std[i] = -1;
	for (size_t i = 0; i < ABX_N_ELEMENTS(l->extra); i++)
		l->extra[i] = -1;
	for (size_t i = 0; i < 3 && r == 0; i++)
		r = lift(std[i], &l->std[i]);
	for (size_t i = 0; i < s->n_extra && r == 0; i++)
		r = lift(s->extra[i].from, &l->extra[i]);
	return r;
}

static bool is_target(const struct abx_spawn *s, int fd)
{
	for (unsigned int i = 0; i < s->n_extra; i++)
		if (s->extra[i].to == fd)
			return true;
	return false;
}

/* What we were started with may lack close-on-exec; it is not for our children either. */
static int close_others(posix_spawn_file_actions_t *fa, const struct abx_spawn *s)
{
	int highest = 2, r = 0;

	for (unsigned int i = 0; i < s->n_extra; i++)
		if (s->extra[i].to > highest)
			highest = s->extra[i].to;
	for (int fd = 3; fd < highest && r == 0; fd++)
		if (!is_target(s, fd))
			r = posix_spawn_file_actions_addclose(fa, fd);
#if HAVE_CLOSEFROM_NP
	if (r == 0)
		r = posix_spawn_file_actions_addclosefrom_np(fa, highest + 1);
#endif
	return r;
}

static int fill_actions(posix_spawn_file_actions_t *fa, const struct abx_spawn *s,
			const struct lifted *l)
{
	int r = add_fd(fa, l->std[0], 0, O_RDONLY);

	if (r == 0)
		r = add_fd(fa, l->std[1], 1, O_WRONLY);
	if (r == 0)
		r = add_fd(fa, l->std[2], 2, O_WRONLY);
	for (unsigned int i = 0; i < s->n_extra && r == 0; i++)
		r = posix_spawn_file_actions_adddup2(fa, l->extra[i], s->extra[i].to);
	if (r == 0)
		r = close_others(fa, s);
	if (r == 0 && s->cwd)
		r = posix_spawn_file_actions_addchdir_np(fa, s->cwd);
	return r;
}

static int fill_attr(posix_spawnattr_t *attr, const struct abx_spawn *s)
{
	short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
	sigset_t none, all;
	int r;

	(void)sigemptyset(&none);
	(void)sigfillset(&all);
	if (s->new_session)
		flags = (short)(flags | POSIX_SPAWN_SETSID);
	r = posix_spawnattr_setflags(attr, flags);
	if (r == 0)
		r = posix_spawnattr_setsigmask(attr, &none);
	if (r == 0)
		r = posix_spawnattr_setsigdefault(attr, &all);
	return r;
}

int abx_spawn_start(const struct abx_spawn *s, pid_t *ret_pid)
{
	posix_spawn_file_actions_t fa;
	posix_spawnattr_t attr;
	struct lifted l;
	pid_t pid = -1;
	int r;

	if (s->n_extra > ABX_SPAWN_MAX_FDS)
		return -EINVAL;
	r = posix_spawn_file_actions_init(&fa);
	if (r)
		return -r;
	r = posix_spawnattr_init(&attr);
	if (r) {
		(void)posix_spawn_file_actions_destroy(&fa);
		return -r;
	}
	r = lift_all(s, &l);
	if (r == 0)
		r = fill_actions(&fa, s, &l);
	if (r == 0)
		r = fill_attr(&attr, s);
	if (r == 0)
		r = posix_spawnp(&pid, s->argv[0], &fa, &attr, (char *const *)(const void *)s->argv,
				 s->envp ? (char *const *)(const void *)s->envp : environ);
	lifted_close(&l);
	(void)posix_spawnattr_destroy(&attr);
	(void)posix_spawn_file_actions_destroy(&fa);
	if (r == 0)
		*ret_pid = pid;
	return -r;
}

int abx_spawn_wait(pid_t pid, int *ret_status)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	*ret_status = status;
	return 0;
}

/* The pumping side of a collected program. */
struct pump {
	int in, out, err;
	const struct abx_buf *src;
	size_t fed;
	struct abx_buf *out_buf, *err_buf;
};

static void pump_close(int *fd)
{
	abx_cleanup_close(fd);
	*fd = -1;
}

static void pump_feed(struct pump *p)
{
	ssize_t n = write(p->in, p->src->data + p->fed, p->src->len - p->fed);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n > 0)
		p->fed += (size_t)n;
	/* A program that does not read all of its input is not an error here. */
	if (n < 0 || p->fed == p->src->len)
		pump_close(&p->in);
}

static int pump_drain(int *fd, struct abx_buf *b)
{
	char chunk[16384];
	ssize_t n = read(*fd, chunk, sizeof(chunk));

	if (n < 0 && errno == EINTR)
		return 0;
	if (n < 0)
		return -errno;
	if (n == 0) {
		pump_close(fd);
		return 0;
	}
	abx_buf_add(b, chunk, (size_t)n);
	return b->failed ? -EFBIG : 0;
}

static int pump_run(struct pump *p)
{
	int r = 0;

	while (r == 0 && (p->in >= 0 || p->out >= 0 || p->err >= 0)) {
		struct pollfd fds[3] = {
			{p->in, POLLOUT, 0}, {p->out, POLLIN, 0}, {p->err, POLLIN, 0}};

		if (poll(fds, 3, -1) < 0) {
			if (errno != EINTR)
				r = -errno;
			continue;
		}
		if (fds[0].revents)
			pump_feed(p);
		if (fds[1].revents)
			r = pump_drain(&p->out, p->out_buf);
		if (r == 0 && fds[2].revents)
			r = pump_drain(&p->err, p->err_buf);
	}
	return r;
}

static int open_pipe(int pair[2])
{
	return pipe2(pair, O_CLOEXEC) < 0 ? -errno : 0;
}

static int pump_open(struct pump *p, struct abx_spawn *s, int theirs[3])
{
	int pair[2], r;

	if (p->src && p->src->len) {
		r = open_pipe(pair);
		if (r < 0)
			return r;
		s->fd_in = theirs[0] = pair[0];
		p->in = pair[1];
		(void)fcntl(p->in, F_SETFL, O_NONBLOCK);
	}
	if (p->out_buf) {
		r = open_pipe(pair);
		if (r < 0)
			return r;
		s->fd_out = theirs[1] = pair[1];
		p->out = pair[0];
	}
	if (p->err_buf) {
		r = open_pipe(pair);
		if (r < 0)
			return r;
		s->fd_err = theirs[2] = pair[1];
		p->err = pair[0];
	}
	return 0;
}

/* A program that stops reading must not end us by SIGPIPE. */
static int run_pumped(struct pump *p, pid_t pid, int *ret_status)
{
	sigset_t pipe_set, old;
	int r, waited, status = 0;

	(void)sigemptyset(&pipe_set);
	(void)sigaddset(&pipe_set, SIGPIPE);
	(void)pthread_sigmask(SIG_BLOCK, &pipe_set, &old);
	r = pump_run(p);
	if (!sigismember(&old, SIGPIPE)) {
		const struct timespec now = {0, 0};

		while (sigtimedwait(&pipe_set, NULL, &now) > 0)
			;
		(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	}
	if (r < 0)
		(void)kill(pid, SIGKILL);
	waited = abx_spawn_wait(pid, &status);
	if (r == 0)
		r = waited;
	if (r == 0)
		*ret_status = status;
	return r;
}

int abx_spawn_collect(struct abx_spawn *s, const struct abx_buf *in, struct abx_buf *out,
		      struct abx_buf *err, int *ret_status)
{
	struct pump p = {-1, -1, -1, in, 0, out, err};
	int theirs[3] = {-1, -1, -1};
	pid_t pid;
	int r = pump_open(&p, s, theirs);

	if (r == 0)
		r = abx_spawn_start(s, &pid);
	for (size_t i = 0; i < ABX_N_ELEMENTS(theirs); i++)
		pump_close(&theirs[i]);
	if (r == 0)
		r = run_pumped(&p, pid, ret_status);
	pump_close(&p.in);
	pump_close(&p.out);
	pump_close(&p.err);
	return r;
}
