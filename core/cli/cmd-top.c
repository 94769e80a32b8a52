/* SPDX-License-Identifier: MIT */
/* agentbox top */
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "core/box/files.h"
#include "core/box/select.h"
#include "core/cli/cells.h"
#include "core/util/clock.h"
#include "core/util/mem.h"
#include "core/util/parse.h"

#define REFRESH_MS 2000
#define MAX_COLUMNS 12

/* One look at the processes; what stood in the last one gives the share of a processor. */
struct look {
	struct abx_row_list rows;
	int64_t at_ms;
};

static uint64_t number(const struct abx_row *row, const char *key)
{
	const char *text = abx_row_get(row, key);
	uint64_t n = 0;

	return text && abx_parse_u64(text, UINT64_MAX, &n) ? n : 0;
}

/* Processor time since the last look, or since it began. */
static uint64_t recent_ms(const struct abx_row *row, const struct look *last)
{
	uint64_t now = number(row, "cpu_ms");

	for (size_t i = 0; last && i < last->rows.len; i++) {
		const struct abx_row *old = &last->rows.items[i];

		if (number(old, "pid") == number(row, "pid") && number(old, "cpu_ms") <= now)
			return now - number(old, "cpu_ms");
	}
	return last ? 0 : now;
}

struct line {
	const struct abx_row *row;
	uint64_t recent;
};

static int busiest_first(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	if (x->recent != y->recent)
		return x->recent > y->recent ? -1 : 1;
	return number(x->row, "pid") < number(y->row, "pid") ? -1 : 1;
}

/* The keys of the first process; the share of a processor comes first when it is known. */
static size_t headings(const struct abx_row *row, bool share, const char **keys,
		       struct abx_strv *labels)
{
	size_t n = 0;

	if (share) {
		keys[n++] = NULL;
		abx_strv_add(labels, "CPU%");
	}
	for (size_t i = 0; i < row->len && n < MAX_COLUMNS; i++) {
		char *label;

		if (strcmp(row->cells[i].key, "kind") == 0)
			continue;
		keys[n++] = row->cells[i].key;
		label = abx_cell_label(row->cells[i].key);
		for (char *at = label; *at; at++)
			if (*at >= 'a' && *at <= 'z')
				*at = (char)(*at - 'a' + 'A');
		abx_strv_take(labels, label);
	}
	return n;
}

static void add_line(const struct line *l, const char *const *keys, size_t n_keys, int64_t since_ms,
		     struct abx_strv *cells)
{
	for (size_t k = 0; k < n_keys; k++) {
		const char *value = keys[k] ? abx_row_get(l->row, keys[k]) : NULL;

		if (!keys[k])
			abx_strv_take(cells, abx_xasprintf("%.0f", (double)l->recent * 100 /
									   (double)since_ms));
		else
			abx_strv_take(cells,
				      value ? abx_cell_text(keys[k], value) : abx_xstrdup(""));
	}
}

static int print_processes(const struct look *now, const struct look *last, size_t max_lines,
			   struct abx_err *err)
{
	abx_autofree struct line *lines = abx_xcalloc(now->rows.len + 1, sizeof(*lines));
	const char *keys[MAX_COLUMNS + 1];
	struct abx_strv cells = {0};
	size_t n = 0, n_keys;
	int r;

	for (size_t i = 0; i < now->rows.len; i++)
		if (abx_row_is(&now->rows.items[i], "process"))
			lines[n++] = (struct line){&now->rows.items[i],
						   recent_ms(&now->rows.items[i], last)};
	if (!n)
		return abx_out_line(err, "no processes");
	qsort(lines, n, sizeof(*lines), busiest_first);
	n_keys = headings(lines[0].row, last && now->at_ms > last->at_ms, keys, &cells);
	if (n > max_lines)
		n = max_lines;
	for (size_t i = 0; i < n; i++)
		add_line(&lines[i], keys, n_keys, last ? now->at_ms - last->at_ms : 1, &cells);
	r = abx_out_table((const char *const *)cells.items, n + 1, n_keys, err);
	abx_strv_release(&cells);
	return r;
}

