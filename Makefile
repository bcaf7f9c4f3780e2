# Everything needs Go and make alone; `make test` also installs Redis, Prometheus, Chromium and nghttpd, and `make bench` what it
# measures against (Debian, as root).
GO       ?= go
FUZZTIME ?= 20s
SOAK     ?= 10m

# The version is a tag of git, or the commit; without a repository the program calls itself "devel".
VERSION ?= $(shell tools/version.sh)

# Without grpc's pages of traces. Whatever builds the gateway has it: deploy/Dockerfile, e2e, bench.
TAGS := grpcnotrace

# What of Kubernetes the tests run in the version of e2e/go.mod, and the versions of e2e/servers besides.
COMPONENTS := kube-apiserver kube-controller-manager kube-scheduler
SERVERS    := 1.34 1.35 1.36

# Packages whose code runs on many goroutines at once: tested a second time under the race detector.
RACE := ./cmd/... ./policies/... ./proxy/... ./internal/admin/... ./internal/audit/... ./internal/backend/... ./internal/credentials/... ./internal/message/... ./internal/peek/... ./internal/secure/... ./internal/server/... ./internal/upstream/... \
        ./internal/cluster/... ./internal/discovery/... ./internal/ingress/... ./internal/listeners/... ./internal/ratelimit/... ./internal/scan/... ./internal/state/... ./internal/storage/... ./internal/telemetry/...

# The linters' versions are those of tools/go.mod.
LINTER := $(GO) tool -modfile=tools/go.mod

# Those of them that "make test-all" runs under the race detector. The others start many programs, or compile much. Of proxy it
# runs the tests with many requests at once, because all of them take five times as long under the detector.
QUICK_RACE = $$($(GO) list $(filter-out ./cmd/... ./policies/...,$(RACE)) | grep -v '/proxy$$')
CONCURRENT := ^Test(AcknowledgedIs|BackendFaults|GatewayDeadlines|Histories|MemoryIs|MixedLoad|NoUpdateIs|ProbeOverwrites|Replace|RequestSees|RequestUses|RouteLimits|ScopeOnce|Simulation|SlowReader|Upgrade|WritesWithoutShared)

# What "make test" runs, and what "make test-all" runs besides: suites that need builds of their own, such as that of
# Kubernetes. JOBS run at a time: while the tests of one wait for servers, those of another compute. All run to their ends, and
# each failure fails the whole.
PARTS := test-packages test-tools
BUILT := test-e2e test-apis test-race test-gatekeeper test-versions test-bench
JOBS  ?= 3

.PHONY: help build sbom demo test test-all $(PARTS) $(BUILT) components race proofs long programs e2e e2e-all before-one e2e-apis e2e-gatewayapi corpus lint columns limits docs words pictures monitoring bench bench-go soak fuzz mutants clean

help: ## say what can be made
	@sed -nE 's/^([a-z0-9-]+):.*## (.*)/make \1	\2/p' Makefile | expand -t 16

# The same commit and version give the same bytes in every folder: VERSION says what the stamp of version control would.
build: ## build bin/gateway
	CGO_ENABLED=0 $(GO) build -tags $(TAGS) -trimpath -buildvcs=false -ldflags="-s -w -X main.release=$(VERSION)" -o bin/gateway ./cmd/gateway

sbom: build ## write bin/gateway.cdx.json, the software bill of materials of bin/gateway (CycloneDX)
	cd tools && VERSION=$(VERSION) $(GO) run ./sbom ../bin/gateway > ../bin/gateway.cdx.json

demo: build ## run the gateway with an API behind it, and print commands to try
	@bin/gateway demo

# vet is part of lint, so the tests do not run it a second time. Test programs are linked without symbols, which halves the
# time of it. With -short a test that takes long runs a sample of its cases. "make proofs" and
# "make e2e" run all of them, and "make race" runs all of them under the race detector.
TEST := $(GO) test -vet=off -ldflags='-s -w'

# On a machine with much memory Go's collector runs a quarter as often, which saves a sixth of what the tests compute. Tests
# about memory set what they need.
COLLECT := $(shell awk '$$1 == "MemTotal:" && $$2 > 12000000 {print "GOGC=400"}' /proc/meminfo 2>/dev/null)

