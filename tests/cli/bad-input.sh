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

if is_root && have setpriv; then
	mkdir -m 0700 "$T/private"
	chmod 755 "$T"
	mkdir -m 0777 "$T/homes"
	one_line_error 1 'Permission denied' 'workspace unreadable' \
		env AGENTBOX_HOME="$T/homes/h" setpriv --reuid 12345 --regid 12345 --clear-groups \
		"$BUILD/tests/wrapper" agentbox create --provider mock -w "$T/private" -y
	mkdir -m 0555 "$T/readonly"
	one_line_error 1 'Permission denied' 'unwritable home' \
		env AGENTBOX_HOME="$T/readonly/h" setpriv --reuid 12345 --regid 12345 \
		--clear-groups "$BUILD/tests/wrapper" agentbox create --provider mock \
		-w "$T/repo" -y
fi

printf 'defaults:\n  box:\n    image: /etc\n' >agentbox.yaml
one_line_error 6 "agentbox.yaml: line 3: .*'box.image'" 'a key that a repository may not set' \
	create -n no
rm agentbox.yaml
printf 'defaults: [\n' >agentbox.yaml
no 'a repository whose agentbox.yaml is broken' create -n no
rm agentbox.yaml
no 'none of these made a box' ab status no
is "$(ab list -g --json)" '[]' 'no record is left'
is "$(find "$AGENTBOX_HOME/tmp" "$AGENTBOX_HOME/boxes" "$AGENTBOX_HOME/locks" -mindepth 1 \
	2>/dev/null)" '' 'no file is left'

printf 'box: {provider: [\n' >"$AGENTBOX_HOME/config.yaml"
run ab config get box.provider
is "$status" 0 'a damaged configuration does not stop anybody'
like "$err" 'damaged' 'it is said'
like "$(ls "$AGENTBOX_HOME")" 'config.yaml.damaged' 'it is set aside'

ok 'a box before the database is damaged' create -n keeper
# Boxes that are older than the database are told by their second.
second=$(date +%s)
later()
{
	[ "$(date +%s)" -gt "$second" ]
}
wait_for 5 later
printf 'this is not a database, whatever it was before, and it is long enough' \
	>"$AGENTBOX_HOME/agentbox.db"
rm -f "$AGENTBOX_HOME"/agentbox.db-wal "$AGENTBOX_HOME"/agentbox.db-shm
run ab list -g
is "$status" 0 'a damaged database does not stop anybody'
like "$err" 'damaged' 'it is said'
like "$(ls "$AGENTBOX_HOME")" 'agentbox.db.damaged' 'it is set aside'
run ab prune -y
like "$out" 'keeper.*agentbox recover' 'prune leaves a box whose record was lost alone'
ok 'its boxes are found again' ab recover
run ab exec keeper -- cat a.txt
is "$out" 'alpha' 'and work'
ok 'and can be destroyed' ab destroy keeper -y

if is_root && have unshare mount; then
	mkdir "$T/small"
	cat >"$T/full.sh" <<'END'
mount -t tmpfs -o size=2m tmpfs "$1" || exit 99
AGENTBOX_HOME=$1/home
export AGENTBOX_HOME
"$2/tests/wrapper" agentbox list >/dev/null 2>&1 || exit 98
head -c 4000000 /dev/zero >"$1/filler" 2>/dev/null
"$2/tests/wrapper" agentbox create --provider mock -w "$3" -n full -y 2>"$4"
code=$?
rm -f "$1/filler"
"$2/tests/wrapper" agentbox prune -y >/dev/null 2>&1 || exit 97
[ "$("$2/tests/wrapper" agentbox list -g --json)" = '[]' ] || exit 96
"$2/tests/wrapper" agentbox create --provider mock -w "$3" -n full -y >/dev/null 2>&1 || exit 95
"$2/tests/wrapper" agentbox destroy full -y >/dev/null 2>&1 || exit 94
exit "$code"
END
	code 1 'a full disk fails, and works again once there is room' \
		unshare -m sh "$T/full.sh" "$T/small" "$BUILD" "$T/repo" "$T/full.err"
	is "$(wc -l <"$T/full.err" | tr -d ' ')" 1 'in one line'
	like "$(cat "$T/full.err")" 'agentbox: .*(full|No space)' 'that says so'
fi
done_testing
