# kk: "make build" builds it, "make test" tests it on hosts of its own.
# The lab, and the tests on hosts, need root on Debian; they install what is missing.

GO      ?= go
BIN     ?= bin
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS ?= -s -w -X kubekey/pkg/cli.version=$(VERSION)
GOFLAGS_BUILD = -trimpath -ldflags '$(LDFLAGS)'

N         ?= 3
NAME      ?= default
LAB       = $(GO) run ./test/lab/cmd
BENCH     ?= .
FUZZTIME  ?= 3s
TIME      ?= 60m
CHAOS     ?= 10
SEED      ?= $(shell date +%s)
PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64
# Everything but the tests on hosts: those bring up a lab, and the go command
# must not take their result from its cache, since they run kk as a program.
PACKAGES  = $(shell $(GO) list ./... | grep -v -e /test/e2e -e /test/roles -e /test/cluster -e /test/peer)
# The race detector makes a test take several times as long. It watches the packages that start
# goroutines or lock something, and those that run whole playbooks by many cases; not those
# where one goroutine takes much data through the same code.
RACE      = $(filter-out %/test/apps %/test/precheck %/test/rendered,$(filter $(patsubst %/,kubekey/%,$(sort $(dir $(shell git grep -lE '"sync|\bgo func|\.Go.func' -- '*.go')))) %/test/language %/test/script,$(PACKAGES)))
# Real programs that tests work with; without one, its tests are skipped with a reason.
PEERS     = git:git svn:subversion ssh:openssh-client sshd:openssh-server sudo:sudo busybox:busybox fish:fish csh:csh \
            shellcheck:shellcheck systemd-analyze:systemd haproxy:haproxy keepalived:keepalived curl:curl wget:wget zip:zip unzip:unzip xz:xz-utils bzip2:bzip2 zstd:zstd ip:iproute2 skopeo:skopeo umoci:umoci \
            dnf:dnf,dnf-plugins-core createrepo_c:createrepo-c rpmbuild:rpm genisoimage:genisoimage \
            ansible-vault:ansible-core chromium:chromium $(PYTHON)/kubernetes/__init__.py:python3-kubernetes $(PYTHON)/jsonpatch.py:python3-jsonpatch
# Where Debian has Python's modules: those that Ansible's modules for clusters need have no command.
PYTHON    = /usr/lib/python3/dist-packages
# Has no command: Ansible finds it here.
MITOGEN   = $(PYTHON)/ansible_mitogen/__init__.py
SCRIPTS   = .ci/run $(shell git ls-files 'test/*.sh')
# Scripts that packages embed: they run in a host's POSIX shell and have no first line.
EMBEDDED  = $(shell git ls-files 'pkg/*.sh')

.PHONY: build relay test unit quick rendered-all e2e mirror e2e-cluster e2e-chaos lint vuln verify translations docs bench fuzz cover cross lab-up lab-down demo demo-offline demo-precheck clean

build: relay
	CGO_ENABLED=0 $(GO) build $(GOFLAGS_BUILD) -o $(BIN)/kk ./cmd/kk

# The program that hosts run while they bring files to each other; kk embeds it. The same source makes the same bytes.
RELAY = pkg/relay/program/embedded/kk-relay-linux-

relay:
	set -e; for a in amd64 arm64; do \
		CGO_ENABLED=0 GOOS=linux GOARCH=$$a $(GO) build -trimpath -buildvcs=false -ldflags '-s -w -buildid=' \
			-o $(BIN)/kk-relay-linux-$$a ./cmd/kk-relay; \
		gzip -9nc $(BIN)/kk-relay-linux-$$a >$(RELAY)$$a.gz.part; \
		cmp -s $(RELAY)$$a.gz.part $(RELAY)$$a.gz && rm $(RELAY)$$a.gz.part || mv $(RELAY)$$a.gz.part $(RELAY)$$a.gz; \
	done

test: ## all tests, those on hosts too
	test/need.sh gcc:gcc,libc6-dev $(PEERS)
	$(GO) test -race -p 4 -timeout 20m $(RACE)
	$(GO) test -p 4 -timeout 20m $(filter-out $(RACE),$(PACKAGES))
	$(GO) test -race -timeout 40m -count 1 -p 2 -parallel 3 ./test/e2e ./test/peer ./test/roles

