/* SPDX-License-Identifier: MIT */
/* Rows of a provider, shown. */
#include "core/cli/cells.h"

#include <string.h>

#include "core/util/mem.h"
#include "core/util/parse.h"

#define EXACT_MAX (UINT64_C(1) << 53)
#define SHOWN_BYTES 256

static const char *const units[] = {"_ms", "_bytes", "_percent", "_milli"};

/* The unit's place in the key, or its end. */
static size_t unit_at(const char *key)
{
	size_t len = strlen(key);

	for (size_t i = 0; i < ABX_N_ELEMENTS(units); i++) {
		size_t n = strlen(units[i]);

		if (len > n && strcmp(key + len - n, units[i]) == 0)
			return len - n;
	}
	return len;
}

static char *size_text(uint64_t bytes)
{
	static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	double value = (double)bytes;
	size_t i = 0;

	for (; value >= 1024 && i + 1 < ABX_N_ELEMENTS(names); i++)
		value /= 1024;
	return abx_xasprintf(i ? "%.1f %s" : "%.0f %s", value, names[i]);
}

char *abx_cell_text(const char *key, const char *value)
{
	const char *unit = key + unit_at(key);
	char shown[SHOWN_BYTES];
	uint64_t n;

	if (abx_parse_u64(value, UINT64_MAX, &n)) {
		/* A limit of nothing is none. */
		if (!n && strstr(key, "limit"))
			return abx_xstrdup("none");
		if (strcmp(unit, "_bytes") == 0)
			return size_text(n);
		if (strcmp(unit, "_ms") == 0)
			return abx_xasprintf("%.2f s", (double)n / 1000);
		if (strcmp(unit, "_milli") == 0)
			return abx_xasprintf("%.2f", (double)n / 1000);
	}
	abx_quote_text(value, shown, sizeof(shown));
	for (size_t len = strlen(shown); len && shown[len - 1] == ' '; len--)
		shown[len - 1] = '\0';
	return abx_xasprintf("%s%s", shown, strcmp(unit, "_percent") == 0 ? "%" : "");
}

char *abx_cell_label(const char *key)
{
	char shown[SHOWN_BYTES];

	abx_quote_text(key, shown, sizeof(shown));
	shown[unit_at(shown)] = '\0';
	for (char *at = shown; (at = strchr(at, '_')); at++)
		*at = ' ';
	return abx_xstrdup(shown);
}

cJSON *abx_cell_json(const struct abx_row *row, const char *except)
{
	cJSON *o = cJSON_CreateObject();

	for (size_t i = 0; i < row->len; i++) {
		const char *key = row->cells[i].key, *value = row->cells[i].value;
		uint64_t n;

		if (except && strcmp(key, except) == 0)
			continue;
		if (abx_parse_u64(value, EXACT_MAX, &n))
			(void)cJSON_AddNumberToObject(o, key, (double)n);
		else
			abx_json_text(o, key, value);
	}
	return o;
}

bool abx_row_is(const struct abx_row *row, const char *kind)
{
	const char *is = abx_row_get(row, "kind");

	return strcmp(is ? is : "box", kind) == 0;
}
