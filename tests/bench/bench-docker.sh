#!/bin/sh
# SPDX-License-Identifier: MIT
# The rows of `make bench` that need a Docker engine, and the docker program for their floors.
# BENCH_DOCKER_IMAGE: of the boxes (default: the one that the first create makes).
# BENCH_DOCKER_ROWS: which rows (default: all, as they are called at the end).
set -eu

# shellcheck source=functions.sh
. "${0%/*}/functions.sh"
runs=${BENCH_DOCKER_RUNS:-20}
copy_runs=${BENCH_COPY_RUNS:-3}
many=${BENCH_DOCKER_BOXES:-50}
floor_docker=$BUILD/tests/bench/floor-docker
AGENTBOX_PROVIDER_PATH=$BUILD/providers/docker/.libs
AGENTBOX_CTL=$BUILD/core/ctl/agentbox-ctl
AGENTBOX_BASE_PATH=$(cd "${0%/*}/../.." && pwd)/core/base/context
AGENTBOX_PROVIDER=docker
export AGENTBOX_PROVIDER_PATH AGENTBOX_CTL AGENTBOX_BASE_PATH AGENTBOX_PROVIDER

"$agentbox" doctor --provider docker >/dev/null 2>&1 && command -v docker >/dev/null || {
	echo 'docker: no engine answers, or there is no docker program: its rows are left out'
	exit 0
}

# What the floors make, by this name.
tag=$(basename "$scratch" | tr '[:upper:].' '[:lower:]-')
floors_end()
{
	docker ps -aq --filter "name=^/$tag-" | xargs -r docker rm -f >/dev/null 2>&1 || :
	docker images -q "$tag" | sort -u | xargs -r docker rmi -f >/dev/null 2>&1 || :
}
at_end floors_end

make_boxes() # OPTION...
{
	"$agentbox" create -w "$repo" -y ${BENCH_DOCKER_IMAGE:+--image "$BENCH_DOCKER_IMAGE"} \
		"$@" >"$scratch/log" 2>&1 || {
		cat "$scratch/log"
		exit 1
	}
}

processor_row()
{
	row '  processor time here' "$floor_cpu" "$ours_cpu" ''
}

bench_exec()
{
	"$pairs" "$runs" "$floor_docker" "$socket" exec "$id" /bin/true \
		--- "$agentbox" exec one -n -- /bin/true >"$scratch/figures"
	figures
	row 'docker: exec' "$floor" "$ours" '<= 1.15 x create, start, inspect in C'
	processor_row
}

bench_create()
{
	tar -cf "$scratch/repo.tar" -C "$repo" .
	IFS='
'
	# shellcheck disable=SC2046 # one argument a line
	"$pairs" "$runs" "$floor_docker" "$socket" create "$image" "$tag-@N@" "$scratch/repo.tar" \
		/bin/true --- $(git_work "$repo" "$scratch/pack@N@") \
		--- "$agentbox" create -w "$repo" -n "made@N@" --image "$image" -y \
		>"$scratch/figures"
	unset IFS
	figures
	row 'docker: create' "$floor" "$third" "the git work alone takes $ours ms"
	row '  beside the git work' "$floor" \
		"$(awk -v a="$ours" -v b="$third" 'BEGIN { print b - a }')" \
		'<= 1.3 x create, start, archive, exec in C'
	floors_end
}

bench_stop()
{
	"$pairs" "$runs" --first docker start "$id" --then docker stop "$id" \
		--- --first "$agentbox" start one --then "$agentbox" stop one >"$scratch/figures"
	figures
	row 'docker: stop' "$floor" "$ours" '<= 1.3 x docker stop'
	"$agentbox" start one >/dev/null
}

bench_checkpoint()
{
	"$pairs" "$runs" docker commit "$id" "$tag:@N@" \
		--- "$agentbox" checkpoint create one --name "c@N@" >"$scratch/figures"
	figures
	row 'docker: checkpoint' "$floor" "$ours" '<= 1.3 x docker commit'
	cd "$repo"
	"$agentbox" checkpoint ls | awk 'NR > 1 { print $1 }' | while read -r name; do
		"$agentbox" checkpoint rm "$name" -y >/dev/null 2>&1 || :
	done
	cd /
}

