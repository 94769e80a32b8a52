#!/bin/sh
# SPDX-License-Identifier: MIT
# The rows of `make bench` that need a Docker engine, and the docker program for their floors.
# BENCH_DOCKER_IMAGE: of the boxes (default: the one that the first create makes).
set -eu

BUILD=${AGENTBOX_TEST_BUILDDIR:?is not set: run make bench}
runs=${BENCH_DOCKER_RUNS:-20}
agentbox=$BUILD/agentbox
pairs=$BUILD/tests/bench/pairs
scratch=$(mktemp -d "${TMPDIR:-/tmp}/abx-bench.XXXXXX")
AGENTBOX_HOME=$scratch/home
AGENTBOX_PROVIDER_PATH=$BUILD/providers/docker/.libs
AGENTBOX_CTL=$BUILD/core/ctl/agentbox-ctl
AGENTBOX_BASE_PATH=$(cd "${0%/*}/../.." && pwd)/core/base/context
AGENTBOX_PROVIDER=docker
export AGENTBOX_HOME AGENTBOX_PROVIDER_PATH AGENTBOX_CTL AGENTBOX_BASE_PATH AGENTBOX_PROVIDER

clean_up()
{
	cd /
	"$agentbox" destroy --all -y --force >/dev/null 2>&1 || :
	rm -rf "$scratch"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' HUP TERM

"$agentbox" doctor --provider docker >/dev/null 2>&1 && command -v docker >/dev/null || {
	echo 'docker: no engine answers, or there is no docker program: its rows are left out'
	exit 0
}

row() # WHAT TARGET; from the figures of two sides
{
	{ read -r floor _ _ _ && read -r ours _ kb _; } <"$scratch/figures"
	printf '%-36s %9.2f %9.2f %7s  %s\n' "$1" "$floor" "$ours" \
		"$(awk -v a="$floor" -v b="$ours" 'BEGIN { printf "%.2f", b / a }')" "$2"
}

make_box() # NAME; sets $id
{
	"$agentbox" create -w "$scratch/repo" -n "$1" -y \
		${BENCH_DOCKER_IMAGE:+--image "$BENCH_DOCKER_IMAGE"} >"$scratch/log" 2>&1 || {
		cat "$scratch/log"
		exit 1
	}
	id=$("$agentbox" status "$1" | sed -n 's/^sandbox *//p')
}

socket=${DOCKER_HOST:-unix:///var/run/docker.sock}
mkdir "$scratch/repo"
seq 700 >"$scratch/repo/file"
make_box one
"$pairs" "$runs" "$BUILD/tests/bench/floor-docker" "${socket#unix://}" "$id" /bin/true \
	--- "$agentbox" exec one -n -- /bin/true >"$scratch/figures"
row 'docker: exec' '<= 1.15 x create, start, inspect in C'

"$pairs" "$runs" --first docker start "$id" --then docker stop "$id" \
	--- --first "$agentbox" start one --then "$agentbox" stop one >"$scratch/figures"
row 'docker: stop' '<= 1.3 x docker stop'
"$agentbox" start one >/dev/null

"$pairs" "$runs" docker commit "$id" "$(basename "$scratch" | tr '[:upper:].' '[:lower:]-'):@N@" \
	--- "$agentbox" checkpoint create one --name "c@N@" >"$scratch/figures"
row 'docker: checkpoint' '<= 1.3 x docker commit'
docker images -q "$(basename "$scratch" | tr '[:upper:].' '[:lower:]-')" |
	sort -u | xargs -r docker rmi -f >/dev/null 2>&1 || :
"$agentbox" checkpoint ls 2>/dev/null | grep -o 'c[0-9][0-9]*' | sort -u | while read -r name; do
	"$agentbox" checkpoint rm "$name" -y >/dev/null 2>&1 || :
done

head -c 200000000 /dev/urandom >"$scratch/large"
cat >"$scratch/pipe" <<END
#!/bin/sh
tar -c -C '$scratch' large | docker exec -i '$id' tar -x -C /tmp
END
chmod 755 "$scratch/pipe"
"$pairs" "${BENCH_COPY_RUNS:-3}" "$scratch/pipe" \
	--- "$agentbox" cp "$scratch/large" one:/tmp/large >"$scratch/figures"
row 'docker: 200 MB go in' '<= 1.25 x tar | docker exec -i tar'
printf '%-36s %9s %9s\n' '  its memory, MB' 30 "$(awk -v kb="$kb" 'BEGIN { print kb / 1024 }')"

for i in $(seq "${BENCH_DOCKER_BOXES:-50}"); do
	make_box "many$i"
done
"$pairs" "$runs" docker ps -a --- "$agentbox" list -g >"$scratch/figures"
row "docker: list of ${BENCH_DOCKER_BOXES:-50} boxes" '<= docker ps -a'
"$pairs" "$runs" docker ps -a --- "$agentbox" prune --dry-run >"$scratch/figures"
row '  as the engine has them' '<= docker ps -a'
