#!/bin/sh
# Makes sure that redis-server is there, which tests of shared limits start themselves: on Debian, as root, the package is
# installed without starting its service. Elsewhere those tests are skipped, and this says so.
set -eu

if command -v redis-server >/dev/null; then
	exit 0
fi
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
	echo "redis-server is not installed: tests that need it are skipped ('apt-get install redis-server' as root, on Debian)" >&2
	exit 0
fi
# In runlevel 1 Debian's packages install their services without starting them.
export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
apt-get update -q >&2
apt-get install -q -y --no-install-recommends redis-server >&2
