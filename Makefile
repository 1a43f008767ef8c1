# Everything that CI runs is a target here; .ci/run installs what they need and calls `make ci`.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# Tools are pinned apart from the product's dependencies and built on first use.
tool := go tool -modfile=tools/go.mod

# What is deployed is arm64; the end-to-end tests run the same code on the host's architecture.
ARCH ?= arm64
host := $(shell go env GOHOSTARCH 2>/dev/null)
DIST ?= $(if $(filter arm64,$(ARCH)),dist,dist/$(ARCH))
# Index has one program for each kind of sink, such as index/opensearch: it links that kind alone.
functions := receive prune dlq feed searchable job $(patsubst functions/%/main.go,%,$(wildcard functions/index/*/main.go))
# The most bytes of a program: index is a base, and what the kind of its sink adds to it, 200 kB unless it is named.
# receive is above 11.5 MB because a linker fills pages of 64 KiB: its last page of code holds 2.5 KB, and its last page
# of constants 13 KB. What writes the sources' examples (source.Example), which receive never calls, has 13 KB of code.
# job links every kind of sink, and operators' commands.
bytes := receive=11600000 prune=11500000 dlq=11500000 feed=11500000 searchable=9000000 job=14300000
# elasticsearch and postgres grew by one such page when a turn became stages with types of their own, opensearch when
# flights began to requeue messages (ADR 0070).
index_base := 12100000
index_adds := opensearch=160000 elasticsearch=160000 postgres=1010000 vertex=450000
# The same source gives the same bytes, wherever and whenever it is built.
gobuild := go build -trimpath -buildvcs=false -tags lambda.norpc -ldflags "-s -w -buildid="

# Where git does not answer, such as in a container that mounts another user's clone, no commit is asked for.
vcs = $(shell git rev-parse HEAD >/dev/null 2>&1 || echo -buildvcs=false)

# ARGS is handed on: make dev ARGS='--events examples --source govuk'.
ARGS ?=
FUZZTIME ?= 20000x
MUTATETIME ?= 1h
OUTAGES ?= 30s,90s,5m
ROUNDS ?= 3
SIMTIME ?= 10m
RACECOUNT ?=

sources := $(wildcard cmd command e2e event examples functions infra internal searchable setting sink source tools)
scripts := $(wildcard .ci/run .ci/stages e2e/*.sh examples/*/run localstack/*.sh localstack/*/*.sh)

# make dies of Ctrl-C whatever the command answers, because a terminal sends the signal to both. With job control the
# terminal belongs to the command alone, whose exit code is make's then.
define as_a_job
run() { \
	  [ -t 0 ] || exec "$$@"; \
	  set -m; "$$@"; \
	}; run
endef

# need COMMAND,WHY,PACKAGE: ends at once where a command is missing, with the line that installs it.
need = command -v $(1) >/dev/null || { echo 'make: $(1) is not installed, and $(2): $(3)' >&2; exit 1; }
need_go = $(call need,go,lull is written in Go,install Go $(shell sed -n 's/^go //p' go.mod) from https://go.dev/dl)
need_node = $(call need,node,CDK runs on it,sudo apt install nodejs (macOS: brew install node))

##@ Using it

.PHONY: help
help: ## List the targets
	@awk 'BEGIN { FS = ":.*## " } /^##@/ { printf "\n%s\n", substr($$0, 5) } /^[a-z0-9-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: dev
dev: ## Run the whole pipeline in one process with a demo stream (needs Go only)
	@$(need_go)
	@[ -e $(DIST)/host/lull ] || echo 'The first time, Go downloads the modules (530 MB on disk) and compiles them.'
	@go build -v $(vcs) -o $(DIST)/host/lull ./cmd/lull 2>&1 | \
	  awk -v all=$$(go list -deps ./cmd/lull | wc -l) -f tools/progress.awk
	@$(as_a_job) $(DIST)/host/lull dev $(ARGS)

# LULL_CONFIG is handed on only where it was given: below it has a default of its own.
.PHONY: local-up
local-up: ## Deploy lull to AWS and OpenSearch on this machine, and send a first document (LULL_CONFIG=FILE)
	@$(if $(filter command line environment,$(origin LULL_CONFIG)),LULL_CONFIG=$(LULL_CONFIG),LULL_CONFIG=) localstack/up.sh

.PHONY: local-down
local-down: ## End what local-up started
	@localstack/down.sh

##@ Checking it

.PHONY: test
test: ## Run every test that needs Go and Node only, the long ones briefly (make nightly runs them whole)
	@$(need_go)
	@$(need_node)
	go test -short -timeout 15m ./...

.PHONY: test-long
test-long: ## The same with every mutant, all seeds, long resyncs and the full tables
	go test -count=1 -timeout 60m ./...

# Left out is what the detector cannot learn from, slowly: CDK's bindings, and proofs that run one coroutine at a time,
# such as the model and the simulator. The benchmarks run what internal/local/dev runs too: they are raced at night.
# So are the tests of serial, which take long in one goroutine.
computed := internal/simulation/(cost|plot|price|sim)|internal/proof/(docs|faultmap|layering|model|mutate|prose|refine|stops|tree$(if $(RACECOUNT),,|bench))
serial := TestCostEstimatesTheBillOfTheSettings|TestNestingEndsNoCommand|TestOneFullPassADayAtAnySize|TestTheSameSettingsRunOnce

.PHONY: race
race: ## Run the tests with the race detector (RACECOUNT=5 repeats each, the benchmarks too)
	go test -race -short $(if $(RACECOUNT),-count=$(RACECOUNT),-skip '^($(serial))$$') -timeout 60m \
	  $$(go list ./... | grep -vE '/(infra|functions|$(computed))(/|$$)')

.PHONY: test-example
test-example: ## Build the example module with kinds of its own, and run lull's suites over them
	cd examples/outoftree && go vet ./... && go test ./...

.PHONY: test-vertex
test-vertex: ## Run the sink of Vertex AI Search against a server made from Google's definition
	cd examples/vertex && go vet ./... && go test ./...

.PHONY: cms
cms: ## Run the example of a CMS: write at http://127.0.0.1:8080, search at its /search, and see lull at :7070
	examples/cms/run

.PHONY: test-cms
test-cms: ## Save, search and delete articles of the example CMS with a real `lull dev`
	cd examples/cms && go vet ./... && go test -count=1 ./...

.PHONY: senders
senders:
	mkdir -p dist/senders && cd examples/senders && cp send.* try.* *.json requirements.txt $(CURDIR)/dist/senders
	cd dist/senders && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error && npx tsc --outDir js
	test -x dist/senders/venv/bin/python || python3 -m venv dist/senders/venv
	dist/senders/venv/bin/pip install -q --disable-pip-version-check --require-hashes -r dist/senders/requirements.txt

.PHONY: test-senders
test-senders: senders ## Run the senders in TypeScript and Python against a stub of SQS, and decode what they send
	LULL_SENDERS=$(CURDIR)/dist/senders go test -count=1 ./examples/senders

.PHONY: test-docs
test-docs: ## Run every command that README.md and docs/ show and that needs nothing but this machine
	go test -count=1 -timeout 15m ./internal/proof/docs

# The browser is Debian's chromium, or Chrome where that is; axe-core comes from npm, by its lock file.
browser := internal/console/browser
$(browser)/node_modules/axe-core/axe.min.js: $(browser)/package-lock.json
	cd $(browser) && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

.PHONY: test-console
test-console: $(browser)/node_modules/axe-core/axe.min.js ## Use the console in a real browser (needs Chromium and npm)
	go test -count=1 -tags browser -timeout 15m ./$(browser)

.PHONY: screenshots
screenshots: ## Draw the console's pictures for the documents: docs/img/console-*.png (needs Chromium)
	go test -count=1 -tags browser -timeout 15m -run '^TestScreenshots$$' ./$(browser) -args -write

.PHONY: faults
faults: ## Check that every line of docs/faults.md names tests that exist
	go test -tags faults ./internal/proof/faultmap

# FUZZTIME is a number of inputs, because Go may call the end of a time a failure (golang/go#75804).
.PHONY: fuzz
fuzz: ## Fuzz every decoder for a short while each (FUZZTIME=20000x)
	@grep -rlE --include='*_test.go' '^func Fuzz[A-Z]' command event internal setting sink source | while read -r file; do \
	  grep -oE '^func Fuzz[A-Za-z0-9_]+' "$$file" | while read -r _ name; do \
	    echo "$$(dirname "$$file") $$name"; \
	    go test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) "./$$(dirname "$$file")"; \
	  done; \
	done

.PHONY: model
model: ## Check the protocol exhaustively: the large runs
	go test -count=1 -v -timeout 60m ./internal/proof/model -args -large

.PHONY: sim
sim: ## Simulate the pipeline under faults (SIMTIME=10m)
	go test -count=1 -v -timeout 60m ./internal/simulation/sim -args -for $(SIMTIME)

.PHONY: mutate
mutate: ## Make small edits in the core, and name those that no test notices (docs/mutants.md; MUTATETIME=1h)
	go test -count=1 -v -timeout 90m -run '^TestSample$$' ./internal/proof/mutate -args -mutants 1000 -for $(MUTATETIME) -seed $$(date +%Y%m%d)

.PHONY: bench
bench: ## Measure all contenders over one trace and write docs/numbers.md (takes minutes)
	go test -count=1 -v -timeout 60m -run '^TestNumbers$$' ./internal/proof/bench -args -write

.PHONY: bench-outage
bench-outage: ## Kill a real PostgreSQL and OpenSearch under lull dev, and write how late documents are (OUTAGES=30s,90s,5m)
	localstack/setup.sh
	localstack/setup.sh --only postgres
	e2e/run.sh engines -test.run='^TestOutages$$' -write -away=$(OUTAGES)

.PHONY: bench-engines
bench-engines: ## Measure how fast lull dev writes to a real OpenSearch and PostgreSQL, beside a bulk loader (ROUNDS=3)
	localstack/setup.sh
	localstack/setup.sh --only postgres
	OPENSEARCH_JVM='-Xms1g -Xmx1g -XX:TieredStopAtLevel=4' POSTGRES_ARGS='-c fsync=on -c full_page_writes=on' \
	  e2e/run.sh engines -test.run='^TestSettled$$' -write -rounds=$(ROUNDS)

.PHONY: bench-engines-smoke
bench-engines-smoke: ## The same with a few documents and the engines that are installed
	cd e2e/loader && go vet ./...
	e2e/run.sh engines -test.run='^TestSettled$$' -smoke

.PHONY: bench-smoke
bench-smoke: bench-engines-smoke ## Run every benchmark once, briefly, so that none of them rots
	go test -count=1 -run '^TestSmoke$$' ./internal/proof/bench -args -smoke
	go test -run '^$$' -bench . -benchtime 1x -timeout 15m \
	  $$(grep -rlE --include='*_test.go' '^func Benchmark' event internal sink source | xargs -n1 dirname | sort -u | sed 's|^|./|')

.PHONY: e2e
e2e: ## Deploy to LocalStack (no Docker) and prove the stack end to end (E2E_SHORT=yes leaves out the longest tests)
	localstack/setup.sh
	$(MAKE) build ARCH=$(host)
	e2e/run.sh stack $(if $(E2E_SHORT),-short)

.PHONY: e2e-iam
e2e-iam: ## The same flow with IAM enforced; each permission taken away breaks it
	localstack/setup.sh
	$(MAKE) build ARCH=$(host)
	e2e/run.sh iam

.PHONY: e2e-upstreams
e2e-upstreams: ## Run lull behind a real RabbitMQ, and behind Debezium on PostgreSQL through Kafka
	localstack/setup.sh --only rabbitmq kafka postgres
	e2e/run.sh upstreams

.PHONY: e2e-sinks
e2e-sinks: ## Run the suite of sinks, and lull dev, before real servers: PostgreSQL, Typesense, Elasticsearch 8 and 9
	localstack/setup.sh --only postgres typesense elasticsearch elasticsearch9
	e2e/run.sh sinks

.PHONY: e2e-long
e2e-long: ## Upgrade a stack of an earlier build under load, and roll it back
	localstack/setup.sh
	$(MAKE) build ARCH=$(host)
	e2e/run.sh long

.PHONY: acceptance
acceptance: build ## Prove a stack on your AWS account and remove it again; it asks first (ACCOUNT=111122223333)
	@$(need_node)
	@$(as_a_job) e2e/acceptance.sh '$(ACCOUNT)' $(ARGS)

# The end-to-end tests run in e2e, and on AWS. LocalStack cannot change a stack, so the deploy under load is in the
# second target.
.PHONY: acceptance-localstack acceptance-iam
acceptance-localstack:
	localstack/setup.sh
	$(MAKE) build ARCH=$(host)
	e2e/run.sh acceptance -tests none -for 40s -page $(CURDIR)/out/acceptance.md

acceptance-iam:
	localstack/setup.sh
	$(MAKE) build ARCH=$(host)
	LULL_E2E_BACKEND=ministack e2e/run.sh acceptance -for 2m -page $(CURDIR)/out/acceptance-iam.md

.PHONY: lifecycles
lifecycles: ## Simulate an outage, count what prune costs, and write docs/lifecycles.md
	go test -count=1 -timeout 30m -run '^TestWrite(Recovery|Slow|Ceiling|Cost)$$' ./internal/simulation/sim ./internal/pipeline/prune -args -update

.PHONY: lifecycles-same
lifecycles-same: lifecycles ## Check that docs/lifecycles.md and its pictures are what `make lifecycles` writes
	git diff --exit-code -- docs/lifecycles.md docs/img

##@ Keeping it tidy

.PHONY: lint
lint: lint-go lint-format lint-dead lint-tidy lint-docs lint-prose lint-shell lint-workflows ## Lint the code, its format, modules, scripts, records and English

.PHONY: lint-go
lint-go:
	$(tool) golangci-lint run ./...

.PHONY: lint-format
lint-format:
	@bad=$$($(tool) gofumpt -l $(sources)); \
	if [ -n "$$bad" ]; then printf 'not formatted (make fmt):\n%s\n' "$$bad"; exit 1; fi

.PHONY: lint-dead
lint-dead:
	@dead=$$($(tool) deadcode -test -tags e2e,e2eiam,e2elong,e2eupstreams,e2esinks,e2eengines,faults,browser ./...); \
	if [ -n "$$dead" ]; then printf 'never called:\n%s\n' "$$dead"; exit 1; fi

.PHONY: lint-tidy
lint-tidy:
	go mod tidy -diff
	cd tools && go mod tidy -diff
	cd examples/outoftree && go mod tidy -diff
	cd examples/vertex && go mod tidy -diff
	cd examples/cms && go mod tidy -diff
	cd e2e/loader && go mod tidy -diff

# Decision records are numbered once and listed.
.PHONY: lint-docs
lint-docs:
	@cd docs/adr && for record in [0-9][0-9][0-9][0-9]-*.md; do \
	  grep -qF "($$record)" README.md || { echo "docs/adr/README.md does not list $$record"; exit 1; }; \
	done; \
	twice=$$(ls [0-9][0-9][0-9][0-9]-*.md | cut -c1-4 | uniq -d); \
	if [ -n "$$twice" ]; then echo "docs/adr: numbers used twice: $$twice"; exit 1; fi

# Plain English in documents, comments, errors and help: CONTRIBUTING.md has the rules.
.PHONY: lint-prose
lint-prose:
	go test -count=1 ./internal/proof/prose

.PHONY: lint-shell
lint-shell:
	@if command -v shellcheck >/dev/null; then shellcheck -S warning $(scripts); else echo 'shellcheck is not installed: scripts were not linted'; fi

# It has the scripts inside of workflows checked by shellcheck, where that is installed.
.PHONY: lint-workflows
lint-workflows:
	$(tool) actionlint -pyflakes=

.PHONY: fmt
fmt: ## Format the code
	$(tool) gofumpt -w $(sources)

.PHONY: vuln
vuln: ## Look for known vulnerabilities (needs the Go vulnerability database)
	$(tool) govulncheck ./...

##@ Building it

.PHONY: build
build: ## Build the functions into dist/<name>/bootstrap (ARCH=arm64)
	@rm -f $(DIST)/index/bootstrap # of builds before there was one for each kind
	@for name in $(functions); do \
	  CGO_ENABLED=0 GOOS=linux GOARCH=$(ARCH) $(gobuild) -o $(DIST)/$$name/bootstrap ./functions/$$name; \
	done

# A function's start and its memory follow its size, and Bleve or CDK linked by mistake shows here first.
.PHONY: sizes
sizes: build ## Check the size of each function's program, and what each kind of sink adds to index
	@for name in $(functions); do \
	  limit=200000; for entry in $(bytes) $(index_adds:%=index/%); do \
	    [ $${entry%=*} != $$name ] || limit=$${entry#*=}; \
	  done; \
	  case $$name in index/*) limit=$$((limit + $(index_base))); esac; \
	  size=$$(stat -c %s $(DIST)/$$name/bootstrap); \
	  printf '%-20s %9d of %d bytes (%s)\n' $$name $$size $$limit $(ARCH); \
	  [ $$size -le $$limit ] || { echo "$$name is too large"; exit 1; }; \
	done

.PHONY: reproducible
reproducible: build ## Check that a build in another folder gives the same bytes
	@copy=$$(mktemp -d); trap 'rm -rf "$$copy"' EXIT; \
	cp -r go.mod go.sum event functions internal searchable setting sink source "$$copy"; \
	for name in $(functions); do \
	  (cd "$$copy" && CGO_ENABLED=0 GOOS=linux GOARCH=$(ARCH) $(gobuild) -o "again/$$name" ./functions/$$name); \
	  cmp "$(DIST)/$$name/bootstrap" "$$copy/again/$$name"; \
	done; \
	echo 'all functions: same bytes'

# The Go of go.mod makes a release, whatever is installed: another one gives other bytes.
go_version := $(shell sed -n 's/^go //p' go.mod)

.PHONY: release
release: ## Build a release into dist/release/VERSION (VERSION=v0.1.0): archives, zips, sums, bills of materials
	@GOTOOLCHAIN=go$(go_version) go run -trimpath ./internal/deploy/release/build -version '$(VERSION)'

.PHONY: release-same
release-same: ## Check that a release made in another clone has the same bytes (VERSION=v0.1.0)
	@there=$$(mktemp -d); trap 'rm -rf "$$there"' EXIT; \
	git clone --quiet --shared . "$$there/clone"; \
	[ -d 'dist/release/$(VERSION)' ] || $(MAKE) release; \
	$(MAKE) -C "$$there/clone" release; \
	diff -r 'dist/release/$(VERSION)' "$$there/clone/dist/release/$(VERSION)"; \
	echo 'both releases: same bytes'

# What is deployed are your settings; without any, the example is synthesised, whose sink has an address of its own.
LULL_CONFIG ?= $(firstword $(wildcard lull.yaml) docs/lull.yaml)
ifeq ($(LULL_CONFIG),docs/lull.yaml)
LULL_SINK_ARNS ?= search=arn:aws:es:eu-west-1:111122223333:domain/search
endif

# CDK calls deprecated parts of itself, and says so; Node 20 serves, and is said to be old.
.PHONY: synth
synth: build ## Synthesise the CloudFormation template into cdk.out (needs Node; LULL_CONFIG=lull.yaml)
	@$(need_node)
	LULL_CONFIG=$(LULL_CONFIG) LULL_SINK_ARNS=$(LULL_SINK_ARNS) LULL_DIST=$(DIST) CDK_OUTDIR=$(CURDIR)/cdk.out \
	  JSII_DEPRECATED=quiet JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION=18,20 go run ./infra/cmd

# W3005 (a dependency that a reference implies) is how CDK writes templates.
# The roles of all test stacks are held to the service authorization reference too: yours has no Kafka, say.
.PHONY: lint-template
lint-template: synth ## Lint the synthesised template with cfn-lint, where Python has it, and every role with parliament
	@if command -v cfn-lint >/dev/null; then cfn-lint -i W3005 -- cdk.out/*.template.json; else echo 'cfn-lint is not installed: the template was not linted'; fi
	localstack/setup.sh --only parliament
	rm -rf cdk.out/tests
	go test -count=1 -run '^TestWriteTemplates$$' ./infra -args -templates $(CURDIR)/cdk.out/tests
	@. localstack/env.sh; "$$LULL_E2E/parliament/bin/python" -W ignore infra/policies.py cdk.out/*.template.json cdk.out/tests/*.template.json

.PHONY: site
site: ## Build the documents as a site into dist/site, and check its links and anchors (needs Python 3)
	@test -x dist/site-tools/bin/mkdocs && cmp -s site/pins.txt dist/site-tools/pins.txt || { \
	  rm -rf dist/site-tools; python3 -m venv dist/site-tools; \
	  dist/site-tools/bin/pip install -q --disable-pip-version-check --require-hashes -r site/pins.txt; \
	  cp site/pins.txt dist/site-tools/; }
	@NO_MKDOCS_2_WARNING=1 dist/site-tools/bin/mkdocs build -f site/mkdocs.yml 2>&1 | { grep -v '^INFO' || true; }
	@echo 'make site: open dist/site/index.html'

.PHONY: clean
clean: ## Remove what was built; what the end-to-end tests installed stays
	rm -rf bin dist cdk.out out coverage.out

##@ Everything

.PHONY: ci
ci: ## What CI runs: lint, tests, race, builds, end to end
	E2E_SHORT=yes .ci/stages lint test test-docs test-console test-example test-vertex test-cms faults race sizes reproducible lint-template e2e e2e-iam acceptance-localstack

# Each part takes an hour at most on two cores, and is ended then; the nightly workflow runs them side by side.
within_an_hour := .ci/stages --all --within 60
.PHONY: nightly nightly-test nightly-proof nightly-mutate nightly-race nightly-fuzz nightly-e2e nightly-sinks
nightly: ## Everything that takes longer than ci, part by part
	.ci/stages --all nightly-test nightly-proof nightly-mutate nightly-race nightly-fuzz nightly-e2e nightly-sinks vuln

nightly-test: ## Every test in full length, each benchmark once, the pages that simulations write, the site
	$(within_an_hour) test-long bench-smoke lifecycles-same site test-senders

nightly-proof: ## Large models, and new simulated worlds
	$(within_an_hour) model sim

nightly-mutate: ## Small edits of the core
	MUTATETIME=$${MUTATETIME:-30m} $(within_an_hour) mutate

nightly-race: ## The race detector over repeated tests
	RACECOUNT=$${RACECOUNT:-3} $(within_an_hour) race

nightly-fuzz: ## Every decoder against invented inputs
	FUZZTIME=$${FUZZTIME:-50000x} $(within_an_hour) fuzz

nightly-e2e: ## The whole stack on LocalStack, an upgrade with a rollback, and the stack of the tutorial
	status=0; $(within_an_hour) senders e2e e2e-long acceptance-iam bench-engines-smoke local-up || status=$$?; localstack/down.sh && exit $$status

nightly-sinks: ## Real upstreams and real search engines
	$(within_an_hour) e2e-upstreams e2e-sinks bench-engines-smoke
