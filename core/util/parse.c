/* SPDX-License-Identifier: MIT */
/* Numbers, durations, sizes and names from text. */
#include "core/util/parse.h"

#include <string.h>

struct unit {
	const char *suffix;
	uint64_t factor;
};

static bool parse_with_unit(const char *text, const struct unit *units, size_t n_units,
			    uint64_t max, uint64_t *ret)
{
	uint64_t value;

	if (!abx_parse_digits(&text, max, &value))
		return false;
	for (size_t i = 0; i < n_units; i++) {
		if (strcmp(text, units[i].suffix) != 0)
			continue;
		if (value > max / units[i].factor)
			return false;
		*ret = value * units[i].factor;
		return true;
	}
	return false;
}

int abx_parse_duration_ms(const char *text, int64_t *ret_ms, struct abx_err *err)
{
	static const struct unit units[] = {{"", 1000},	  {"ms", 1},	  {"s", 1000},
					    {"m", 60000}, {"h", 3600000}, {"d", 86400000}};
	const uint64_t ten_years_ms = UINT64_C(10) * 366 * 86400000;
	uint64_t ms;

	if (!parse_with_unit(text, units, ABX_N_ELEMENTS(units), ten_years_ms, &ms))
		return abx_err_set(err, ABX_EINVAL,
				   "'%.40s' is not a duration (use 90, 1s, 5m, 2h)", text);
	*ret_ms = (int64_t)ms;
	return 0;
}

int abx_parse_size_bytes(const char *text, uint64_t *ret_bytes, struct abx_err *err)
{
	static const struct unit units[] = {{"", 1},
					    {"K", UINT64_C(1) << 10},
					    {"M", UINT64_C(1) << 20},
					    {"G", UINT64_C(1) << 30},
					    {"T", UINT64_C(1) << 40}};

	if (!parse_with_unit(text, units, ABX_N_ELEMENTS(units), INT64_MAX, ret_bytes))
		return abx_err_set(err, ABX_EINVAL, "'%.40s' is not a size (use 64M, 2G)", text);
	return 0;
}

int abx_parse_cpu_milli(const char *text, uint32_t *ret_milli, struct abx_err *err)
{
	const uint64_t least = 10, most = UINT64_C(1024) * 1000;
	const char *at = text;
	uint64_t whole = 0, milli = 0;
	bool good = abx_parse_digits(&at, most, &whole);

	if (good && *at == '.') {
		const char *digits = ++at;

		good = abx_parse_digits(&at, 999, &milli) && at - digits <= 3;
		for (size_t n = (size_t)(at - digits); good && n < 3; n++)
			milli *= 10;
	}
	milli += whole * 1000;
	if (!good || *at || milli < least || milli > most)
		return abx_err_set(err, ABX_EINVAL,
				   "'%.40s' is not a number of processors (use 2, 0.5)", text);
	*ret_milli = (uint32_t)milli;
	return 0;
}

int abx_parse_depth(const char *text, int64_t *ret, struct abx_err *err)
{
	char shown[64];
	uint64_t n = 0;

	if (strcmp(text, "full") == 0) {
		*ret = -1;
		return 0;
	}
	if (abx_parse_u64(text, INT32_MAX, &n) && n) {
		*ret = (int64_t)n;
		return 0;
	}
	abx_quote_text(text, shown, sizeof(shown));
	return abx_err_set(err, ABX_EINVAL, "depth '%s': neither a number of commits nor 'full'",
			   shown);
}

int abx_parse_bool(const char *text, bool *ret, struct abx_err *err)
{
	static const char *const yes[] = {"true", "yes", "on", "1"};
	static const char *const no[] = {"false", "no", "off", "0"};

	for (size_t i = 0; i < ABX_N_ELEMENTS(yes); i++) {
		if (strcmp(text, yes[i]) == 0 || strcmp(text, no[i]) == 0) {
			*ret = strcmp(text, yes[i]) == 0;
			return 0;
		}
	}
	return abx_err_set(err, ABX_EINVAL, "'%.40s' is neither true nor false", text);
}

static bool is_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
}

int abx_check_box_name(const char *name, struct abx_err *err)
{
	size_t len = strlen(name), digits = strspn(name, "0123456789");
	char shown[64];
	bool good = len > 0 && len <= 63 && name[0] != '-' && name[len - 1] != '-';

	for (size_t i = 0; i < len && good; i++)
		good = is_name_char(name[i]);
	abx_quote_text(name, shown, sizeof(shown));
	if (!good) {
		(void)abx_err_set(err, ABX_EUSAGE, "'%s' is not usable as a name", shown);
		(void)abx_err_remedy(err, "use 1 to 63 of a-z, 0-9 and -, starting and ending "
					  "with a letter or digit");
		return ABX_EUSAGE;
	}
	if (digits == len) {
		(void)abx_err_set(err, ABX_EUSAGE,
				  "'%s' is not usable as a name: it has only digits", shown);
		(void)abx_err_remedy(err, "a number means a box's index; add a letter");
		return ABX_EUSAGE;
	}
	return 0;
}

bool abx_is_provider_name(const char *name)
{
	size_t len = strlen(name);

	if (len < 1 || len > 31 || name[0] < 'a' || name[0] > 'z')
		return false;
	for (size_t i = 0; i < len; i++)
		if (!is_name_char(name[i]))
			return false;
	return true;
}

static bool is_plain(const unsigned char *s, size_t n)
{
	/* C1 controls and bidirectional overrides could repaint a terminal. */
	if (n == 2 && s[0] == 0xc2 && s[1] < 0xa0)
		return false;
	if (n == 3 && s[0] == 0xe2 && s[1] == 0x80 && s[2] >= 0xa8 && s[2] <= 0xae)
		return false;
	if (n == 3 && s[0] == 0xe2 && s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9)
		return false;
	return n > 1 || (n == 1 && s[0] >= 0x20 && s[0] != 0x7f);
}

static void show(const char *bytes, const char *also, char *text, size_t size)
{
	const unsigned char *s = (const unsigned char *)bytes;
	size_t at = 0;

	while (*s) {
		size_t n = abx_utf8_len(s);
		bool plain = is_plain(s, n) && !strchr(also, *s);
		size_t need = plain ? n : 4;

		if (at + need + 4 > size) {
			(void)snprintf(text + at, size - at, "...");
			return;
		}
		if (plain) {
			memcpy(text + at, s, n);
			s += n;
		} else {
			(void)snprintf(text + at, size - at, "\\x%02x", *s);
			s++;
		}
		at += need;
	}
	text[at] = '\0';
}

void abx_quote_text(const char *bytes, char *text, size_t size)
{
	show(bytes, "\\'", text, size);
}

void abx_show_text(const char *bytes, char *text, size_t size)
{
	show(bytes, "", text, size);
}
