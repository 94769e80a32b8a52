/* SPDX-License-Identifier: MIT */
/* What runs inside a box. */
#include "core/seed/seed-script.h"

/* safe.directory does not apply to a repository that is named by --git-dir.  The trim
 * threshold: zlib takes 268 KiB for each object, which glibc would give back each time. */
#define PRELUDE                                                                                   \
	"LC_ALL=C GIT_OPTIONAL_LOCKS=0 GIT_TERMINAL_PROMPT=0 GIT_PAGER=cat\n"                     \
	"MALLOC_TRIM_THRESHOLD_=67108864\n"                                                       \
	"export LC_ALL GIT_OPTIONAL_LOCKS GIT_TERMINAL_PROMPT GIT_PAGER MALLOC_TRIM_THRESHOLD_\n" \
	"unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_OBJECT_DIRECTORY GIT_COMMON_DIR\n"        \
	"unset GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_NAMESPACE GIT_EXTERNAL_DIFF\n"                \
	"umask 077\n"                                                                             \
	"cd \"$1\" || exit 90\n"                                                                  \
	"dir=$PWD\n"                                                                              \
	"fail() { printf '%s\\n' \"$1\" >&2; exit 90; }\n"                                        \
	"[ -n \"${HOME-}\" ] || fail 'HOME is not set in the box'\n"                              \
	"shadow=$HOME/.agentbox/seed.git\n"                                                       \
	"sgit() {\n"                                                                              \
	"\tGIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 \\\n"                                \
	"\tgit --git-dir=\"$shadow\" --work-tree=\"$dir\" \"$@\"\n"                               \
	"}\n"

#define NEEDS_RECORD                                  \
	"command -v git >/dev/null 2>&1 || exit 91\n" \
	"[ -d \"$shadow\" ] || exit 93\n"

/* The current tree of the workspace, in $tree; an index of its own, so that two of these at
 * once do not meet, which becomes the next one's starting point. */
#define CURRENT_TREE                                                                            \
	"tmp=$shadow/index.$$\n"                                                                \
	"trap 'rm -f \"$tmp\" \"$tmp.lock\" \"$tmp.err\"' EXIT\n"                               \
	"trap 'exit 90' HUP INT TERM\n"                                                         \
	"[ ! -f \"$shadow/index\" ] || cp -p \"$shadow/index\" \"$tmp\" || fail 'cp failed'\n"  \
	"force=\n"                                                                              \
	"[ ! -f \"$shadow/plain\" ] || force=-f\n"                                              \
	"partial=\n"                                                                            \
	"GIT_INDEX_FILE=$tmp sgit add -A $force --ignore-errors >/dev/null 2>\"$tmp.err\" ||\n" \
	"\tpartial=1\n"                                                                         \
	"tree=$(GIT_INDEX_FILE=$tmp sgit write-tree) || { cat \"$tmp.err\" >&2; exit 90; }\n"   \
	"[ -z \"$partial\" ] || cat \"$tmp.err\" >&2\n"                                         \
	"[ -n \"$partial\" ] || mv -f \"$tmp\" \"$shadow/index\"\n"

