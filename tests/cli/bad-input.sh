#!/bin/sh
# SPDX-License-Identifier: MIT
# Bad input: one line each, the right exit code, nothing half-made.
. "${0%/*}/functions.sh"

mkdir "$T/repo"
make_repo "$T/repo" >/dev/null
cd "$T/repo" || exit 99
P='--provider mock'

# shellcheck disable=SC2086 # options of our own, split on purpose
create()
{
	ab create $P -y "$@"
}

one_line_error 5 "provider 'nowhere' not found" 'unknown provider' ab create --provider nowhere -y
one_line_error 3 "no box 'x'" 'unknown box' ab status x
one_line_error 2 'unknown option' 'unknown option' create --no-such-thing
one_line_error 2 'needs a value' 'option without its value' create -n
one_line_error 2 'duration' 'bad duration' create --timeout soon
one_line_error 1 'No such file' 'workspace missing' create -w "$T/none"
one_line_error 2 'empty' 'workspace empty' create -w ''
one_line_error 1 'not a directory' 'workspace is a file' create -w "$T/repo/a.txt"
one_line_error 2 'usable' 'name with a slash' create -n 'a/b'
one_line_error 2 'usable' 'name with dots' create -n '..'
one_line_error 2 'usable' 'name with a quote' create -n "a'b"
one_line_error 2 'usable' 'name with a newline' create -n 'a
b'
one_line_error 2 'usable' 'name with a command' create -n '$(id)'
one_line_error 2 'usable' 'name of 300 bytes' create -n "$(printf 'a%.0s' $(seq 300))"
one_line_error 2 'digits' 'name of digits' create -n 123
one_line_error 2 'empty' 'empty name' create -n ''
one_line_error 125 'behind' 'exec without a command' ab exec x
one_line_error 125 "no box 'x'" 'exec in an unknown box' ab exec x -- true
code 2 'unknown command' ab frobnicate
code 2 'no command' ab

mkdir "$T/plugins"
printf 'not an object file\n' >"$T/plugins/agentbox-broken.so"
AGENTBOX_PROVIDER_PATH=$T/plugins:$BUILD/tests/mock/.libs
export AGENTBOX_PROVIDER_PATH
one_line_error 5 'not an agentbox provider' 'broken plugin' ab create --provider broken -y
ok 'a broken plugin hinders no other' create -n fine
ok 'nor its box' ab destroy fine -y

limited() # ulimit's option and its value, command
(
	ulimit "$1" "$2"
	AGENTBOX_HOME=$T/limited$1
	shift 2
	"$@"
)
one_line_error 1 'ulimit -f' 'a limit on the size of files' limited -f 8 ab list -g
one_line_error 1 'ulimit -n' 'a limit on open files' limited -n 20 create -n few

masked()
(
	umask 0777
	AGENTBOX_HOME=$T/masked
	ab list -g
)
code 0 'a umask that takes rights from the owner' masked
is "$(stat -c %a "$T/masked" "$T/masked/agentbox.db" | tr '\n' ' ')" '700 600 ' 'takes none here'

code 0 'help of a provider' ab local --help
like "$out" 'create' 'is that of agentbox'

code 0 'nothing to prune' ab prune -y
code 0 'nothing to prune, again' ab prune -y
is "$err" '' 'providers that were never used are not spoken of'
done_testing
