/* SPDX-License-Identifier: MIT */
/* A line on stderr for work of more than a second. */
#include <string.h>

#include "core/cli/cmd.h"
#include "core/util/clock.h"

#define QUIET_MS 1000 /* nothing before that */
#define TERMINAL_STEP_MS 200
#define PLAIN_STEP_MS 5000

static struct {
	char what[64];
	int64_t started_ms, shown_ms;
	bool on_line;
} line;

static void format_bytes(uint64_t n, char *text, size_t size)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	double value = (double)n;
	size_t unit = 0;

	while (value >= 1024 && unit + 1 < ABX_N_ELEMENTS(units)) {
		value /= 1024;
		unit++;
	}
	(void)snprintf(text, size, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
}

static void print_state(uint64_t done, uint64_t total, int64_t now, bool terminal)
{
	double seconds = (double)(now - line.started_ms) / 1000;
	double rate = (double)done / seconds;
	char bytes[32], speed[32], left[48] = "";

	format_bytes(done, bytes, sizeof(bytes));
	format_bytes((uint64_t)rate, speed, sizeof(speed));
	if (total > done && rate > 0)
		(void)snprintf(left, sizeof(left), ", %.0f s left", (double)(total - done) / rate);
	if (total)
		(void)fprintf(stderr, "%s%s: %s (%u%%), %s/s%s%s", terminal ? "\r\033[K" : "",
			      line.what, bytes, (unsigned int)(done * 100 / total), speed, left,
			      terminal ? "" : "\n");
	else if (done)
		(void)fprintf(stderr, "%s%s: %s, %s/s%s", terminal ? "\r\033[K" : "", line.what,
			      bytes, speed, terminal ? "" : "\n");
	else
		(void)fprintf(stderr, "%s%s: %.0f s%s", terminal ? "\r\033[K" : "", line.what,
			      seconds, terminal ? "" : "\n");
	line.on_line = terminal;
}

int abx_progress_show(void *cli_, uint64_t done, uint64_t total, const char *what)
{
	struct abx_cli *cli = cli_;
	bool terminal = isatty(STDERR_FILENO) == 1;
	int64_t now = abx_now_ms();

	if (abx_app_cancelled(&cli->app))
		return ABX_ECANCELED;
	if (cli->json)
		return 0;
	if (strncmp(line.what, what, sizeof(line.what) - 1) != 0) {
		abx_progress_end(cli);
		(void)snprintf(line.what, sizeof(line.what), "%s", what);
		line.started_ms = line.shown_ms = now;
	}
	if (now - line.started_ms < QUIET_MS ||
	    now - line.shown_ms < (terminal ? TERMINAL_STEP_MS : PLAIN_STEP_MS))
		return 0;
	line.shown_ms = now;
	print_state(done, total, now, terminal);
	return 0;
}

void abx_progress_end(struct abx_cli *cli)
{
	(void)cli;
	if (line.on_line)
		(void)fputs("\r\033[K", stderr);
	memset(&line, 0, sizeof(line));
}
