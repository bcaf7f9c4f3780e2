#!/bin/sh
# Runs the Go benchmarks of every package that has any and prints time, bytes and allocations per operation.
#
#   bench/packages.sh [pattern [go test flags…]]      pattern of benchmark names, default all
set -eu
cd "$(dirname "$0")/.."
pattern=${1:-.}
[ $# -eq 0 ] || shift
packages=$(grep -rl --include='*_test.go' --exclude-dir=bench --exclude-dir=e2e --exclude-dir=tools '^func Benchmark' . | xargs -r -n1 dirname | sort -u)
[ -n "$packages" ] || { echo "no package has a benchmark" >&2; exit 1; }
# shellcheck disable=SC2086 # one word a package
exec go test -run '^$' -bench "$pattern" -benchmem -benchtime 200ms "$@" $packages
