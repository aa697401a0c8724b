# Needs Go (the version in go.mod), make and a POSIX shell; `make help` lists
# the targets. Tools that Go can't build on the fly go to .cache/.

GO       ?= go
CACHE    := $(CURDIR)/.cache
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS  := -s -w -X main.version=$(VERSION)

GOLANGCI_VERSION := v2.15.0
GOLANGCI         := $(CACHE)/bin/$(GOLANGCI_VERSION)/golangci-lint

# The newest one whose modules all come from hosts that a closed network lets through.
NFPM_VERSION := v2.45.2
NFPM         := $(CACHE)/bin/nfpm-$(NFPM_VERSION)/nfpm
GOMOD_VERSION := v1.9.0
GOMOD        := $(CACHE)/bin/cyclonedx-gomod-$(GOMOD_VERSION)/cyclonedx-gomod

# What `make demo` plans, and how.
DEMO := plan testdata/demo/batch.csv \
	--cluster testdata/demo/cluster.toml \
	--models testdata/demo/models.toml

# Further flags for go test, such as TESTFLAGS=-v; whose tests run; which benchmarks, how often;
# how long each fuzz target runs; what runs under the race detector; which Slurm live
# tests run against, where not this machine's, and the packages that have them; flags of
# the load test, such as LOADFLAGS='-jobs 100000 -release 24.11.5 -rate 10', and of the soak,
# such as SOAKFLAGS='-jobs 5000 -seed 7 -minutes 30'; the key and the kinds of `make repo`.
TESTFLAGS ?=
TESTPKGS  ?= ./...
BENCH     ?= .
BENCHPKGS ?= ./...
COUNT     ?= 1
FUZZTIME  ?= 10s
RACEPKGS  ?= ./...
SLURM     ?=
LOADFLAGS ?=
SOAKFLAGS ?=
KEY       ?=
KINDS     ?= deb rpm
LIVEPKGS  ?= ./internal/livetest ./internal/steer ./slurm ./slurm/install

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

.PHONY: build
build: ## compile bin/epplan and bin/epplab, static and without cgo
	CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -ldflags '$(LDFLAGS)' -o bin/ ./cmd/epplan ./cmd/epplab

.PHONY: build-epd
build-epd: ## compile bin/epd (needs a C compiler)
	CGO_ENABLED=1 $(GO) build -trimpath -buildvcs=false -ldflags '$(LDFLAGS)' -o bin/epd ./cmd/epd

.PHONY: man
man: build build-epd ## write the manual pages to bin/man
	rm -rf bin/man
	bin/epplan man bin/man
	bin/epd man bin/man

# The deb and rpm packages, for this machine's processor.
.PHONY: packages
packages: build build-epd $(NFPM) ## build deb and rpm packages into bin/packages
	rm -rf bin/packages
	GO='$(GO)' NFPM=$(NFPM) packaging/build.sh '$(VERSION)' bin/epplan bin/epd $(CACHE)/packages bin/packages

# Of what `make packages` built; earlier packages stay in it. KEY=ID signs it, KINDS=deb or rpm makes one of both.
.PHONY: repo
repo: ## make an apt and a dnf repository of the packages in bin/repo (KEY=GPG-ID KINDS="deb rpm")
	KINDS='$(KINDS)' packaging/repo.sh bin/packages bin/repo $(KEY)

# The same program gives the same list: without a serial number, and with the time of the last commit.
.PHONY: sbom
sbom: build build-epd $(GOMOD) ## list the modules in bin/epplan and bin/epd, as CycloneDX in bin/*.cdx.json
	for program in epplan epd; do \
		$(GOMOD) bin -json -noserial -version '$(VERSION)' -output bin/$$program.cdx.json bin/$$program && \
		sed -i 's/"timestamp": "[^"]*"/"timestamp": "'"$$(TZ=UTC git log -1 --format=%cd --date=format-local:%Y-%m-%dT%H:%M:%SZ)"'"/' \
			bin/$$program.cdx.json || exit 1; \
	done

$(GOMOD):
	GOBIN=$(@D) GOFLAGS= CGO_ENABLED=0 $(GO) install github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@$(GOMOD_VERSION)

$(NFPM):
	GOBIN=$(@D) GOFLAGS= CGO_ENABLED=0 $(GO) install github.com/goreleaser/nfpm/v2/cmd/nfpm@$(NFPM_VERSION)

.PHONY: demo
demo: build ## plan the demo batch
	bin/epplan $(DEMO)

.PHONY: demo-replay
demo-replay: build ## fill a synthetic cluster by several placements
	rm -rf $(CACHE)/demo-replay
	bin/epplab generate openb --seed 1 --nodes 300 --tasks 2000 $(CACHE)/demo-replay
	bin/epplab replay $(CACHE)/demo-replay --policy fgd,pwr,pwr+fgd:0.1,bestfit,potential --svg $(CACHE)/demo-replay/curves.svg

