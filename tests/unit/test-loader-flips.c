/* SPDX-License-Identifier: MIT */
/* Corrupt plugins: ten thousand flipped bits and random bytes never end the host. */
#include <elf.h>

#include "core/host/elfnote.h"
#include "tests/unit/plugins.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(SANITIZED)
#define FLIPS 800
#else
#define FLIPS 10000
#endif
#define WORKERS 2
/* Of so many, one goes the whole way: registry, a probe by exec, load. */
#define WHOLE_WAY 4

static uint64_t random_state;

/* xorshift64*: the same bits in every run. */
static uint64_t next_random(void)
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return random_state * UINT64_C(0x2545f4914f6cdd1d);
}

/* Bytes that the loader may read: the rest of the file is symbols for debuggers. */
static size_t loaded_bytes(int fd)
{
	Elf64_Ehdr h;
	Elf64_Phdr ph;
	size_t end = 0;

	ck_assert_int_eq(pread(fd, &h, sizeof(h), 0), sizeof(h));
	for (int i = 0; i < h.e_phnum; i++) {
		off_t at = (off_t)(h.e_phoff + (uint64_t)i * sizeof(ph));

		ck_assert_int_eq(pread(fd, &ph, sizeof(ph), at), sizeof(ph));
		if (ph.p_type == PT_LOAD && ph.p_offset + ph.p_filesz > end)
			end = ph.p_offset + ph.p_filesz;
	}
	return end;
}

static void be_quiet(void)
{
	const struct sigaction dfl = {.sa_handler = SIG_DFL};
	const struct rlimit none = {0, 0};
	/* A sanitizer's handlers would make exit codes of crashes, and Check's own one would end
	 * the whole test. */
	static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGALRM};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)setrlimit(RLIMIT_CORE, &none);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		(void)sigaction(signals[i], &dfl, NULL);
	for (int fd = 0; fd < 3; fd++)
		(void)dup2(null, fd);
}

static int wait_status(pid_t pid)
{
	int status = -1;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

/* What a probe does, in a child: it may well crash. */
static int try_probe(int fd)
{
	pid_t pid = fork();

	if (pid == 0) {
		struct abx_plugin *plugin;

		be_quiet();
		(void)alarm(2);
		_exit(abx_plugin_load_here(fd, "x.so", &plugin, NULL) == 0 ? 0 : 1);
	}
	return pid < 0 ? -1 : wait_status(pid);
}

/* What the host does, in a child that must not crash. */
static int try_host(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		struct abx_plugin *plugin;

		be_quiet();
		_exit(plugin_load("mock", &plugin) == 0 ? 0 : 1);
	}
	return pid < 0 ? -1 : wait_status(pid);
}

struct tally {
	unsigned int accepted, refused, crashed, whole;
};

/* One bit there, and back again. */
static int one_flip(int fd, size_t size, unsigned int n, struct tally *t)
{
	const off_t at = (off_t)(next_random() % size);
	const unsigned int bit = (unsigned int)(next_random() % 8);
	struct abx_elfnote note;
	unsigned char byte, flipped;
	int status;

	if (pread(fd, &byte, 1, at) != 1)
		return 1;
	flipped = (unsigned char)(byte ^ (1U << bit));
	if (pwrite(fd, &flipped, 1, at) != 1)
		return 1;
	(void)abx_elfnote_read(fd, "x.so", &note, NULL);
	status = try_probe(fd);
	if (WIFSIGNALED(status))
		t->crashed++;
	else if (WEXITSTATUS(status) == 0)
		t->accepted++;
	else
		t->refused++;
	if (n % WHOLE_WAY == 0) {
		t->whole++;
		status = try_host();
		if (!WIFEXITED(status) || WEXITSTATUS(status) > 1) {
			(void)fprintf(stderr, "# bit %u at %lld ended the host: %d\n", bit,
				      (long long)at, status);
			return 1;
		}
	}
	return pwrite(fd, &byte, 1, at) == 1 ? 0 : 1;
}

static void copy_mock(const char *file)
{
	abx_auto(abx_buf) struct abx_buf bytes = ABX_BUF_INIT(64 << 20);

	ck_assert_int_eq(abx_fs_read(AT_FDCWD, plugin_built("mock"), &bytes), 0);
	unit_write(file, bytes.data, bytes.len);
}

static int flip_many(unsigned int worker)
{
	struct tally t = {0, 0, 0, 0};
	char dir[64], file[128];
	size_t size;
	int fd;

	random_state = 0x9e3779b97f4a7c15 + worker;
	(void)snprintf(dir, sizeof(dir), "plugins-%u", worker);
	(void)snprintf(file, sizeof(file), "%s/agentbox-mock.so", dir);
	if (mkdir(unit_path(dir), 0700) < 0)
		return 1;
	copy_mock(file);
	(void)setenv("AGENTBOX_PROVIDER_PATH", unit_path(dir), 1);
	fd = open(unit_path(file), O_RDWR | O_CLOEXEC);
	size = loaded_bytes(fd);
	for (unsigned int i = 0; i < FLIPS / WORKERS; i++)
		if (one_flip(fd, size, i, &t))
			return 1;
	(void)close(fd);
	(void)printf("# worker %u: %zu bytes, %u accepted, %u refused, %u crashed the probe, "
		     "%u went the whole way\n",
		     worker, size, t.accepted, t.refused, t.crashed, t.whole);
	(void)fflush(stdout);
	/* A run in which nothing crashed or nothing was refused did not test anything. */
	return t.accepted && t.refused && t.crashed ? 0 : 1;
}

START_TEST(flipped_bits)
{
	ck_assert_uint_eq(unit_together(WORKERS, flip_many), WORKERS);
}
END_TEST

/* Random bytes, alone and behind a header that is right. */
START_TEST(random_bytes)
{
	abx_auto(abx_buf) struct abx_buf good = ABX_BUF_INIT(64 << 20);
	struct abx_plugin *plugin;

	random_state = 42;
	ck_assert_int_eq(abx_fs_read(AT_FDCWD, plugin_built("mock"), &good), 0);
	for (int round = 0; round < 2000; round++) {
		unsigned char bytes[2048];
		size_t len = next_random() % sizeof(bytes);

		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = (unsigned char)next_random();
		if (round % 2)
			memcpy(bytes, good.data, sizeof(Elf64_Ehdr));
		/* Some of them with a program header table at its right place. */
		if (round % 4 == 3)
			bytes[offsetof(Elf64_Ehdr, e_phnum)] = (unsigned char)(round % 16);
		unit_write(MOCK, bytes, len);
		ck_assert_int_eq(plugin_load("mock", &plugin), ABX_EPROVIDER);
	}
}
END_TEST

/* A header of the truth, cut at every length that matters. */
START_TEST(every_length)
{
	abx_auto(abx_buf) struct abx_buf good = ABX_BUF_INIT(64 << 20);
	struct abx_plugin *plugin;

	ck_assert_int_eq(abx_fs_read(AT_FDCWD, plugin_built("mock"), &good), 0);
	for (size_t len = 0; len < 2048; len++) {
		unit_write(MOCK, good.data, len);
		ck_assert_int_eq(plugin_load("mock", &plugin), ABX_EPROVIDER);
	}
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("loader-flips");
	TCase *tc = tcase_create("corrupt");

	tcase_set_timeout(tc, 300);
	tcase_add_checked_fixture(tc, plugins_setup, unit_dir_teardown);
	tcase_add_test(tc, flipped_bits);
	tcase_add_test(tc, random_bytes);
	tcase_add_test(tc, every_length);
	suite_add_tcase(s, tc);
	return s;
}

PLUGINS_MAIN(suite)
