#!/bin/sh
# SPDX-License-Identifier: MIT
# Settings by the command: what is set where, what goes first, what is refused, secrets.
. "${0%/*}/functions.sh"

mkdir "$T/ws"
cd "$T/ws" || exit 99

value_of()
{
	ab config get "$1" 2>/dev/null
}

run ab config get box.provider
is "$out" local 'a built-in value'
one_line_error 1 'box.image: not set' 'a setting without a value' ab config get box.image
one_line_error 2 'no such setting' 'an unknown setting' ab config get box.none
one_line_error 2 'no such setting' 'an unknown one is not stored' ab config set box.none x
one_line_error 2 'usage' 'nothing to do' ab config
one_line_error 2 'usage' 'an unknown subcommand' ab config frobnicate
one_line_error 2 'usage' 'too few arguments' ab config set box.image
one_line_error 2 'usage' 'too many arguments' ab config get box.image x
one_line_error 2 'usage' '--repo without path' ab config list --repo
one_line_error 1 'box.timeout.*soon' 'a value of the wrong type' ab config set box.timeout soon

ok 'set' ab config set box.timeout 5m -y
file=$(ab config path)
ok 'in the file that path names' grep -q 'timeout: 5m' "$file"
is "$(stat -c %a "$file")" 600 'which is private'
ok 'set --global' ab config set --global box.timeout 1h
run ab config path --global
is "$out" "$AGENTBOX_HOME/config.yaml" 'path --global'
run ab config path --repo
is "$out" "$T/ws/agentbox.yaml" 'path --repo'
is "$(value_of box.timeout)" 5m 'the project goes before the install'
is "$(cd "$T" && value_of box.timeout)" 1h 'elsewhere the install is left'
is "$(AGENTBOX_TIMEOUT=9m value_of box.timeout)" 9m 'the environment goes before both'
AGENTBOX_TIMEOUT=9m
export AGENTBOX_TIMEOUT
run ab config set box.timeout 6m
unset AGENTBOX_TIMEOUT
like "$err" 'environment comes first' 'which set says'
run ab config list --json
like "$out" '"value":	"6m"' 'list --json has the value'
like "$out" '"source":	"project"' '... and where it comes from'
run ab config list
like "$out" '^KEY +VALUE +SOURCE$' 'a table'
like "$out" '^box.timeout +6m +project$' 'with the same'
ok 'unset' ab config unset box.timeout
is "$(value_of box.timeout)" 1h 'what was below shows'

ok 'a value of several lines and odd bytes' ab config set box.setup "a'b\"c
 # d: [e] 
"
run ab config get box.setup
is "$out" "a'b\"c
 # d: [e] " 'comes back as it was'
run ab config list
is "$(printf '%s\n' "$out" | grep -c '^box.setup ')" 1 'and is one line in the table'

printf '# mine\nbox:\n  timeout: 2m # short\nfuture: 1\n' >"$AGENTBOX_HOME/config.yaml"
run ab config set --global box.timeout 3m
like "$err" "unknown key 'future'" 'an unknown key is said'
printf '# mine\nbox:\n  timeout: 3m # short\nfuture: 1\n' >"$T/want"
same "$T/want" "$AGENTBOX_HOME/config.yaml" 'comments and unknown keys stay'
printf 'box:\n  timeout: 3m\n' >"$AGENTBOX_HOME/config.yaml"
ok 'unset of several lines' ab config unset box.setup

cat >agentbox.yaml <<'END'
services: {web: {command: x}}
defaults:
  box:
    timeout: 4m
    image: /etc
END
run ab config list
is "$status" 0 'a forbidden key does not hinder looking'
like "$err" "agentbox.yaml: line 5: a repository may not set 'box.image'" 'it is named'
is "$(value_of box.timeout)" 4m 'what a repository may set counts'
no 'what it may not does not' ab config get box.image
one_line_error 6 "line 5.*'box.image'" 'and create refuses it' ab create --provider mock -y
printf 'defaults:\n  box: [\n' >agentbox.yaml
one_line_error 1 'agentbox.yaml: line 3' 'a broken one is an error' ab create --provider mock -y
rm agentbox.yaml

ok 'a secret' ab config set mock.token 'hunter2-of-mock'
is "$(stat -c %a "$AGENTBOX_HOME/secrets.env")" 600 'is stored privately'
ok 'in secrets.env' grep -q hunter2 "$AGENTBOX_HOME/secrets.env"
no 'and in no other file' grep -rq hunter2 "$AGENTBOX_HOME/config.yaml" "$AGENTBOX_HOME/projects"
run ab config get mock.token
is "$out" '***' 'get does not show it'
run ab config list
unlike "$out" hunter2 'list does not show it'
run ab config list --json
unlike "$out" hunter2 'list --json does not show it'
ok 'it can be taken back' ab config unset mock.token
no 'and is gone' grep -q hunter2 "$AGENTBOX_HOME/secrets.env"
printf 'defaults: {mock: {token: stolen}}\n' >agentbox.yaml
one_line_error 6 "'mock.token'" 'a repository cannot set one' ab create --provider mock -y
rm agentbox.yaml

i=0
while [ $i -lt 20 ]; do
	ab config set --global box.env_file "/f$i" &
	ab config set box.ca_file "/c$i" &
	i=$((i + 1))
done
wait
like "$(value_of box.env_file)" '^/f[0-9]+$' 'many at once: one of them wins'
like "$(value_of box.ca_file)" '^/c[0-9]+$' '... in each file'
is "$(value_of box.timeout)" 3m '... and the rest stays'

done_testing
