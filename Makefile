# Everything needs Go and make alone; `make test` also installs Redis, and `make bench` what it
# measures against (Debian, as root).
GO       ?= go
FUZZTIME ?= 20s

# Packages whose code runs on many goroutines at once: tested a second time under the race detector.
RACE := ./cmd/... ./policies/... ./proxy/... ./internal/admin/... ./internal/backend/... ./internal/credentials/... ./internal/ratelimit/... \
        ./internal/state/... ./internal/telemetry/... ./internal/upstream/...

# The linters' versions are those of tools/go.mod.
LINTER := $(GO) tool -modfile=tools/go.mod

.PHONY: help build demo test redis e2e lint bench bench-go fuzz clean

help: ## say what can be made
	@sed -nE 's/^([a-z-]+):.*## (.*)/make \1	\2/p' Makefile | expand -t 16

build: ## build bin/gateway
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/gateway ./cmd/gateway

demo: build ## run the gateway with an API behind it, and print commands to try
	@bin/gateway demo

# vet is part of lint, so the tests do not run it a second time.
test: redis ## run all tests
	$(GO) test -vet=off -timeout 20m ./...
	$(GO) test -vet=off -timeout 20m -race $(RACE)
	cd tools && $(GO) test -vet=off ./...
	cd e2e && $(GO) test -vet=off -timeout 20m ./...

redis: ## install redis-server where tests need it (Debian, as root)
	@tools/redis.sh

e2e: ## hold the gateway against a real Kubernetes API server and its clients
	cd e2e && $(GO) test -vet=off -timeout 20m ./...

lint: ## check format, errors, style, imports and known vulnerabilities
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "gofmt: these files must be formatted:"; echo "$$unformatted"; exit 1; }
	$(GO) vet ./...
	$(LINTER) staticcheck ./...
	$(LINTER) errcheck ./...
	cd e2e && $(GO) vet ./...
	cd tools && $(GO) vet ./... && $(GO) tool staticcheck ./... && $(GO) tool errcheck ./...
	cd tools && $(GO) run ./importrule ..
	GO="$(GO)" tools/govulncheck.sh

bench: ## measure the gateway beside nginx, haproxy and minimal proxies; five minutes
	$(GO) run ./bench

bench-go: ## run the Go benchmarks of all packages
	bench/packages.sh

fuzz: ## run every fuzz target for FUZZTIME
	@set -e; for file in $$(grep -rlE '^func Fuzz' --include='*_test.go' --exclude-dir=tools --exclude-dir=e2e . | sort); do \
		for name in $$(sed -nE 's/^func (Fuzz[A-Za-z0-9_]*)\(.*/\1/p' $$file); do \
			echo "== $$file $$name"; \
			$(GO) test -vet=off -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) ./$$(dirname $$file); \
		done; \
	done

clean: ## remove what was built
	rm -rf bin