static int look(struct abx_cli *cli, struct abx_box *box, struct look *ret, struct abx_err *err)
{
	ret->at_ms = abx_now_ms();
	return abx_box_stats(&cli->app, box, /* processes= */ true, &ret->rows, err);
}

static int once(struct abx_cli *cli, struct abx_box *box, struct abx_err *err)
{
	struct look now = {0};
	int r = look(cli, box, &now, err);

	if (r == 0 && cli->json) {
		cJSON *doc = cJSON_CreateArray();

		for (size_t i = 0; i < now.rows.len; i++)
			if (abx_row_is(&now.rows.items[i], "process"))
				(void)cJSON_AddItemToArray(
					doc, abx_cell_json(&now.rows.items[i], "kind"));
		r = abx_out_json(doc, err);
	} else if (r == 0) {
		r = print_processes(&now, NULL, SIZE_MAX, err);
	}
	abx_row_list_release(&now.rows);
	return r;
}

/* Keys without waiting for a line end; undone by restoring `ret_old`. */
static bool read_keys(struct termios *ret_old)
{
	struct termios raw;

	if (tcgetattr(STDIN_FILENO, ret_old) < 0)
		return false;
	raw = *ret_old;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	return tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
}

/* True when the user has seen enough: q, the end of input, Ctrl-C. */
static bool wait_for_end(const struct abx_cli *cli, bool keys)
{
	struct pollfd fds[2] = {{cli->app.host.cancel_fd, POLLIN, 0},
				{keys ? STDIN_FILENO : -1, POLLIN, 0}};
	int64_t until = abx_now_ms() + REFRESH_MS;

	for (int64_t left = REFRESH_MS; left > 0; left = until - abx_now_ms()) {
		char c = 'q';

		if (poll(fds, 2, (int)left) < 0 && errno != EINTR)
			return true;
		if (fds[0].revents)
			return true;
		if (fds[1].revents && (read(STDIN_FILENO, &c, 1) != 1 || c == 'q' || c == 3))
			return true;
	}
	return false;
}

static size_t terminal_lines(void)
{
	struct winsize size = {0};

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_row < 6)
		return 20;
	return (size_t)size.ws_row - 4;
}

static int live(struct abx_cli *cli, struct abx_box *box, struct abx_err *err)
{
	struct look last = {0}, now = {0};
	struct termios old;
	bool keys = isatty(STDIN_FILENO) && read_keys(&old);
	int r;

	for (bool first = true;; first = false) {
		r = look(cli, box, &now, err);
		if (r < 0)
			break;
		(void)printf("\033[H\033[2Jbox '%s', %s; q ends\n\n", box->name,
			     abx_box_state_name(box->state));
		r = print_processes(&now, first ? NULL : &last, terminal_lines(), err);
		abx_row_list_release(&last.rows);
		last = now;
		memset(&now, 0, sizeof(now));
		if (r < 0 || wait_for_end(cli, keys))
			break;
	}
	if (keys)
		(void)tcsetattr(STDIN_FILENO, TCSANOW, &old);
	abx_row_list_release(&now.rows);
	abx_row_list_release(&last.rows);
	return r == ABX_ECANCELED ? 0 : r;
}

static int run(struct abx_cli *cli, int argc, char **argv, struct abx_err *err)
{
	struct abx_box box = {0};
	bool one = false;
	const struct abx_opt opts[] = {
		{'1', "once", ABX_OPT_KIND_FLAG, &one, NULL, "look once, on a terminal too"}, {0}};
	const char *what;
	int r = abx_opts_one_box(cli, opts, argc, argv, &what, err);

	if (r != ABX_OPTS_GO)
		return r;
	r = abx_select_box(&cli->app, what, &box, err);
	if (r == 0 && (one || cli->json || !isatty(STDOUT_FILENO)))
		r = once(cli, &box, err);
	else if (r == 0)
		r = live(cli, &box, err);
	abx_box_release(&box);
	return r;
}

const struct abx_cmd abx_cmd_top = {
	.name = "top",
	.usage = "[BOX] [-1] [--json]",
	.summary = "Show the processes in a box.",
	.help = "On a terminal again every two seconds, until q or Ctrl-C.\n",
	.run = run,
};
