#!/bin/sh
# SPDX-License-Identifier: MIT
# What a box is given beside its project: refused early or kept, and known to every later start.
. "${0%/*}/functions.sh"

mkdir "$T/p" "$T/data" && cd "$T/p" || exit 99
printf 'x\n' >file
printf 'shared\n' >"$T/data/file"
P='--provider mock -y'

# The record of the only sandbox of a name, as the provider has it.
record()
{
	cat "$AGENTBOX_HOME/providers/mock/sandboxes/$(ab status "$1" --json |
		sed -n 's/^\t"sandbox_id":\t"\(.*\)",$/\1/p').json"
}

for bad in '--egress al' '--egress all,none' '--egress 10.0.0.1/8' '--cpu 0' '--cpu x' \
	'--memory 1' '--disk 0' '--pids 0' '--mount /nope:/x' '--mount /etc' \
	'--mount /etc:/proc/x' '--volume X:/x' '--volume v' '-p 0' '-p 65536' '-p http' \
	'--count 0' '--count 101'; do
	# shellcheck disable=SC2086
	one_line_error 2 '' "create $bad" ab create $P $bad
done
# What is seeded would go through a mount, into this machine or over what a volume keeps.
mkdir -p deep && echo deep >deep/file
for at in deep deep/file deep/file/below .git .GIT/hooks; do
	one_line_error 2 'the project has something there' "no mount over the project's $at" \
		ab create $P --mount "$T/data:/workspace/$at:rw"
	one_line_error 2 'the project has something there' "no volume over the project's $at" \
		ab create $P --volume "v:/workspace/$at"
done
rm -r deep
one_line_error 2 'no box runs without' 'no mount over the system' ab create $P --volume v:/etc
run ab list --bogus --json
like "$out" '"code":.*"usage"' 'a wrong option is a document too'
run ab bogus --json
like "$out" '"code":.*"usage"' 'and a wrong command'
one_line_error 6 "agentbox's own" 'nothing of agentbox itself' ab create $P --mount "$T/home:/x"
run ab list
is "$out" 'no boxes in this project' 'nothing was made'

# shellcheck disable=SC2086
ok 'create with all of it' ab create $P -n full --egress 'API.example.com,10.0.0.0/8' --cpu 1.5 \
	--memory 512M --disk 1G --pids 100 --mount "$T/data:/workspace/data:rw" \
	--volume cache:/workspace/cache -p 80 -p 8080 --size big --location moon --private-urls \
	--timeout 0
run record full
for want in '"egress":.*"api.example.com,10.0.0.0/8"' '"cpu_milli":.*1500' \
	'"mem_bytes":.*536870912' '"disk_bytes":.*1073741824' '"max_pids":.*100' \
	"\"/workspace/data\":.*$T/data\"" \
	'"vol-cache":.*"/workspace/cache"' '"size":.*"big"' '"location":.*"moon"' '"flags":.*4'; do
	like "$out" "$want" "the provider got $want"
done
run ab exec full -- cat data/file
is "$out" shared 'the mount is there'
run ab status full --json
like "$out" '"egress":.*"api.example.com,10.0.0.0/8"' 'status shows egress'
like "$out" '"cpu":.*1.5' 'and limits'
like "$out" '"url":.*"https://8080-' 'and addresses of its ports'
run ab status full
like "$out" '^memory *512 MiB$' 'for people too'
like "$out" '^url *https://80-' 'with its addresses'

ok 'a volume keeps what is in it' ab exec full -- sh -c 'echo kept >cache/file'
run ab volume ls --provider mock
like "$out" '^cache *vol-cache$' 'volume ls'
one_line_error 1 "box 'full' has it" 'a volume in use stays' ab volume rm cache $P
ok 'destroy' ab destroy full -y
# shellcheck disable=SC2086
ok 'another box' ab create $P -n second --volume cache:/workspace/cache
run ab exec second -- cat cache/file
is "$out" kept 'has the same volume'
ok 'destroy it' ab destroy second -y
run ab prune -y
is "$out" 'nothing was left behind' 'prune leaves volumes alone'
ok 'volume rm' ab volume rm cache $P
one_line_error 3 "no volume 'cache'" 'it is gone' ab volume rm cache --provider mock

