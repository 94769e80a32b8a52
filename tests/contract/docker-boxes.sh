#!/bin/sh
# SPDX-License-Identifier: MIT
# What boxes of the docker provider have beside the contract, and what they never get at.
. "${0%/*}/docker-functions.sh"

docker_engine
docker_root "$T/root.tar" || fail 'a root file system is made'
tag=test-$(od -An -N4 -tx4 /dev/urandom | tr -d ' ')
code 0 'an image' ab prepare --provider docker --from "$T/root.tar" -n "$tag"
AGENTBOX_PROVIDER=docker
AGENTBOX_IMAGE=agentbox/prepared:$tag
export AGENTBOX_PROVIDER AGENTBOX_IMAGE
mkdir "$T/p" && echo hello >"$T/p/file" && cd "$T/p" || exit 99

box() # NAME ARG...
{
	box_name=$1
	shift
	ab create -w "$T/p" -n "$box_name" -y "$@"
}

refused() # DESC ERE COMMAND...
{
	refused_what=$1 refused_ere=$2
	shift 2
	run "$@"
	is "$status" 1 "$refused_what: no"
	like "$(printf '%s\n' "$err" | tail -n 1)" "^agentbox: .*$refused_ere.*\(.*\)\$" \
		"$refused_what: why, and what to do"
}

end_watcher()
{
	kill "$watcher" 2>/dev/null
}

container_of() # NAME
{
	ab status "$1" --json | sed -n 's/.*"sandbox_id":[[:space:]]*"\(.*\)".*/\1/p'
}

# Nothing in a box changes a byte of the repository that it was made of: nothing of it is there.
make_repo "$T/repo"
make_dirty "$T/repo"
before=$(tree_sum "$T/repo")
ok 'a box of a repository' ab create -w "$T/repo" -n hostile -y
run ab exec hostile -- cat /proc/self/mountinfo
unlike "$out" "$T/(repo|p)" 'none of its mounts leads there'
no 'nor is it at its own path' ab exec hostile -- test -e "$T/repo"
# shellcheck disable=SC2016
run ab exec hostile -- sh -c '
	top=$1
	git config core.hooksPath /tmp/hooks; git config remote.origin.url "$top"
	git update-ref -d HEAD; git reflog expire --expire=now --all; git gc -q --prune=now
	git push -q --force "$top" HEAD:refs/heads/main; git worktree prune
	mkdir -p "$top/.git" && echo gone >"$top/.git/HEAD"
	for m in /proc/1/root /proc/self/root; do rm -rf "$m$top"; done
	for d in $(sed -n "s,^[0-9 ]* \([0-9]*\):\([0-9]*\) .*,\1:\2,p" /proc/self/mountinfo); do
		mknod /tmp/disk b "${d%:*}" "${d#*:}" && (exec </tmp/disk) && echo "a disk: $d"
		rm -f /tmp/disk
	done
	mount --bind / /mnt; mount -t proc proc /mnt; umount /workspace
	nsenter -t 1 -m rm -rf "$top"; unshare -m true
	echo 1 >/proc/sys/kernel/core_uses_pid && echo "a setting of the kernel"
	find / -xdev -name .git -exec rm -rf {} + ; rm -rf /tmp/* /workspace/* /workspace/.[a-z]*
	true' sh "$T/repo"
is "$status" 0 'it does what it can'
unlike "$out" 'a (disk|setting)' 'and gets at nothing of this machine'
ok 'a checkpoint of what is left' ab checkpoint create hostile --name hostile
ok 'a fork' ab fork hostile -n hostile-2
ok 'destroyed with everything' ab destroy hostile hostile-2 -y
cd "$T/repo" || exit 99
ok 'and the checkpoint' ab checkpoint rm hostile -y
cd "$T/p" || exit 99
is "$(tree_sum "$T/repo")" "$before" 'the repository is as it was'

# A container of ours has what it needs and no more.
ok 'a box with limits' box plain --memory 300M --cpu 1.5 --pids 200 -e SECRET=of-the-box
id=$(container_of plain)
docker_api GET "/containers/$id/json" >"$T/inspect"
shape=$(perl -MJSON::PP -e '
	my $d = decode_json(join "", <>); my $h = $d->{HostConfig};
	print join " ", map { $_ // "" } $h->{Privileged} ? "privileged" : "plain",
		scalar @{$h->{CapAdd} // []}, $h->{CgroupnsMode}, $h->{Init} ? "init" : "",
		$h->{RestartPolicy}{Name}, $h->{PidMode}, $h->{Memory}, $h->{MemorySwap},
		$h->{NanoCpus}, $h->{PidsLimit}, scalar @{$d->{Mounts}}' "$T/inspect")
is "$shape" "plain 0 private init no  314572800 314572800 1500000000 200 0" \
	'its container has what was asked for and nothing else'
unlike "$(cat "$T/inspect")" of-the-box 'its environment is not on it'
is "$(ab exec plain -- printenv SECRET)" of-the-box 'but in it'
ok 'a checkpoint' ab checkpoint create plain --name plain
filters=%7B%22reference%22%3A%5B%22agentbox%2Fsnapshot%22%5D%7D
image=$(docker_api GET "/images/json?filters=$filters" |
	sed -n 's/.*"Id":"\([^"]*\)".*/\1/p')
