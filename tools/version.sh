#!/bin/sh
# Prints the version of the checked out commit as Go itself would name it: its tag, or a pseudo-version made of
# the commit's time and id, with +dirty if a file differs from the commit. A file that is missing is no difference:
# a container image is built without the tests. Without git or a repository it prints nothing.
set -eu
cd "${1:-$(dirname "$0")/..}"
commit=$(git rev-parse --verify --quiet HEAD 2>/dev/null) || exit 0
version=$(git describe --tags --exact-match --match 'v[0-9]*' "$commit" 2>/dev/null) ||
	version=$(TZ=UTC git log -1 --abbrev=12 --date=format-local:%Y%m%d%H%M%S --format=v0.0.0-%cd-%h "$commit")
git diff --quiet --diff-filter=d HEAD || version=$version+dirty
echo "$version"
