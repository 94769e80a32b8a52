#!/bin/sh
# SPDX-License-Identifier: MIT
# The house rules hold in the whole tree, and the tool that says so finds a breach of each.
. "${0%/*}/functions.sh"

lint()
{
	perl "$SRC/tests/cli/lint.pl" "$@"
}

bad=$T/tree/core/util
mkdir -p "$bad" "$T/tree/tests/unit" "$T/tree/providers/x" "$T/tree/core/box" \
	"$T/tree/core/checkpoint"

# finds RULE FILE TEXT: a tree with only this file breaches the rule.
finds()
{
	printf '/* SPDX-License-Identifier: MIT */\n' >"$T/tree/$2"
	printf "$3" >>"$T/tree/$2"
	code 1 "$1 is found: $(printf '%s' "$3" | head -n 1 | cut -c1-40)" lint "$1" "$T/tree"
	rm "$T/tree/$2"
}

clean()
{
	printf '/* SPDX-License-Identifier: MIT */\n' >"$T/tree/$2"
	printf "$3" >>"$T/tree/$2"
	ok "$1 is not seen in: $(printf '%s' "$3" | head -n 1 | cut -c1-40)" lint "$1" "$T/tree"
	rm "$T/tree/$2"
}

for rule in spdx banned no-fork function-length file-length line-length comments words sleep \
	arrows; do
	ok "$rule" lint "$rule" "$SRC"
done

# The helper that unpacks seeds does so in the box.
is "$(cd "$SRC" && grep -rlE 'read_new\>|read_next_header\>|archive_write_disk' core \
	providers sdk --include='*.[ch]' | LC_ALL=C sort | tr '\n' ' ')" \
	'core/util/archive-extract.c core/util/archive.h providers/local/tar-unpack.c ' \
	'B044 one function unpacks what comes from a box'
is "$(cd "$SRC" && grep -rn 'abx_tar_extract(' core providers sdk --include='*.c' | cut -d: -f1 |
	LC_ALL=C sort | tr '\n' ' ')" 'core/box/copy.c core/util/archive-extract.c ' \
	'B044 and one place calls it'

printf '/* MIT */\n' >"$bad/a.c"
code 1 'spdx is found: another first line' lint spdx "$T/tree"
rm "$bad/a.c"
finds banned core/util/a.c 'void f(char *a) { strcpy(a, "x"); }\n'
finds banned core/util/a.c 'int f(const char *a) { return (int)strtol (a, 0, 10); }\n'
clean banned core/util/a.c '/* never strcpy(a, b) */ char *f(void) { return "system(x)"; }\n'
clean banned core/util/a.c 'int f(void) { return p->system(1) + my_signal(2); }\n'
finds no-fork core/util/a.c 'int f(void) { return fork(); }\n'
long=$(awk 'BEGIN { for (i = 0; i < 101; i++) printf "\\tx++;\\n" }')
finds function-length core/util/a.c "int f(int x)\n{\n${long}}\n"
many=$(awk 'BEGIN { for (i = 0; i < 701; i++) printf "int x;\\n" }')
finds file-length core/util/a.c "$many"
wide=$(awk 'BEGIN { for (i = 0; i < 93; i++) printf "x" }')
finds line-length core/util/a.c "\t$wide\n"
finds comments core/util/a.c 'int x; // why\n'
clean comments core/util/a.c 'const char *u = "http://x"; /* see http://y */\n'
finds words core/util/a.c '/* FIX''ME later */\n'
finds words core/util/a.c '/* /ho''me/somebody/src */\n'
finds sleep tests/unit/a.c 'void f(void) { sleep(1); }\n'
finds sleep tests/unit/a.sh 'true\n\tsleep 1\n'
clean sleep tests/unit/a.sh 'ab exec one -- sleep 1000 &\n'
finds arrows core/util/a.c '#include "core/state/db.h"\n'
finds arrows core/checkpoint/a.c '#include "core/box/app.h"\n'
clean arrows core/box/a.c '#include "core/checkpoint/take.h"\n'
finds arrows providers/x/a.c '#include "core/util/err.h"\n'
clean arrows providers/x/a.c '#include "abxsdk/buf.h"\n#include <stdio.h>\n'
done_testing