docker_api GET "/images/$image/json" >"$T/image"
like "$(cat "$T/image")" '"Config"' 'is an image'
unlike "$(cat "$T/image")" of-the-box 'that has nothing of it either'
ok 'it goes' ab checkpoint rm plain -y

# One that dies by itself is noticed.
"$BUILD/tests/wrapper" agentbox watch --json >"$T/events" 2>"$T/watch.err" &
watcher=$!
atexit end_watcher
wait_for 20 grep -q plain "$T/events" || fail 'watch begins'
docker_api POST "/containers/$id/kill?signal=TERM"
wait_for 20 grep -q stopped "$T/events" && pass 'watch tells of a box that ended' ||
	fail 'watch tells of a box that ended'
kill "$watcher"
wait "$watcher" 2>/dev/null
run ab list
like "$out" 'plain.* stopped' 'so does list'
ok 'destroyed' ab destroy plain -y

# Volumes.
ok 'a box with a volume' box one --volume cache:/cache
ok 'writes there' ab exec one -- sh -c 'echo kept >/cache/kept'
ok 'is destroyed' ab destroy one -y
run ab volume ls --provider docker
like "$out" '^cache ' 'its volume is listed'
ok 'another box' box two --volume cache:/elsewhere
is "$(ab exec two -- cat /elsewhere/kept)" kept 'has it'
code 1 'it is not removed meanwhile' ab volume rm cache --provider docker -y
ok 'the box goes' ab destroy two -y
run env AGENTBOX_HOME="$T/other" "$BUILD/tests/wrapper" agentbox volume ls --provider docker
is "$status" 0 'another install'
unlike "$out" cache 'does not see it'
ok 'the volume goes' ab volume rm cache --provider docker -y
is "$(docker_api GET /volumes | grep -c cache)" 0 'and is gone'

# Directories of this machine.
mkdir "$T/d" && echo here >"$T/d/old"
ok 'a box with a directory of this machine' box with --mount "$T/d:/d" --mount "$T/d:/w:rw"
is "$(ab exec with -- cat /d/old)" here 'reads it'
no 'does not write to it' ab exec with -- touch /d/new
ok 'but where it may' ab exec with -- touch /w/new
ok 'destroyed with it' ab destroy with -y
ok 'what it wrote is here' test -e "$T/d/new"
elsewhere()
{
	unshare --uts sh -c 'hostname elsewhere.example && exec "$@"' sh \
		"$BUILD/tests/wrapper" agentbox create -w "$T/p" -n far -y --mount "$T/d:/d"
}
refused 'a directory where the engine is elsewhere' 'not on this machine' elsewhere

# A workspace that nobody in the box changes, root neither.
ok 'a read-only box' box still --readonly --setup 'echo made >made' -e SECRET=of-the-box \
	--mount "$T/d:/workspace/d:rw"