const char abx_script_seed[] = PRELUDE
	"kind=$2 base=$3 state=$4\n"
	"if ! command -v git >/dev/null 2>&1; then\n"
	"\t[ \"$kind\" = git ] || exit 0\n"
	"\texit 91\n"
	"fi\n"
	"connected= status= tree=\n"
	"if [ \"$kind\" = git ]; then\n"
	/* All at once, the longest first: they only read.  The times were kept, but neither the
	 * inodes nor the change times. */
	"\tgit -c core.checkStat=minimal -c core.fsmonitor=false \\\n"
	"\t	-c core.excludesFile=/dev/null -c status.showStash=false \\\n"
	"\t	status --porcelain=v2 -z --branch --untracked-files=all --no-renames \\\n"
	"\t	--no-ahead-behind --ignore-submodules=none </dev/null &\n"
	"\tstatus=$!\n"
	"\tgit rev-list --objects --quiet \"$base\" </dev/null >/dev/null &\n"
	"\tconnected=$!\n"
	/* When the status is that of the host, which is none, the work tree is the commit's. */
	"\t[ \"$state\" != clean ] ||\n"
	"\t	tree=$(git rev-parse --verify -q \"$base^{tree}\") || exit 90\n"
	/* It came with the stream, where one move makes it ours; each program more is as long
	 * as the work of git. */
	"\tif [ -e \"$HOME/.agentbox\" ]; then\n"
	"\t\trm -rf \"$shadow\" && mv .git/agentbox/seed.git \"$shadow\" &&\n"
	"\t\t	rmdir .git/agentbox\n"
	"\telse\n"
	"\t\tmv .git/agentbox \"$HOME/.agentbox\"\n"
	"\tfi || fail \"cannot make $shadow in the box\"\n"
	"else\n"
	"\t[ ! -e \"$shadow\" ] || rm -rf \"$shadow\"\n"
	"\tmkdir -p \"$shadow/objects/pack\" \"$shadow/refs/heads\" \"$shadow/info\" ||\n"
	"\t	fail \"cannot make $shadow in the box\"\n"
	"\t: >\"$shadow/plain\"\n"
	"\t: >\"$shadow/exclude\"\n"
	"fi\n"
	"printf 'ref: refs/heads/seed\\n' >\"$shadow/HEAD\"\n"
	"printf '%s\\n' '* -text -filter -ident -working-tree-encoding' \\\n"
	"\t>\"$shadow/info/attributes\"\n"
	"printf '%s\\n' '[core]' 'repositoryformatversion = 0' 'bare = false' 'fsync = none' \\\n"
	"\t'autocrlf = false' \"excludesFile = \\\"$shadow/exclude\\\"\" \\\n"
	"\t'attributesFile = /dev/null' \\\n"
	"\t'hooksPath = /dev/null' 'fsmonitor = false' 'untrackedCache = false' \\\n"
	"\t'quotePath = true' 'compression = 0' '[gc]' 'auto = 0' '[advice]' \\\n"
	"\t'addEmbeddedRepo = false' >\"$shadow/config\"\n"
	"[ \"$state\" != assumed ] || sgit ls-files -z |\n"
	"\tsgit update-index -z --no-assume-unchanged --stdin || exit 90\n"
	"force=\n"
	"[ \"$kind\" = git ] || force=-f\n"
	"if [ \"$state\" != clean ]; then\n"
	"\tsgit -c core.checkStat=minimal add -A $force </dev/null >/dev/null || exit 90\n"
	"\ttree=$(sgit write-tree) || exit 90\n"
	"fi\n"
	"[ -z \"$connected\" ] || wait \"$connected\" || exit 90\n"
	"[ -z \"$status\" ] || wait \"$status\" || exit 90\n"
	"printf 'tree %s\\n' \"$tree\"\n";

const char abx_script_changes[] = PRELUDE NEEDS_RECORD CURRENT_TREE
	"[ -z \"$partial\" ] || printf 'partial\\n'\n"
	"printf 'tree %s\\n' \"$tree\"\n"
	"sgit diff-tree -r -z --no-renames --raw --no-abbrev \"$2\" \"$tree\" || exit 90\n"
	"printf 'end\\000'\n";

const char abx_script_diff[] = PRELUDE NEEDS_RECORD CURRENT_TREE
	"stat=\n"
	"[ \"$3\" != stat ] || stat=--stat\n"
	"sgit diff --no-ext-diff --no-textconv --color=\"$4\" $stat \"$2\" \"$tree\" ||\n"
	"\texit 90\n";

const char abx_script_contents[] =
	PRELUDE NEEDS_RECORD "sgit cat-file --batch --buffer || exit 90\n";