# shellcheck disable=SC2086
ok 'a read-only box' ab create $P -n still --readonly --setup 'echo made >made'
run record still
like "$out" '"start_flags":.*1' 'was started so'
run ab exec still -- cat file made
is "$out" "x
made" 'after its project came'
ok 'stop' ab stop still
ok 'start' ab start still
run record still
like "$out" '"start_flags":.*1' 'every later start too'
ok 'fork' ab fork still -n still2
run record still2
like "$out" '"start_flags":.*1' 'and a fork of it'
ok 'away' ab destroy still still2 -y

# shellcheck disable=SC2086
ok 'egress none' ab create $P -n net --egress none -e HTTPS_PROXY=http://127.0.0.1:1
like "$err" 'HTTPS_PROXY is set' 'B132 a proxy variable is warned about'
run ab egress
is "$out" none 'egress shows it'
ok 'egress sets it' ab egress '*.debian.org'
run record net
like "$out" '"egress":.*"\*.debian.org"' 'at the provider'
run ab egress net --json
like "$out" '"egress":.*"\*.debian.org"' 'and on record'
one_line_error 2 'stands alone' 'egress refuses nonsense' ab egress net none,a.b
ok 'destroy net' ab destroy net -y

ok 'config: limits of boxes' ab config set box.memory 64M
ok 'config: ports of boxes' ab config set box.ports 80,81
# shellcheck disable=SC2086
ok 'create' ab create $P -n conf
run ab status conf --json
like "$out" '"memory_bytes":.*67108864' 'the setting counts'
like "$out" '"ports":.*80, 81' 'lists too'
ok 'destroy conf' ab destroy conf -y
ok 'config unset' ab config unset box.memory
ok 'config unset, too' ab config unset box.ports
one_line_error 1 "'al'" 'a setting is checked like an option' ab config set box.egress al
for key in 'egress: all' 'readonly: false' 'volumes: [a:/a]' 'ports: [1]'; do
	printf 'defaults: {box: {%s}}\n' "$key" >agentbox.yaml
	# shellcheck disable=SC2086
	one_line_error 6 "'box.${key%%:*}'" "a repository may not set ${key%%:*}" ab create $P
done
printf 'defaults: {box: {cpu: 2}}\nfuture: {a: [b]}\nservices: {}\n' >agentbox.yaml
# shellcheck disable=SC2086
ok 'B120 an unknown key of a repository' ab create $P -n later
like "$err" "line 2: unknown key 'future' is ignored" 'is warned about'
unlike "$err" services 'a known one is not'
ok 'destroy later' ab destroy later -y
rm agentbox.yaml

for option in '--egress none' '--cpu 1' '-p 80' '--volume a:/a' '--readonly --size x'; do
	# shellcheck disable=SC2086
	one_line_error 1 mockbare "mockbare cannot $option" \
		ab create --provider mockbare -y $option
done
# shellcheck disable=SC2086
one_line_error 1 'share-objects: .*git gc here .*--depth' 'objects are not shared' \
	ab create $P -n shared --share-objects
one_line_error 1 'cannot prepare images' 'mockbare prepare' ab prepare --provider mockbare --from x
one_line_error 1 'cannot list volumes' 'mockbare volume ls' ab volume ls --provider mockbare
run ab list -g
is "$out" 'no boxes' 'and nothing is left'

# shellcheck disable=SC2086
run ab create $P -n many --count 3 --json
is "$status" 0 'three at once'
is "$(printf '%s\n' "$out" | grep -c '"name":.*"many-[123]"')" 3 'by number'
# shellcheck disable=SC2086
run ab create $P -n many --count 4 --json
is "$status" 1 'one of four is new'
is "$(printf '%s\n' "$out" | grep -c '"code":.*"exists"')" 3 'the others are said'
run ab list
is "$(printf '%s\n' "$out" | grep -c many-)" 4 'what was made stays'
ok 'destroy all' ab destroy --all -y
AGENTBOX_MOCK_FAULTS='provision:fail=EQUOTA,times=1' && export AGENTBOX_MOCK_FAULTS
# shellcheck disable=SC2086
run ab create $P --count 2
is "$status" 1 'one fails'
like "$err" '1 of 2 boxes were made' 'and is said'
unset AGENTBOX_MOCK_FAULTS
ok 'destroy the other' ab destroy --all -y

