# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154
# tests/sdk/functions.sh: what npm installs for tests, behind cli/functions.sh.
#
#	sdk_packages e2b     the packages of tests/sdk/e2b and its scripts are in $sdk_dir; else 1,
#	                     and why in $err
sdk_dir=

# They stay in the build directory, and are looked at again when the list changes.
sdk_packages() # NAME
{
	have node npm || {
		err='no Node.js is installed'
		return 1
	}
	node -e '
		const [a, b] = process.versions.node.split(".").map(Number)
		process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)' || {
		err='this Node.js is too old for the SDK'
		return 1
	}
	sdk_dir=$BUILD/tests/sdk/$1-run
	mkdir -p "$sdk_dir" || exit 99
	run flock "$sdk_dir" sh -c '
		cd "$1" || exit 99
		if ! cmp -s "$2/package-lock.json" .installed; then
			rm -rf node_modules .installed
			cp -f "$2/package.json" "$2/package-lock.json" . || exit 99
			chmod u+w package.json package-lock.json
			npm ci --ignore-scripts --no-audit --no-fund --no-update-notifier || exit
			cp package-lock.json .installed
		fi
		for f in "$2"/*.mjs; do
			cmp -s "$f" "${f##*/}" ||
				{ cp -f "$f" .new && mv -f .new "${f##*/}"; } || exit 99
		done' sh "$sdk_dir" "$SRC/tests/sdk/$1"
	return "$status"
}
