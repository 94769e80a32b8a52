/* SPDX-License-Identifier: MIT */
/*
 * core/state/envfile.h: KEY=value files: secrets.env, --env-file.
 *
 * The grammar of dotenv, one assignment a line:
 *
 *	# a comment, or nothing
 *	NAME=value            [A-Za-z_][A-Za-z0-9_]*; blanks before it and around = are fine
 *	export NAME=value
 *	BARE=a b#c  # comment  up to a blank followed by #; trailing blanks cut; no escapes
 *	RAW='a $b \n'          literal up to the next ', may span lines
 *	ESC="a\nb \$c"         \n \r \t \" \\ \$ \` are escapes, another \ stays; may span lines
 *
 * Behind a closing quote only blanks and a comment may follow.  Nothing is expanded or
 * executed.  CRLF ends a line as LF does (in a quoted value too, where the line of the
 * closing quote ends so); a byte order mark and a missing last newline are fine; a later
 * duplicate wins; NUL bytes and lines that are none of this are errors with their number.
 * Other bytes stay as they are, valid UTF-8 or not.
 */
#ifndef ABX_ENVFILE_H
#define ABX_ENVFILE_H

#include "abxsdk/buf.h"
#include "core/util/err.h"
#include "core/util/mem.h"

struct abx_env {
	struct abx_kv_owned {
		char *key, *value;
	} * items;
	size_t len;
};

#define ABX_ENV_FILE_MAX_BYTES (8u << 20)
#define ABX_ENV_MAX_VARIABLES 10000u

void abx_env_release(struct abx_env *e);
void abx_env_set(struct abx_env *e, const char *key, const char *value);
void abx_env_unset(struct abx_env *e, const char *key);
const char *abx_env_get(const struct abx_env *e, const char *key);
bool abx_env_key_ok(const char *key);

/* Parse text of `len` bytes; `name` is for messages.  Adds to `e`. */
int abx_env_parse(struct abx_env *e, const char *name, const char *text, size_t len,
		  struct abx_err *err);
/* The text with every assignment of `key` taken out and, unless value is NULL, this one at its end;
 * all else stays byte for byte.  Adds to `ret`. */
int abx_env_edit(const char *name, const char *text, size_t len, const char *key, const char *value,
		 struct abx_buf *ret, struct abx_err *err);
int abx_env_load(struct abx_env *e, const char *path, struct abx_err *err);
/* "K=V" or "K" (taken from our environment; ABX_EUSAGE when it is not there). */
int abx_env_add_arg(struct abx_env *e, const char *arg, struct abx_err *err);
/* All of --env-file, then all of -e, which win. */
int abx_env_collect(struct abx_env *e, const struct abx_strv *files, const struct abx_strv *args,
		    struct abx_err *err);
/* Text that abx_env_parse and a POSIX shell read back identically; free it. */
char *abx_env_format(const struct abx_env *e);
/* As an array for the ABI; pointers into `e`; free() the array. */
struct abx_kv *abx_env_kv(const struct abx_env *e);

#endif