# The same on this machine, where it can be seen from within.
if ab doctor --provider local >/dev/null 2>&1; then
	L='--provider local -y'
	# shellcheck disable=SC2086
	{
		ok 'local: mounts and a volume' ab create $L -n own --mount "$T/data:/mnt/ro" \
			--mount "$T/data:/mnt/rw:rw" --volume cache:/mnt/cache
		run ab exec own -- cat /mnt/ro/file
		is "$out" shared 'local: a mount'
		no 'local: is read-only' ab exec own -- sh -c 'echo y >/mnt/ro/new'
		ok 'local: unless rw' ab exec own -- sh -c 'echo y >/mnt/rw/new || [ ! -w /mnt/rw ]'
		ok 'local: a volume' ab exec own -- sh -c 'echo kept >/mnt/cache/x'
		mkdir -p "$T/outer/inner" "$T/child"
		for order in 1 2; do
			out_of="--mount $T/outer:/mnt/o" in_it="--mount $T/child:/mnt/o/inner:rw"
			[ $order = 1 ] || { swap=$out_of out_of=$in_it in_it=$swap; }
			ok "local: B037 a mount in one for reading only, order $order" \
				ab create $L -n "b037-$order" $out_of $in_it
			ok "local: B037 the inner one may be written to, order $order" \
				ab exec "b037-$order" -- sh -c 'test -d /mnt/o/inner &&
				{ echo x >/mnt/o/inner/x || [ ! -w /mnt/o/inner ]; } &&
				! echo x >/mnt/o/x'
			ab destroy "b037-$order" -y >/dev/null 2>&1
		done
		run ab create $L -n b037 --mount "$T/outer:/mnt/o" --mount "$T/child:/mnt/o/missing"
		case $status:$err in
		0:* | [126]:*missing*) pass 'local: B037 no place for it: works, or is said' ;;
		*)
			fail 'local: B037 no place for it: works, or is said'
			diag "$status $err"
			;;
		esac
		is "$(ls "$T/outer")" inner 'local: B037 nothing is made here for it'
		one_line_error 1 "box 'own'" 'local: in use' ab volume rm cache $L
		ok 'local: away' ab destroy own -y
		ok 'local: read-only' ab create $L -n fixed --readonly --setup 'echo s >setup' \
			--volume cache:/mnt/cache
		run ab exec fixed -- cat /mnt/cache/x file setup
		is "$out" "kept
x
s" 'local: the volume, the project and the setup are there'
		no 'local: nothing changes' ab exec fixed -- sh -c 'echo z >file'
		no 'local: nothing comes' ab exec fixed -- sh -c 'echo z >new'
		ok 'local: elsewhere it may write' ab exec fixed -- sh -c 'echo z >/tmp/new'
		ok 'local: stop' ab stop fixed
		no 'local: nothing changes after a restart' ab exec fixed -- sh -c 'echo z >file'
		ok 'local: away again' ab destroy fixed -y
		ok 'local: volume rm' ab volume rm cache $L
		ok 'local: a life of its own' ab create $L -n short --timeout 1h --egress none
		run ab status short --json
		first=$(echo "$out" | sed -n 's/.*"expires_at":[^"]*"\([^"]*\)".*/\1/p')
		ok 'local: which ends with it' ab stop short
		ok 'local: and begins anew' ab start short
		run ab status short --json
		like "$out" '"expires_at":.*"20' 'local: as long as before'
		[ -n "$first" ] && pass 'local: and had an end' || fail 'local: and had an end'
		ok 'local: gone' ab destroy short -y
		ok 'local: no egress' ab create $L -n alone --egress none
		no 'local: nothing is reached' ab exec alone -- timeout 5 sh -c \
			'exec 3<>/dev/tcp/192.0.2.1/80 || curl -sS -m 2 http://192.0.2.1/'
		ok 'local: egress is known later' ab destroy alone -y
		run ab create $L -n same --count 3
		is "$status" 0 'local: three at once'
		is "$(printf '%s\n' "$err" | sort | uniq -d)" '' 'local: what all lack is said once'
		ok 'local: the three are gone' ab destroy same-1 same-2 same-3 -y
		one_line_error 1 ': --size: .*\(use --cpu, --memory' \
			'local: no sizes' ab create $L --size x
		one_line_error 1 ': --location: ' 'local: one place' ab create $L --location eu
		one_line_error 1 ': --private-urls: ' 'local: everybody' ab create $L --private-urls
	}
fi

mkdir "$T/new
line" && cd "$T/new
line" || exit 99
# shellcheck disable=SC2086
ok 'a workspace with a newline' ab create $P -n nl
run ab list -g
is "$(printf '%s\n' "$out" | wc -l | tr -d ' ')" 2 'is one line of a table'
done_testing
