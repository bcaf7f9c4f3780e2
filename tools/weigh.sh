#!/bin/sh
# Builds the gateway with symbols and prints how many bytes of code and data each module has, the largest first.
# The names and lines of functions, which the linker keeps in one table for all, are not among them.
set -eu
cd "$(dirname "$0")/.."
binary=$(mktemp)
trap 'rm -f "$binary"' EXIT
CGO_ENABLED=0 go build -tags grpcnotrace -trimpath -buildvcs=false -o "$binary" ./cmd/gateway
go tool nm -size "$binary" | awk '
	$3 ~ /^[TtRrDd]$/ && $4 != "crypto/internal/fips140/drbg.memory" { # of which the file holds nothing
		name = $4
		sub(/^type:\.(eq|hash)\./, "", name)
		if (name ~ /^(go:|type:|runtime\.|gclocals)/) name = "runtime"
		sub(/\[.*/, "", name)
		parts = split(name, part, "/")
		if (name ~ /^k8s\.io\/api\//) name = "k8s.io/api"
		else if (part[1] ~ /\./ && parts > 1) {
			depth = part[1] == "github.com" || part[1] == "google.golang.org" ? 3 : 2
			name = part[1]
			for (i = 2; i <= depth && i <= parts; i++) name = name "/" part[i]
			sub(/\.[^.\/]*$/, "", name)
			sub(/\.\(.*/, "", name)
		} else if (name ~ /^main\./) name = "github.com/admission-gateway/gateway"
		else name = "Go'"'"'s standard library"
		size[name] += $2
	}
	END { for (name in size) printf "%9d %s\n", size[name], name }' | sort -rn