script() # NAME; its text is what is read
{
	cat >"$scratch/$1"
	chmod 755 "$scratch/$1"
}

# Directories in and out of a box.  What a run made goes before the next one: a copy into what is
# there already is something else.
bench_tree()
{
	large_tree "$scratch/tree"
	script pipe-in <<-END
		#!/bin/sh
		tar -c -C '$scratch/tree' . |
			docker exec -i '$id' sh -c 'mkdir /tmp/floor && exec tar -x -C /tmp/floor'
	END
	script empty <<-END
		#!/bin/sh
		exec docker exec '$id' rm -rf /tmp/floor /tmp/tree
	END
	"$pairs" "$copy_runs" --first "$scratch/empty" --then "$scratch/pipe-in" \
		--- --first "$scratch/empty" --then "$agentbox" cp "$scratch/tree" one:/tmp/tree \
		>"$scratch/figures"
	figures
	row 'docker: 195 MiB in 20,000 files in' "$floor" "$ours" '<= 1.25 x tar | docker exec tar'
	processor_row
	memory_row
	"$agentbox" cp "$scratch/tree" one:/tmp/tree >/dev/null 2>&1
	script pipe-out <<-END
		#!/bin/sh
		mkdir "\$1" && docker exec '$id' tar -c -C /tmp/tree . | tar -x -C "\$1"
	END
	"$pairs" "$copy_runs" "$scratch/pipe-out" "$scratch/floor@N@" \
		--- "$agentbox" cp one:/tmp/tree "$scratch/ours@N@" >"$scratch/figures"
	figures
	row '  the same out' "$floor" "$ours" '<= 1.25 x docker exec tar | tar'
	memory_row
	"$scratch/empty"
	rm -rf "$scratch/tree" "$scratch"/floor[0-9]* "$scratch"/ours[0-9]*
}

# 200 MB in one piece.
bench_piece()
{
	mkdir "$scratch/piece"
	head -c 200000000 /dev/urandom >"$scratch/piece/large"
	tar -cf "$scratch/piece.tar" -C "$scratch/piece" .
	"$pairs" "$copy_runs" curl -sf --unix-socket "$socket" --upload-file "$scratch/piece.tar" \
		"http://docker/v1.41/containers/$id/archive?path=/opt" \
		--- "$agentbox" cp "$scratch/piece" one:/tmp/piece \
		--- "$agentbox" cp "$scratch/piece/large" one:/tmp/large >"$scratch/figures"
	figures
	row 'docker: 200 MB as a tree in' "$floor" "$ours" '<= 1.15 x curl --upload-file'
	processor_row
	memory_row
	row '  as a file' "$floor" "$third" ''
	rm -rf "$scratch/piece" "$scratch/piece.tar"
}

bench_list()
{
	make_boxes -n many --count "$many"
	"$pairs" "$runs" docker ps -a --- "$agentbox" list -g \
		--- "$agentbox" prune --dry-run >"$scratch/figures"
	figures
	row "docker: list of $many boxes" "$floor" "$ours" '<= docker ps -a'
	processor_row
	row '  as the engine has them' "$floor" "$third" '<= docker ps -a'
	"$agentbox" destroy --all -y --force >/dev/null 2>&1
}

socket=${DOCKER_HOST:-unix:///var/run/docker.sock}
socket=${socket#unix://}
repo=$scratch/repo
small_repo "$repo"
make_boxes -n one
id=$("$agentbox" status one | sed -n 's/^sandbox *//p')
image=$(docker inspect -f '{{.Config.Image}}' "$id")
printf '%-36s %9s %9s %7s  %s\n' 'median of runs in turn' 'floor ms' 'ours ms' ratio target
for bench in ${BENCH_DOCKER_ROWS:-exec create stop checkpoint tree piece list}; do
	"bench_$bench"
done
