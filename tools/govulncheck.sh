#!/bin/sh
# Looks for known vulnerabilities that the code can reach. Where the tool or its database cannot be had, which is no fault
# of the code, a line says so and the check passes.
set -u
cd "$(dirname "$0")/.."
version=v1.9.0
go=${GO:-go}
bin=$PWD/bin/tools

if ! out=$(GOBIN=$bin GOFLAGS= $go install golang.org/x/vuln/cmd/govulncheck@$version 2>&1); then
	echo "govulncheck: skipped, it cannot be installed here: $(printf '%s\n' "$out" | tail -n 1)"
	exit 0
fi
out=$("$bin/govulncheck" ./... 2>&1)
case $? in
0) echo "govulncheck: no known vulnerability can be reached" ;;
3) printf '%s\n' "$out"; exit 1 ;;
*) echo "govulncheck: skipped, it cannot run here: $(printf '%s\n' "$out" | tail -n 1)" ;;
esac