# SHORT is empty for all cases instead of a sample; .ci/run empties it.
SHORT  ?= -short
SAMPLE := $(COLLECT) $(TEST) $(SHORT) -timeout 30m

test: programs ## run the tests of all packages and tools; those that take long in a sample
	@$(GO) run -tags $(TAGS) ./cmd/gateway version # which several suites take from Go's cache
	@$(MAKE) --no-print-directory --keep-going --jobs=$(JOBS) $(PARTS)

test-all: programs components ## run these, and the suites that need builds of their own: Kubernetes, Gatekeeper, the race detector
	@$(GO) run -tags $(TAGS) ./cmd/gateway version
	@$(MAKE) --no-print-directory --keep-going --jobs=$(JOBS) test-e2e $(PARTS) $(filter-out test-e2e,$(BUILT))

# Kubernetes is built before the tests that run it, so that its time is not counted as theirs. Go's cache keeps it.
components:
	@cd e2e && for name in $(COMPONENTS); do $(GO) tool -n $$name >/dev/null || exit 1; done

test-packages:
	$(SAMPLE) ./...
	$(SAMPLE) -tags purego ./internal/octets ./internal/document # without assembly, as on other processors

test-tools:
	cd tools && $(SAMPLE) ./...

# Under the race detector all but the quick packages run if the others run whole.
test-race:
	$(COLLECT) $(TEST) -short -timeout 60m -race $(if $(SHORT),$(QUICK_RACE),$(RACE))
	$(if $(SHORT),$(SAMPLE) -race -run '$(CONCURRENT)' ./proxy)

test-bench:
	cd bench && $(SAMPLE) ./...

test-gatekeeper:
	cd tools/gatekeeper && $(SAMPLE) ./...

test-versions:
	cd e2e/versions && $(SAMPLE) ./...

test-e2e:
	cd e2e && $(SAMPLE) ./...

test-apis:
	cd e2e/apis && $(TEST) $(SHORT) -timeout 30m -count=1 ./... # they compare the memory of programs

race: programs ## run the tests of concurrent packages whole, under the race detector
	$(TEST) -timeout 60m -race $(RACE)

proofs: programs ## run the tests of all packages and tools whole
	$(TEST) -timeout 30m ./...
	cd tools && $(TEST) ./...
	cd tools/gatekeeper && $(TEST) -timeout 10m ./...
	cd bench && $(TEST) -timeout 10m ./...

programs: ## install Redis, Prometheus, Chromium and nghttpd where tests need them (Debian, as root)
	@tools/debian.sh redis-server:redis-server prometheus:prometheus promtool:prometheus chromium:chromium nghttpd:nghttp2-server

e2e: programs components ## test the gateway and deploy/ with a real Kubernetes API server and its clients
	cd e2e && $(TEST) -timeout 20m ./...
	cd e2e/versions && $(TEST) -timeout 10m ./...

long: ## run what proofs leave out: all calls of Rego's built-in functions, and the walks of docs/internals/architecture.md
	E2E_ALL=1 $(TEST) -count=1 -timeout 20m ./admission/rego/builtin
	E2E_ALL=1 $(TEST) -count=1 -timeout 20m -run '^TestWalk' ./policies ./proxy

e2e-all: proofs long e2e-gatewayapi components ## all tests whole, with all that takes its time, and before all versions of the API server that are supported
	cd e2e && E2E_ALL=1 $(TEST) -count=1 -timeout 30m ./...
	@$(MAKE) --no-print-directory $(SERVERS:%=before-%)

before-%: components ## test the gateway and deploy/ before an older API server, such as before-1.34
	@cd e2e/servers/v$* && $(GO) tool -n kube-apiserver >/dev/null
	cd e2e && E2E_SERVER=$* $(TEST) -count=1 -timeout 20m ./deploy

# Each of them takes minutes to build, so that continuous integration runs one: another with each commit.
COMMITS = $(shell git rev-list --count HEAD 2>/dev/null || echo 0)

before-one: ## the same before one of the older API servers, another with each commit
	@$(MAKE) --no-print-directory before-$(word $(shell expr $(COMMITS) % $(words $(SERVERS)) + 1),$(SERVERS))