.PHONY: test
test: ## go vet and every test; says what was skipped
	$(GO) vet ./...
	@GO='$(GO)' scripts/test.sh -vet=off -timeout 45m $(TESTFLAGS) $(TESTPKGS)

.PHONY: test-long
test-long: ## properties on as many draws as there is time for (some ten minutes)
	EPPLAN_LONG=1 $(GO) test -count 1 -timeout 1h -v $(TESTFLAGS) ./planner/policy ./internal/agent ./internal/daemon ./dvfsmodel/joint \
		./internal/trace

# With SLURM=SUITE in a root of another Slurm, where nothing can be built.
.PHONY: test-live
test-live: ## only the tests against a real Slurm (needs root and scripts/test-packages.sh); SLURM=26.05: another one
ifeq ($(SLURM),)
	EPPLAN_REQUIRE_SHARED=1 GO='$(GO)' scripts/test.sh -count 1 -timeout 45m -v $(TESTFLAGS) ./internal/livetest
else
	scripts/slurm.sh $(SLURM)
	mkdir -p $(CACHE)/live
	CGO_ENABLED=0 $(GO) build -o $(CACHE)/live ./cmd/epplan ./cmd/epplab
	CGO_ENABLED=1 $(GO) build -o $(CACHE)/live ./cmd/epd
	EPPLAN_REQUIRE_SHARED=1 EPPLAN_LIVE_PROGRAMS=$(CACHE)/live GO='$(GO)' scripts/test.sh \
		-count 1 -timeout 45m -v $(TESTFLAGS) \
		-exec '$(CURDIR)/scripts/slurm.sh $(SLURM)' $(LIVEPKGS)
endif

.PHONY: race
race: ## the short tests under the race detector (needs a C compiler)
	CGO_ENABLED=1 $(GO) test -race -short -timeout 45m $(TESTFLAGS) $(RACEPKGS)

.PHONY: lint
lint: $(GOLANGCI) ## golangci-lint, formatting, go.mod and go.sum
	GOLANGCI_LINT_CACHE=$(CACHE)/golangci-lint $(GOLANGCI) run ./...
	GOLANGCI_LINT_CACHE=$(CACHE)/golangci-lint $(GOLANGCI) fmt --diff
	$(GO) mod tidy -diff
	$(GO) mod verify

.PHONY: fmt
fmt: $(GOLANGCI) ## format the code
	$(GOLANGCI) fmt

$(GOLANGCI):
	GOBIN=$(@D) GOFLAGS= CGO_ENABLED=0 $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)

.PHONY: bench
bench: ## the benchmarks (BENCH=regexp BENCHPKGS=packages COUNT=n)
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) $(BENCHPKGS)

# One controller on one core; it needs root, munge, ip and taskset, and a machine with little else to do.
.PHONY: load
load: ## what a controller takes at up to 100,000 jobs and 1,000 agents (about fifteen minutes; LOADFLAGS)
	EPPLAN_REQUIRE_SHARED=1 $(GO) test -run '^$$' -bench Load -benchtime 1x -timeout 1h -v ./internal/loadtest $(LOADFLAGS)

# A real Slurm, as test-live has it; progress and figures on stderr, samples in .cache/soak.
.PHONY: soak
soak: ## 30,000 short jobs while things fail: what grows, and what is lost (some hours; SOAKFLAGS)
	EPPLAN_REQUIRE_SHARED=1 $(GO) test -run '^$$' -bench Soak -benchtime 1x -timeout 24h -v ./internal/livetest \
		-samples $(CACHE)/soak $(SOAKFLAGS)

.PHONY: cover
cover: ## test coverage, in coverage.out and by package
	$(GO) test -coverprofile=coverage.out -coverpkg=./... ./...
	$(GO) tool cover -func=coverage.out | tail -n 1

# go test -list prints a package's targets, then "ok <package>". Making an input
# that finds something new as short as can be takes a minute by default, of which
# such a short run has none.
.PHONY: fuzz
fuzz: ## each fuzz target for FUZZTIME (10s)
	@set -e; mkdir -p $(CACHE); $(GO) test -list '^Fuzz' ./... > $(CACHE)/fuzz.list; \
	awk '/^Fuzz/ {names[n++] = $$1} /^ok/ {for (i = 0; i < n; i++) print $$2, names[i]; n = 0}' $(CACHE)/fuzz.list | \
	while read -r pkg name; do \
		$(GO) test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 100x "$$pkg" || exit 1; \
	done

.PHONY: clean
clean: ## remove what was built
	rm -rf bin coverage.out .cache
