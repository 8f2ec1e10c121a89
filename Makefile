# acpod's commands. `make run` and `make test` are all that a newcomer needs: both work on a bare machine with Go.
export GOTOOLCHAIN := go1.27.3
export CGO_ENABLED ?= 0

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
COMMIT  ?= $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT)

# The race detector needs cgo and so a C compiler: it is used wherever there is one.
CC_FOUND := $(shell command -v $${CC:-cc} >/dev/null 2>&1 && echo yes)
ifeq ($(CC_FOUND),yes)
RACE := CGO_ENABLED=1 go test -race
else
RACE := go test
endif

.PHONY: run build test test-all test-bytes sim storm chaos soak scale fuzz bench search interop agents lint fmt clean

## run: build the pod and start it with the embedded default (open the address that it prints)
run: build
	./bin/acpod serve

## build: the shipped binaries, static, in bin/
build:
	@mkdir -p bin
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./cmd/...

## test: everything that needs nothing but Go, in under 10 minutes on 2 cores
test: test-all test-bytes

test-all:
	$(RACE) -timeout 9m ./...

# What measures bytes and memory is compiled only without the race detector, which would be most of what it measures.
test-bytes:
ifeq ($(CC_FOUND),yes)
	go test -timeout 5m -parallel 2 $$(./.ci/without-race)
endif

## sim: the kernel's seeded simulation at length
sim:
	go test ./runtime/kernel -run Simulation -seeds 5000 -timeout 30m -v

## storm: about an hour of the simulation, the storms on real goroutines and the built binary's tests, again and again
storm: sim
	$(RACE) -timeout 3h -count 20 ./runtime/kernel ./cmd/acpod

# Rates of faults are per extension: with many of them a part of each is enough.
CHAOS := ./bin/acpod-chaos run --spawn --assert
SEED  ?= 1
FAULTS ?= all*0.5

## chaos: three minutes of the harness with all faults and 300 extensions (SEED=1, FAULTS=all*0.5)
chaos: build
	@mkdir -p artifacts
	$(CHAOS) --faults '$(FAULTS)' --extensions 300 --sessions 300 --duration 3m --rate 100 --seed $(SEED) --report artifacts/chaos.json

## soak: half an hour of it with 1,000 extensions; what the last one said is in docs/soak.md
soak: build
	@mkdir -p artifacts/soak
	$(CHAOS) --faults 'all*0.15' --extensions 1000 --sessions 1000 --duration 30m --rate 200 --seed $(SEED) --keep artifacts/soak --report artifacts/soak/report.json

## scale: ten thousand extensions and 1,000 calls a second for a minute, beside a bare echo server
scale: build
	@mkdir -p artifacts
	./bin/acpod-chaos scale --report artifacts/scale.json

## fuzz: each fuzz target for a while (FUZZTIME=10s)
fuzz:
	./.ci/fuzz $(or $(FUZZTIME),10s)

## bench: ratios and allocations, in about two minutes; figures go to docs/performance.md by hand
bench:
	go test -run '^$$' -bench . -benchmem -benchtime 2s ./...

## search: how well a search finds the tools of real servers, which it takes from npm (about four minutes)
search:
	./.ci/search

## interop: the pod against software that is not ours (installs what it needs from npm and Debian)
interop: build
	./.ci/interop

## agents: Codex, Gemini, Claude and opencode behind the pod, without a model (installs 1.3 GB from npm; AGENTS="codex gemini")
agents: build
	./.ci/agents/run $(AGENTS)

## lint: gofmt, vet and the linter
lint:
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); exit 1; }
	go vet ./...
	go tool -modfile=.ci/lint/go.mod golangci-lint run -c .ci/lint/golangci.yml ./...

fmt:
	gofmt -w $$(git ls-files '*.go')

clean:
	rm -rf bin artifacts