corpus: ## judge requests for all published OpenAPI documents beside two validators; installs what it needs (Debian, as root)
	cd e2e/apis && $(GO) run ./install && E2E_APIS_COMPLETE=1 E2E_ALL=1 $(TEST) -count=1 -timeout 60m -run '^TestPublishedDocuments$$' .

# REPORT is the file that the suite writes its report to, such as docs/internals/gateway-api-conformance.yaml.
e2e-gatewayapi: ## run Gateway API's conformance suite, and what else a cluster asks of an ingress controller
	@cd e2e && for name in kube-apiserver kube-controller-manager; do $(GO) tool -n $$name >/dev/null || exit 1; done
	cd e2e/gatewayapi && $(TEST) -count=1 -timeout 40m . -args -version=$(VERSION) $(if $(REPORT),-report-output=$(abspath $(REPORT)))

e2e-apis: ## run ordinary APIs with their clients, directly and through the gateway; installs them (Debian, as root)
	cd e2e/apis && $(GO) run ./install && E2E_APIS_COMPLETE=1 $(TEST) -count=1 -timeout 30m ./...

lint: ## check format, errors, style, imports and known vulnerabilities
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "gofmt: these files must be formatted:"; echo "$$unformatted"; exit 1; }
	$(GO) vet ./...
	$(LINTER) staticcheck ./...
	$(LINTER) errcheck ./...
	cd e2e && $(GO) vet ./...
	cd e2e/apis && $(GO) vet ./...
	cd e2e/versions && $(GO) vet ./...
	cd e2e/gatewayapi && $(GO) vet ./...
	cd tools/gatekeeper && $(GO) vet ./...
	cd bench && $(GO) vet ./... && $(LINTER:tools/go.mod=../tools/go.mod) staticcheck ./... && $(LINTER:tools/go.mod=../tools/go.mod) errcheck ./...
	cd tools && $(GO) vet ./... && $(GO) tool staticcheck ./... && $(GO) tool errcheck ./...
	cd tools && $(GO) run ./importrule .. && $(GO) run ./errorrule .. && $(GO) run ./arrows .. && $(GO) run ./columns ..
	GO="$(GO)" tools/govulncheck.sh

docs: ## write the tables of fields in docs/policies from policies/crds
	cd tools && $(GO) run ./crdtables ..

words: ## count the words of the documentation, page by page
	cd tools && $(GO) run ./pagewords ..

pictures: programs ## take the picture of README in docs/images, and pictures of all pages in bin/pictures
	$(TEST) -count=1 -run '^TestPictures$$' ./internal/admin -args -pictures ../../bin/pictures

monitoring: ## write alerts and dashboards for deploy/ from tools/monitoring
	cd tools && $(GO) run ./monitoring ..

chart: ## write the schema of the values of the Helm chart from tools/chart
	cd tools && $(GO) run ./chart ..

columns: ## break lines of Go code that have more than 120 columns
	cd tools && $(GO) run ./columns -w ..

limits: ## lower the limits of lint to what the code is now
	cd tools && $(GO) run ./arrows -w ..

bench: ## measure the gateway beside nginx, haproxy and minimal proxies; twenty minutes
	cd bench && $(GO) run .
	cd bench && $(GO) run . -watches 2000

soak: ## hold a gateway under all kinds of load and faults for SOAK, and see that it does not grow
	GATEWAY_SOAK=$(SOAK) $(GO) test -vet=off -count=1 -timeout 0 -v -run '^TestSoak$$' ./cmd/gateway

bench-go: ## run the Go benchmarks of all packages
	bench/packages.sh

fuzz: ## run every fuzz target for FUZZTIME
	@set -e; for file in $$(grep -rlE '^func Fuzz' --include='*_test.go' --exclude-dir=tools --exclude-dir=e2e . | sort); do \
		for name in $$(sed -nE 's/^func (Fuzz[A-Za-z0-9_]*)\(.*/\1/p' $$file); do \
			echo "== $$file $$name"; \
			$(GO) test -vet=off -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) ./$$(dirname $$file); \
		done; \
	done

N    ?= 100
SEED ?= 1

mutants: ## plant N faults in the package PKG, one at a time, and print those that the tests in its folder miss
	cd tools && nice $(GO) run ./mutants -n $(N) -seed $(SEED) .. $(PKG)

clean: ## remove what was built
	rm -rf bin
