/* SPDX-License-Identifier: MIT */
/*
 * Time commands against each other: pairs RUNS SIDE --- SIDE [--- SIDE]...
 *
 * A side is a command, or several one after the other with --then between them, or several such
 * rows of commands at once with --and between them.  What a side's first command takes is not
 * counted when it begins with --first: it makes ready what the others are about.  In each run
 * every side runs once, in an order that turns, so that whatever slows the machine for a while
 * slows all sides; @N@ in an argument becomes the number of the run.  Output is discarded; a
 * command that fails ends it.
 * Prints one line a side: median in ms, the median of the differences to the first side in ms,
 * the largest resident set in KB, the median of the processor time in ms, which hardly depends
 * on what else runs.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

enum {
	MAX_SIDES = 4,
	MAX_COMMANDS = 512,
	MAX_ROWS = 64,
	MAX_ARGS = 64,
	MAX_RUNS = 10000,
	WARM_UP = 3
};

struct side {
	char **commands[MAX_COMMANDS];
	char **first; /* or NULL */
	int n_commands;
	int ends[MAX_ROWS]; /* of each row of commands, behind its last */
	int n_rows;
	double *ms, *cpu_ms;
	long max_rss_kb;
};

/* A command under way. */
struct running {
	pid_t pid;
	int command;
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

static double ms_of(struct timeval t)
{
	return (double)t.tv_sec * 1e3 + (double)t.tv_usec / 1e3;
}

static pid_t start(char **command, int run, const posix_spawn_file_actions_t *quiet)
{
	char *argv[MAX_ARGS + 1];
	char room[4096];
	pid_t pid;

	number_args(command, run, argv, room, sizeof(room));
	if (posix_spawnp(&pid, argv[0], quiet, NULL, argv, environ) != 0)
		die(argv[0]);
	return pid;
}

static void check(char **command, int status)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return;
	for (char **a = command; *a; a++)
		(void)fprintf(stderr, "%s ", *a);
	die("failed");
}

static void make_ready(char **command, int run, const posix_spawn_file_actions_t *quiet)
{
	pid_t pid = start(command, run, quiet);
	int status;

	if (waitpid(pid, &status, 0) != pid)
		die("waitpid");
	check(command, status);
}

/* All rows at once, each of them one command after the other. */
static double run_side(struct side *side, int run, const posix_spawn_file_actions_t *quiet,
		       double *ret_cpu_ms)
{
	struct running rows[MAX_ROWS];
	double begun;
	int left = side->n_rows;

	if (side->first)
		make_ready(side->first, run, quiet);
	begun = now_ms();
	*ret_cpu_ms = 0;
	for (int i = 0; i < side->n_rows; i++) {
		rows[i].command = i ? side->ends[i - 1] : 0;
		rows[i].pid = start(side->commands[rows[i].command], run, quiet);
	}
	while (left) {
		struct rusage usage;
		int status, i = 0;
		pid_t pid = wait4(-1, &status, 0, &usage);

		if (pid < 0)
			die("wait4");
		while (i < side->n_rows && rows[i].pid != pid)
			i++;
		if (i == side->n_rows)
			continue;
		check(side->commands[rows[i].command], status);
		*ret_cpu_ms += ms_of(usage.ru_utime) + ms_of(usage.ru_stime);
		if (usage.ru_maxrss > side->max_rss_kb)
			side->max_rss_kb = usage.ru_maxrss;
		rows[i].pid = -1;
		if (++rows[i].command < side->ends[i])
			rows[i].pid = start(side->commands[rows[i].command], run, quiet);
		else
			left--;
	}
	return now_ms() - begun;
}

static void add_command(struct side *side, char **argv, bool new_row)
{
	if (!side->n_rows && !side->first && *argv && strcmp(*argv, "--first") == 0) {
		side->first = argv + 1;
		return;
	}
	new_row = new_row || !side->n_rows;
	if (side->n_commands == MAX_COMMANDS || (new_row && side->n_rows == MAX_ROWS))
		die("too many commands");
	side->commands[side->n_commands++] = argv;
	side->n_rows += new_row;
	side->ends[side->n_rows - 1] = side->n_commands;
}

/* Cut the arguments at the separators, in place. */
static int parse_sides(char **argv, struct side *sides)
{
	int n = 0;

	add_command(&sides[0], argv, true);
	for (; *argv; argv++) {
		const bool side = strcmp(*argv, "---") == 0, row = strcmp(*argv, "--and") == 0;

		if (!side && !row && strcmp(*argv, "--then") != 0)
			continue;
		if (side && ++n == MAX_SIDES)
			die("too many sides");
		*argv = NULL;
		add_command(&sides[n], argv + 1, side || row);
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
		(void)printf("%.3f %.3f %ld %.3f\n", median(sides[s].ms, runs),
			     median(&diff[s * runs], runs), sides[s].max_rss_kb,
			     median(sides[s].cpu_ms, runs));
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
		sides[s].cpu_ms = calloc((size_t)runs, sizeof(*sides[s].cpu_ms));
		if (!sides[s].ms || !sides[s].cpu_ms)
			die("out of memory");
	}
	if (posix_spawn_file_actions_init(&quiet) != 0 ||
	    posix_spawn_file_actions_addopen(&quiet, 0, "/dev/null", O_RDONLY, 0) != 0 ||
	    posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0) != 0)
		die("out of memory");
	for (int run = -WARM_UP; run < (int)runs; run++)
		for (int i = 0; i < n_sides; i++) {
			struct side *side = &sides[(i + run + WARM_UP) % n_sides];
			double cpu_ms, ms = run_side(side, run + WARM_UP, &quiet, &cpu_ms);

			if (run < 0)
				continue;
			side->ms[run] = ms;
			side->cpu_ms[run] = cpu_ms;
		}
	report(sides, n_sides, (int)runs);
	for (int s = 0; s < n_sides; s++) {
		free(sides[s].ms);
		free(sides[s].cpu_ms);
	}
	(void)posix_spawn_file_actions_destroy(&quiet);
	return fflush(stdout) == 0 ? 0 : 1;
}