holds() # BOX
{
	run ab exec "$1" -- cat file made d/old
	is "$out" "hello
made
here" "$1: the project, what was set up, and what is mounted in it"
	# shellcheck disable=SC2016
	run ab exec "$1" -- sh -c 'cd /tmp && echo w >w && cat w
		for t in file new d/old d/new .git/HEAD; do
			echo x >/workspace/$t && echo "$t written"
		done
		mount -o remount,bind,rw /workspace && echo remounted
		umount /workspace && echo unmounted
		mv /workspace /gone && echo moved
		rm -rf /workspace/* && echo removed
		for p in /proc/1/root /proc/self/root; do
			echo x >$p/workspace/new && echo "written by $p"
		done
		chmod 777 /workspace && echo changed
		true' 2>/dev/null
	is "$out" w "$1: nothing there is changed, and other places can be"
}
holds still
is "$(ab exec still -- printenv SECRET)" of-the-box 'its environment is there'
is "$(docker_api GET '/containers/json?all=1' | grep -o '"Id"' | wc -l)" 1 'it is one container'
ok 'stop' ab stop still
ok 'start' ab start still
holds still
ok 'a checkpoint' ab checkpoint create still --name still
ok 'a fork' ab fork still -n still-2
holds_all()
{
	is "$(ab exec "$1" -- cat file made)" "hello
made" "$1: the same"
	no "$1: read-only too" ab exec "$1" -- touch new
}
holds_all still-2
ok 'destroyed' ab destroy still still-2 -y
ok 'a box of the checkpoint' ab create -w "$T/p" --snapshot still -n still-3 -y
is "$(ab exec still-3 -- cat file made)" "hello
made" 'has it too'
ok 'all goes' ab destroy still-3 -y
ok 'with the checkpoint' ab checkpoint rm still -y
is "$(docker_api GET /images/json | grep -o '"agentbox/[a-z]*' | sort -u)" '"agentbox/prepared' \
	'no image is left'
is "$(docker_api GET /volumes | grep -c '"Name"')" 0 'nor a volume'
is "$(ls "$T/d")" "new
old" 'the directory is as it was'

# What cannot be done is refused before anything is made.
refused 'a list of addresses' 'egress: ' box no --egress 192.0.2.0/24
refused 'a port without a network' 'without a network' box no --egress none --port 80
is "$(docker_api GET '/containers/json?all=1')" '[]' 'nothing was made'

# An image of many layers: the engine has an end to them.
layers() # IMAGE.tar TAG
{
	mkdir "$T/layers" && cd "$T/layers" && cp "$T/root.tar" 0.tar || return 1
	n=1
	while [ "$n" -le 70 ]; do
		echo "$n" >last && tar -cf "$n.tar" last
		n=$((n + 1))
	done
	sha256sum [0-9]*.tar >"$T/sums"
	perl -MJSON::PP -e '
		my ($arch, $tag) = @ARGV;
		my %sum = map { reverse split } grep { chomp; 1 } <STDIN>;
		my @layers = map { "$_.tar" } 0 .. 70;
		my %config = (Env => ["PATH=/bin:/usr/bin", "ODD=a\"b\$HOME\\d e"], User => "0");
		my @sums = map { "sha256:$sum{$_}" } @layers;
		open my $c, ">", "config.json";
		print $c encode_json({architecture => $arch, os => "linux", config => \%config,
			rootfs => {type => "layers", diff_ids => \@sums}});
		open my $m, ">", "manifest.json";
		print $m encode_json([{Config => "config.json", RepoTags => [$tag],
			Layers => \@layers}])' "$(docker_arch)" "$2" <"$T/sums" &&
		tar -cf "$1" .
}

docker_arch()
{
	docker_api GET /version | sed -n 's/.*"Arch":"\([^"]*\)".*/\1/p'
}

n_layers() # IMAGE
{
	docker_api GET "/images/$1/json" | perl -MJSON::PP -e '
		print scalar @{decode_json(join "", <>)->{RootFS}{Layers}}'
}
(layers "$T/layers.tar" "agentbox/test:$tag") || fail 'an image is made'
docker_api POST '/images/load?quiet=1' "$T/layers.tar" >/dev/null
is "$(n_layers "agentbox/test:$tag")" 71 'an image of many layers'
ok 'a box of it' box deep --image "agentbox/test:$tag"
ok 'works' ab exec deep -- sh -c 'echo deep >/root/deep'
# shellcheck disable=SC2016
state='cat /root/deep /last file; printf "%s\n" "$ODD" "$PATH"; id -un; pwd'
ab exec deep -- sh -c "$state" >"$T/deep"
ok 'is forked' ab fork deep -n flat
ab exec flat -- sh -c "$state" >"$T/flat"
same "$T/deep" "$T/flat" 'with what it had'
is "$(n_layers "$(docker_api GET "/containers/$(container_of flat)/json" |
	sed -n 's/.*"Image":"\(sha256:[^"]*\)".*/\1/p')")" 1 'in one layer'
ok 'all of it goes' ab destroy deep flat -y
docker_api DELETE "/images/agentbox/test:$tag" >/dev/null
is "$(docker_api GET /images/json | grep -o 'agentbox/[a-z]*' | sort -u)" agentbox/prepared \
	'nothing but the prepared image is left'
code 0 'which goes' ab image rm "$tag" --provider docker -y
done_testing
