#!/bin/sh
# Makes sure that programs are there which tests start themselves, each named as PROGRAM:PACKAGE. On Debian, as root, missing
# packages are installed without starting their services. Elsewhere the tests that need them are skipped, and this says so.
set -eu

missing=
for pair in "$@"; do
	command -v "${pair%%:*}" >/dev/null || missing="$missing ${pair#*:}"
done
if [ -z "$missing" ]; then
	exit 0
fi
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
	echo "not installed:$missing; tests that need them are skipped ('apt-get install$missing' as root, on Debian)" >&2
	exit 0
fi
# In runlevel 1 Debian's packages install their services without starting them.
export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
# shellcheck disable=SC2086 # a list of packages
if ! { apt-get update -q && apt-get install -q -y --no-install-recommends $missing; } >&2; then
	echo "could not be installed:$missing; tests that need them are skipped" >&2
fi
