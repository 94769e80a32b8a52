/* SPDX-License-Identifier: MIT */
/*
 * tests/unit/back-box.h: a seeded box whose work is brought back.
 *
 *	begin(ONE);
 *	in_box("echo x >>a.txt");
 *	apply();
 *	is_listed("M a.txt\n");
 */
#ifndef ABX_TEST_BACK_BOX_H
#define ABX_TEST_BACK_BOX_H

#include "core/seed/back.h"
#include "tests/unit/seed-box.h"

extern struct abx_changes changes;
extern struct abx_back back;

#define ONE                                                                                   \
	"git init -q . && printf 'alpha\\n' >a.txt && mkdir src && printf '#!/bin/sh\\n' "    \
	">src/run && chmod 755 src/run && ln -s src/run link && printf '*.o\\n' >.gitignore " \
	"&& git add . && git commit -q -m one"

/* Make a repository in host/ with a script, and seed the box. */
void begin(const char *script);
/* A teardown; ends with unit_dir_teardown. */
void finish(void);

/* What would come, into `changes`; and bring it. */
void ask(void);
void apply(void);
/* Every change as "K path", or "K path: problem", one a line. */
void is_listed(const char *want);
/* Host and box have the same files. */
void same_trees(void);

#endif
