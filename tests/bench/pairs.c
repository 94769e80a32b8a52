/* SPDX-License-Identifier: MIT */
/*
 * Time commands against each other: pairs RUNS SIDE --- SIDE [--- SIDE]...
 *
 * A side is a command, or several one after the other with --then between them.  In each run
 * every side runs once, in an order that turns, so that whatever slows the machine for a while
 * slows all sides; @N@ in an argument becomes the number of the run.  Output is discarded; a
 * command that fails ends it.  Prints one line a side: median in ms, the median of the
 * differences to the first side in ms, the largest resident set in KB.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

enum { MAX_SIDES = 4, MAX_COMMANDS = 16, MAX_ARGS = 64, MAX_RUNS = 10000, WARM_UP = 3 };

struct side {
	char **commands[MAX_COMMANDS];
	int n_commands;
	double *ms;
	long max_rss_kb;
};

extern char **environ;

static void die(const char *what)
{
	(void)fprintf(stderr, "pairs: %s\n", what);
	exit(1);
}

static double now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Copies of the arguments with the number of the run filled in. */
static void number_args(char **argv, int run, char **ret, char *room, size_t size)
{
	int n = 0;

	for (; argv[n]; n++) {
		const char *at = strstr(argv[n], "@N@");
		int used;

		if (n == MAX_ARGS)
			die("too many arguments");
		ret[n] = argv[n];
		if (!at)
			continue;
		used = snprintf(room, size, "%.*s%d%s", (int)(at - argv[n]), argv[n], run, at + 3);
		if (used < 0 || (size_t)used >= size)
			die("arguments too long");
		ret[n] = room;
		room += used + 1;
		size -= (size_t)used + 1;
	}
	ret[n] = NULL;
}

static double run_command(char **argv, const posix_spawn_file_actions_t *quiet, long *max_rss_kb)
{
	struct rusage usage;
	double begun = now_ms();
	int status;
	pid_t pid;

	if (posix_spawnp(&pid, argv[0], quiet, NULL, argv, environ) != 0)
		die(argv[0]);
	if (wait4(pid, &status, 0, &usage) != pid)
		die("wait4");
	begun = now_ms() - begun;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		for (char **a = argv; *a; a++)
			(void)fprintf(stderr, "%s ", *a);
		die("failed");
	}
	if (usage.ru_maxrss > *max_rss_kb)
		*max_rss_kb = usage.ru_maxrss;
	return begun;
}

static double run_side(struct side *side, int run, const posix_spawn_file_actions_t *quiet)
{
	double ms = 0;

	for (int i = 0; i < side->n_commands; i++) {
		char *argv[MAX_ARGS + 1];
		char room[4096];

		number_args(side->commands[i], run, argv, room, sizeof(room));
		ms += run_command(argv, quiet, &side->max_rss_kb);
	}
	return ms;
}

/* Cut the arguments at the separators, in place. */
static int parse_sides(char **argv, struct side *sides)
{
	int n = 0;

	sides[0].commands[sides[0].n_commands++] = argv;
	for (; *argv; argv++) {
		if (strcmp(*argv, "---") == 0) {
			if (++n == MAX_SIDES)
				die("too many sides");
		} else if (strcmp(*argv, "--then") == 0) {
			if (sides[n].n_commands == MAX_COMMANDS)
				die("too many commands");
		} else {
			continue;
		}
		*argv = NULL;
		sides[n].commands[sides[n].n_commands++] = argv + 1;
	}
	for (int i = 0; i <= n; i++)
		for (int c = 0; c < sides[i].n_commands; c++)
			if (!sides[i].commands[c][0])
				die("an empty command");
	return n + 1;
}

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double median(double *values, int n)
{
	qsort(values, (size_t)n, sizeof(*values), compare);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

static void report(struct side *sides, int n_sides, int runs)
{
	double *diff = calloc((size_t)runs * (size_t)n_sides, sizeof(*diff));

	if (!diff)
		die("out of memory");
	for (int s = 0; s < n_sides; s++)
		for (int i = 0; i < runs; i++)
			diff[s * runs + i] = sides[s].ms[i] - sides[0].ms[i];
	for (int s = 0; s < n_sides; s++)
		(void)printf("%.3f %.3f %ld\n", median(sides[s].ms, runs),
			     median(&diff[s * runs], runs), sides[s].max_rss_kb);
	free(diff);
}

int main(int argc, char **argv)
{
	static struct side sides[MAX_SIDES];
	posix_spawn_file_actions_t quiet;
	int n_sides;
	char *end;
	long runs;

	if (argc < 3)
		die("usage: pairs RUNS SIDE --- SIDE [--- SIDE]...");
	runs = strtol(argv[1], &end, 10);
	if (*end || runs < 1 || runs > MAX_RUNS)
		die("RUNS is a number from 1 to 10000");
	n_sides = parse_sides(argv + 2, sides);
	for (int s = 0; s < n_sides; s++) {
		sides[s].ms = calloc((size_t)runs, sizeof(*sides[s].ms));
		if (!sides[s].ms)
			die("out of memory");
	}
	if (posix_spawn_file_actions_init(&quiet) != 0 ||
	    posix_spawn_file_actions_addopen(&quiet, 0, "/dev/null", O_RDONLY, 0) != 0 ||
	    posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0) != 0)
		die("out of memory");
	for (int run = -WARM_UP; run < (int)runs; run++)
		for (int i = 0; i < n_sides; i++) {
			struct side *side = &sides[(i + run + WARM_UP) % n_sides];
			double ms = run_side(side, run + WARM_UP, &quiet);

			if (run >= 0)
				side->ms[run] = ms;
		}
	report(sides, n_sides, (int)runs);
	for (int s = 0; s < n_sides; s++)
		free(sides[s].ms);
	(void)posix_spawn_file_actions_destroy(&quiet);
	return fflush(stdout) == 0 ? 0 : 1;
}
