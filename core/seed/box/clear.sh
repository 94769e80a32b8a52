# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# DIR: empty it, for what was sent is out of date.
find . ! -name . -prune -exec rm -rf -- {} + || fail "cannot empty $PWD"