unit: ## the tests that need no hosts
	test/need.sh $(PEERS)
	$(GO) test -timeout 20m $(PACKAGES)

quick: ## the tests that need neither root nor apt
	$(GO) test ./pkg/... ./cmd/... ./docs/gen ./test/floors ./test/language ./test/badinput ./test/script

rendered-all: ## what every kind of cluster comes to: each release, runtime, endpoint, family and network with each other
	test/need.sh shellcheck:shellcheck systemd-analyze:systemd haproxy:haproxy keepalived:keepalived curl:curl
	KK_RENDER_ALL=1 $(GO) test -count 1 -timeout 60m -v -run 'TestRendered$$' ./test/rendered

e2e: ## the tests on hosts; RUN=regexp chooses some
	$(GO) test -count 1 -parallel 3 -timeout 30m -v $(if $(RUN),-run '$(RUN)') ./test/e2e

mirror: ## the lab's mirror of upstream: builds Kubernetes and what goes with it, once
	$(GO) run ./test/upstream/cmd build

e2e-cluster: mirror ## clusters on hosts of the lab; RUN=regexp chooses some, what does not fit into TIME is skipped
	$(GO) test -count 1 -timeout $(TIME) -v $(if $(RUN),-run '$(RUN)') ./test/cluster

e2e-chaos: mirror ## kk is killed CHAOS times while it builds a cluster, and run again; SEED repeats
	KK_CHAOS=$(CHAOS) KK_CHAOS_SEED=$(SEED) $(GO) test -count 1 -timeout 120m -v -run TestKilledAndRunAgain ./test/cluster

lint:
	test/need.sh shellcheck:shellcheck
	$(GO) vet ./...
	$(GO) tool -modfile=test/tools/go.mod staticcheck ./...
	shellcheck $(SCRIPTS)
	$(if $(EMBEDDED),shellcheck -s sh $(EMBEDDED))

vuln: ## known vulnerabilities in code that is called, where their database can be had
	test/vuln.sh

verify: ## what is generated or formatted is up to date
	$(GO) mod tidy -diff
	cd test/tools && $(GO) mod tidy -diff
	cd test/serve/conformance && $(GO) mod tidy -diff
	test -z "$$(gofmt -l $$(git ls-files '*.go') | tee /dev/stderr)"
	test/docs-fresh.sh
	@$(MAKE) --no-print-directory translations

translations: ## which pages in Chinese are behind the English ones: a warning, not a failure
	@$(GO) test -count 1 -v -run 'TestZh$$' ./docs/gen | sed -n 's/.*: \(docs\/zh\/.* is behind \)/warning: \1/p'

docs: ## the generated pages of the manual
	$(GO) generate ./...

bench:
	test/need.sh sshd:openssh-server ssh:openssh-client ansible-playbook:ansible-core $(MITOGEN):ansible-mitogen,python3-mitogen chromium:chromium
	$(GO) test -timeout 60m -run '^$$' -bench '$(BENCH)' -benchmem $(PACKAGES)

fuzz: ## every fuzz target for FUZZTIME
	test/fuzz.sh $(FUZZTIME)

cover: ## bin/coverage.html
	mkdir -p $(BIN)
	$(GO) test -coverprofile=$(BIN)/coverage.out -coverpkg=./pkg/... $(PACKAGES)
	$(GO) tool cover -func=$(BIN)/coverage.out | tail -n 1
	$(GO) tool cover -html=$(BIN)/coverage.out -o $(BIN)/coverage.html

cross: relay
	set -e; for p in $(PLATFORMS); do \
		echo "build $$p"; \
		CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/} $(GO) build $(GOFLAGS_BUILD) -o $(BIN)/kk-$${p%/*}-$${p#*/} ./cmd/kk; \
	done

lab-up: ## N hosts in the lab NAME
	$(LAB) up -n $(N) -name $(NAME)

lab-down:
	$(LAB) down -name $(NAME)

demo: build ## a cluster of three nodes on hosts of a lab
	test/demo/run.sh $(BIN)

demo-offline: build ## the same from one file, with the network cut
	test/demo/run.sh $(BIN) offline

demo-precheck: build ## what kk says of hosts that are not fit
	test/demo/precheck/run.sh $(BIN)

clean:
	rm -rf $(BIN) $(RELAY)*
