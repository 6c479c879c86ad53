# faasrl-mpa. `make help` lists what can be asked for; `make run` and `make test` set up all they need.

BUILD   ?= build
CC      ?= gcc
VERSION ?= 0.1.0
PYTHON  ?= /usr/bin/python3

WARN := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes \
        -Wpointer-arith -Wwrite-strings -Wformat=2 -Wvla -Werror
# A message that is cut at the end of its buffer is what we want from snprintf.
ifeq ($(findstring clang,$(CC)),)
WARN += -Wno-format-truncation
endif
LIBS := libcurl libuv jansson yaml-0.1 openssl libmicrohttpd

# Set for the instrumented builds, e.g. SANITIZE=address,undefined BUILD=build/asan.
SANITIZE ?=
OPT      ?= -O2
CFLAGS   += -std=gnu17 $(OPT) -g -fno-omit-frame-pointer -fno-common $(WARN) -Ipkg \
            -D_GNU_SOURCE -DFAASRL_VERSION='"$(VERSION)"' \
            -ffile-prefix-map=$(CURDIR)=.
LDFLAGS  += -Wl,--as-needed
ifneq ($(SANITIZE),)
CFLAGS   += -fsanitize=$(SANITIZE) -fno-sanitize-recover=all
LDFLAGS  += -fsanitize=$(SANITIZE)
else
# $(call takes,FLAG): the flag if this compiler takes it on this machine. Asked once, when first needed.
takes   = $(shell echo 'int main(void) { return 0; }' | $(CC) -O2 -Werror $(1) -x c -c -o /dev/null - 2>/dev/null && echo ' $(1)')
FORTIFY = $(or $(call takes,-D_FORTIFY_SOURCE=3 -include stdio.h),-D_FORTIFY_SOURCE=2)
HARDEN  = $(eval HARDEN := -fstack-protector-strong -fPIE $(firstword $(FORTIFY)) \
            $(call takes,-fstack-clash-protection) $(if $(CFI),,$(call takes,-fcf-protection=full)))$(HARDEN)
CFLAGS   += $(HARDEN)
LDFLAGS  += -pie -Wl,-z,relro,-z,now,-z,noexecstack
endif
# With CFI=1 (clang only) a call through a pointer ends the program unless a function of that very type is there.
# The tables that it jumps by have no room for the marks of -fcf-protection with clang 14.
ifneq ($(CFI),)
AR       := llvm-ar
CFLAGS   += -flto -fvisibility=hidden -fsanitize=cfi
LDFLAGS  += -flto -fvisibility=hidden -fsanitize=cfi $(OPT)
endif
ifneq ($(COVERAGE),) # lines that were run, with clang
CFLAGS   += -fprofile-instr-generate -fcoverage-mapping
LDFLAGS  += -fprofile-instr-generate
endif
# Found when first needed, after `deps` may have installed them.
PKG_CFLAGS = $(shell pkg-config --cflags $(LIBS))
PKG_LIBS   = $(shell pkg-config --libs $(LIBS)) -lm -lpthread

LIB_SRC  := $(sort $(wildcard pkg/*/*.c))
LIB_OBJ  := $(LIB_SRC:%.c=$(BUILD)/obj/%.o)
LIB      := $(BUILD)/libfaasrl.a
PROGRAMS := faasrl-mpa mpactl
TESTS    := $(patsubst tests/unit/%.c,%,$(sort $(wildcard tests/unit/*_test.c)))

FUNCTION := $(BUILD)/function.tar
LOAD     := $(BUILD)/load

DEPS_BUILD := gcc make python3 pkg-config libcurl4-openssl-dev libuv1-dev libjansson-dev libyaml-dev \
              libssl-dev libmicrohttpd-dev
DEPS_UNIT  := libcmocka-dev
DEPS_CLANG := clang llvm libclang-rt-14-dev
DEPS_LINT  := clang clang-tidy clang-format cppcheck shellcheck python3-yaml
DEPS_REPORT := python3-pytest python3-yaml chromium fonts-dejavu-core groff-base man-db zsh fish
DEPS_DASHBOARD := python3-venv chromium fonts-dejavu-core
DEPS_PYTHON := gcc python3-venv
DEPS_E2E   := python3-pytest python3-yaml python3-kubernetes valgrind prometheus curl

.DEFAULT_GOAL := all
.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | \
	    awk -F ':.*## ' '{ printf "  %-14s %s\n", $$1, $$2 }'

# --- building ---------------------------------------------------------------------------------
.PHONY: all
all: $(PROGRAMS:%=$(BUILD)/%) $(BUILD)/kubectl-mpa $(BUILD)/kubectl_complete-mpa ## build the controller (build/faasrl-mpa) and build/mpactl

# $(call need,NAME,PACKAGES): installs packages once, before the first target that needs them.
define need
$(BUILD)/.need-$(1):
	@tools/need $(2)
	@mkdir -p $$(@D) && touch $$@
endef
$(eval $(call need,build,$(DEPS_BUILD)))
$(eval $(call need,unit,$(DEPS_BUILD) $(DEPS_UNIT)))
$(eval $(call need,clang,$(DEPS_CLANG)))
$(eval $(call need,lint,$(DEPS_LINT)))
$(eval $(call need,e2e,$(DEPS_E2E)))
$(eval $(call need,python,$(DEPS_PYTHON)))
$(eval $(call need,report,$(DEPS_REPORT)))
$(eval $(call need,dashboard,$(DEPS_DASHBOARD)))

$(BUILD)/obj/%.o: %.c | $(BUILD)/.need-build
	@mkdir -p $(@D)
	@echo "  CC    $<"
	@$(CC) $(CFLAGS) $(PKG_CFLAGS) -MMD -MP -c -o $@ $<

# Simulations and training run for hours of other people's time. sqrt needs no errno there, and no
# loop asks which of its numbers trapped: without both they are vectors.
ifeq ($(OPT),-O2)
$(BUILD)/obj/pkg/sim/%.o: OPT := -O3
$(BUILD)/obj/pkg/rl/%.o: OPT := -O3 -fno-math-errno -fno-trapping-math
$(BUILD)/obj/tests/bench/blas.o: OPT := -O3 -fno-math-errno -fno-trapping-math # what it is held against
endif

$(LIB): $(LIB_OBJ)
	@rm -f $@ && $(AR) rcs $@ $^

$(foreach p,$(PROGRAMS),$(eval $(BUILD)/$(p): $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard cmd/$(p)/*.c))))
# The template is a part of the program, and so is the dashboard's page, which all builds share.
$(BUILD)/obj/cmd/mpactl/report.o: cmd/mpactl/report.html
$(BUILD)/obj/pkg/controller/page.o: build/page/index.html
$(PROGRAMS:%=$(BUILD)/%): $(BUILD)/%: $(LIB)
	@echo "  LD    $@"
	@$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) $(LIB) $(PKG_LIBS)

# The dashboard: one file of its sources and uPlot, whose version is held by its hash. All builds share it.
PAGE  := build/page/index.html
UPLOT := uplot 1.6.32 sha512-KIMVnG68zvu5XXUbC4LQEPnhwOxBuLyW1AHtpm6IKTXImkbLgkMy+jabjLgSLMasNuGGzQm/ep3tOkyTxpiQIw==
$(PAGE): $(wildcard pkg/controller/page/*) tools/page tools/need-npm
	@echo "  PAGE  $@"
	@uplot=$$(tools/need-npm $(UPLOT)) && tools/page --uplot "$$uplot" --out $@

# In the PATH, it is kubectl mpa.
$(BUILD)/kubectl-mpa $(BUILD)/kubectl_complete-mpa: $(BUILD)/mpactl
	@ln -sf mpactl $@

# --- what the recommender ppo has learned --------------------------------------------------------
# As many updates as two cores take so many seconds for; the same number gives the same policy.
POLICY_SECONDS ?= 60
POLICY_SEED    ?= 1
.PHONY: policy
policy: $(BUILD)/mpactl ## learn the policy of the recommender ppo, into build/policy (a minute)
	@$(BUILD)/mpactl policy --updates $$(($(POLICY_SECONDS) * 4 / 3)) \
	    --seed $(POLICY_SEED) --out $(BUILD)/policy
$(BUILD)/policy: $(wildcard pkg/recommend/*.[ch] pkg/bootstrap/*.[ch]) | $(BUILD)/mpactl
	@echo "  LEARN $@, about a minute"
	@$(MAKE) --no-print-directory policy

# --- running ----------------------------------------------------------------------------------
.PHONY: run recording demo
run: ## show the main job: the controller on a simulated cluster, a day in half a minute (RUN=--simulate-stay: and stay)
	@test -x $(BUILD)/faasrl-mpa || echo "Building, about a minute the first time."
	@$(MAKE) --no-print-directory -j"$$(nproc)" $(BUILD)/faasrl-mpa >/dev/null
	@$(BUILD)/faasrl-mpa --simulate $(RUN)
recording: $(BUILD)/faasrl-mpa ## record make run, into docs/images/run.svg (half a minute)
	@tools/recording --columns 158 --out docs/images/run.svg --title "make run" -- $(BUILD)/faasrl-mpa --simulate --listen=off
demo: all $(FUNCTION) $(LOAD) cluster-up ## the same with real pods: scale a function on the local cluster, watched live
	@tests/demo

# --- the local cluster and what runs on it ------------------------------------------------------
.PHONY: cluster-up cluster-down
cluster-up: ## start the real Kubernetes of the tests; KNATIVE=1 adds Knative Serving
	@tests/cluster/cluster up
	@$(if $(KNATIVE),tests/cluster/cluster knative)
cluster-down: ## end it and leave nothing behind
	@tests/cluster/cluster down

$(BUILD)/function: $(wildcard tests/functions/*.c tests/functions/*.h) | $(BUILD)/.need-unit
	@echo "  LD    $@"
	@$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter-out %_test.c,$(filter %.c,$^)) -lmicrohttpd -ljansson -lm -lpthread
$(FUNCTION): $(BUILD)/function tools/image.py
	@tools/image.py --out $@ --name local/function:1 --entrypoint /function --user 65532 --libs \
	    $<:/function
$(LOAD): $(wildcard tests/load/*.go) tests/load/go.mod
	@tools/need-go
	@cd tests/load && go build -o $(abspath $@) .

# --- testing ------------------------------------------------------------------------------------
.PHONY: test unit sanitize fuzz report-test e2e lint fmt
test: ## everything: both compilers, lint, unit tests, sanitizers, fuzzers, end to end
	@tests/run

$(BUILD)/test/%: $(BUILD)/obj/tests/unit/%.o $(LIB) | $(BUILD)/.need-unit
	@mkdir -p $(@D)
	@echo "  LD    $@"
	@$(CC) $(LDFLAGS) -o $@ $< $(LIB) -lcmocka $(PKG_LIBS)
$(BUILD)/test/functions_test: $(wildcard tests/functions/*.c tests/functions/*.h) | $(BUILD)/.need-unit
	@mkdir -p $(@D)
	@echo "  LD    $@"
	@$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter-out %/server.c,$(filter %.c,$^)) -lcmocka -ljansson -lm
.PRECIOUS: $(BUILD)/obj/tests/unit/%.o
$(TESTS:%=$(BUILD)/obj/tests/unit/%.o): | $(BUILD)/.need-unit

unit: $(TESTS:%=$(BUILD)/test/%) $(BUILD)/test/functions_test ## run the unit tests of this build
	@tests/unit/run $^

sanitize: ## the unit tests under ASan+UBSan and under TSan
	@$(MAKE) --no-print-directory BUILD=build/asan SANITIZE=address,undefined unit
	@$(MAKE) --no-print-directory BUILD=build/tsan SANITIZE=thread unit

# Those of what calls back: of loops, sockets, watches, and tables of functions.
CFI_TESTS := $(filter http_% kube_% serve_% dashboard_% auth_% prometheus_client_% observe_% actuate_% embed_% \
             own_% journal_% learn_% base_% confine_%,$(TESTS))
.PHONY: hardening cfi
hardening: all ## what the built programs have against mistakes in them, and what a running one may do
	@tests/hardening
	@tests/confined
cfi: $(BUILD)/.need-clang ## unit tests and a simulation where calls through pointers are checked (clang)
	@$(MAKE) --no-print-directory BUILD=build/cfi CC=clang CFI=1 TESTS="$(CFI_TESTS)" unit build/cfi/faasrl-mpa
	@build/cfi/faasrl-mpa --simulate --listen=off --simulate-duration=1h --simulate-speed=0 >/dev/null

# TORTURE=--seconds=30: a sample. What is loaded before the tests is no part of the program, and is not instrumented.
# Not there: what has connections, as the tests' own servers end or wait for ever (docs/security.md).
TORTURE_TESTS ?= $(addsuffix _test,base yaml yaml_write args quantity api api_status kubeconfig kube_stream journal trace \
    guard guard_behavior guard_qos $(addprefix prometheus_,exposition quantile selectors stream template))
$(BUILD)/torture.so: tests/torture/fail.c | $(BUILD)/.need-unit
	@gcc -O1 -g -Wall -D_GNU_SOURCE -fno-builtin -shared -fPIC -o $@ $<
$(BUILD)/torture-weak: tests/torture/weak.c | $(BUILD)/.need-unit
	@gcc -O1 -g -Wall -D_GNU_SOURCE -o $@ $< -lcmocka
.PHONY: torture
torture: $(BUILD)/torture.so $(BUILD)/torture-weak $(TORTURE_TESTS:%=$(BUILD)/test/%) ## each allocation and each system call of TORTURE_TESTS failing in turn
	@tests/torture/run --build $(BUILD) --weak $(BUILD)/torture-weak $(TORTURE) $(TORTURE_TESTS)

FUZZ_SECONDS ?= 8
FUZZERS := $(patsubst tests/fuzz/%_fuzz.c,%,$(sort $(wildcard tests/fuzz/*_fuzz.c)))
fuzz: $(BUILD)/.need-clang ## run each fuzzer for FUZZ_SECONDS
	@$(MAKE) --no-print-directory BUILD=build/fuzz CC=clang OPT=-O1 \
	    SANITIZE=fuzzer-no-link,address,undefined $(FUZZERS:%=build/fuzz/fuzzer/%)
	@for f in $(FUZZERS); do echo "== fuzz $$f"; mkdir -p build/fuzz/found/$$f; \
	    build/fuzz/fuzzer/$$f -max_total_time=$(FUZZ_SECONDS) -rss_limit_mb=1024 -timeout=5 \
	        -artifact_prefix=build/fuzz/ -verbosity=0 \
	        build/fuzz/found/$$f tests/fuzz/corpus/$$f || exit 1; done
$(BUILD)/fuzzer/%: $(BUILD)/obj/tests/fuzz/%_fuzz.o $(LIB)
	@mkdir -p $(@D)
	@echo "  LD    $@"
	@$(CC) $(LDFLAGS) -fsanitize=fuzzer -o $@ $(filter %.o,$^) $(LIB) $(PKG_LIBS)
$(BUILD)/fuzzer/convert: $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard cmd/mpactl/convert*.c) cmd/mpactl/options.c)
.PRECIOUS: $(BUILD)/obj/tests/fuzz/%.o
.PHONY: fuzz-coverage
fuzz-coverage: $(BUILD)/.need-clang ## how much of each parser its fuzzer's corpus runs through (FUZZ_DOCS=1: renew docs/fuzzing.md)
	@$(MAKE) --no-print-directory BUILD=build/coverage CC=clang OPT=-O1 SANITIZE=fuzzer-no-link COVERAGE=1 \
	    $(FUZZERS:%=build/coverage/fuzzer/%)
	@tests/fuzz/coverage build/coverage $(if $(FUZZ_DOCS),--docs docs/fuzzing.md)

# --- faults -------------------------------------------------------------------------------------
CHAOS           := $(BUILD)/chaos
CHAOS_SCHEDULES ?= 1000
CHAOS_SEED      ?= 1
CHAOS_SOURCES   := $(wildcard tests/chaos/*.go) tests/chaos/go.mod
.PHONY: chaos chaos-real chaos-test
chaos: all $(CHAOS)/chaos $(CHAOS)/preload.so ## CHAOS_SCHEDULES of faults from CHAOS_SEED on (1000: a quarter of an hour), checked by docs/reliability.md
	@$(CHAOS)/chaos -controller $(BUILD)/faasrl-mpa -mpactl $(BUILD)/mpactl -preload $(abspath $(CHAOS)/preload.so) \
	    -dir $(CHAOS)/run -schedules $(CHAOS_SCHEDULES) -seed $(CHAOS_SEED)
chaos-real: all $(CHAOS)/chaos $(CHAOS)/preload.so ## CHAOS_SCHEDULES of these on a real API server with a real etcd, which are killed too
	@CHAOS_SERVER_DIR=$(abspath $(CHAOS))/server tests/chaos/server up
	@$(CHAOS)/chaos -controller $(BUILD)/faasrl-mpa -mpactl $(BUILD)/mpactl -preload $(abspath $(CHAOS)/preload.so) \
	    -dir $(CHAOS)/run -schedules $(CHAOS_SCHEDULES) -seed $(CHAOS_SEED) -server $(CHAOS)/server; \
	    code=$$?; CHAOS_SERVER_DIR=$(abspath $(CHAOS))/server tests/chaos/server down; exit $$code
chaos-test: ## the checks of make chaos themselves, and 24 schedules
	@tools/need-go
	@cd tests/chaos && go vet ./... && go test ./...
	@$(MAKE) --no-print-directory chaos CHAOS_SCHEDULES=24
$(CHAOS)/chaos: $(CHAOS_SOURCES)
	@tools/need-go
	@mkdir -p $(@D)
	@echo "  GO    $@"
	@cd tests/chaos && go build -o $(abspath $@) .
$(CHAOS)/preload.so: tests/chaos/preload/clock.c
	@mkdir -p $(@D)
	@echo "  LD    $@"
	@$(CC) -std=gnu17 -O2 -shared -fPIC $(WARN) -D_GNU_SOURCE -o $@ $<

# The controller that the end-to-end tests run; the sanitized one finds more.
CONTROLLER ?= build/faasrl-mpa
e2e: all image $(FUNCTION) $(LOAD) cluster-up | $(BUILD)/.need-e2e ## end-to-end tests on the local cluster
	@CONTROLLER=$(CONTROLLER) $(PYTHON) -m pytest -q -o cache_dir=$(abspath build/pytest/$@) tests/e2e $(PYTEST)

# Likewise the mpactl whose simulations and report are looked at.
MPACTL ?= build/mpactl
report-test: all | $(BUILD)/.need-report ## mpactl simulate and compare, and the report in a real browser
	@MPACTL=$(MPACTL) $(PYTHON) -B -m pytest -q -p no:cacheprovider tests/report $(PYTEST)

.PHONY: alerts-test rules docs-test
docs-test: all | $(BUILD)/.need-e2e ## links of the documentation, what it names, and what it says to do; needs no cluster
	@$(PYTHON) -B -m pytest -q -p no:cacheprovider tests/docs $(PYTEST)
alerts-test: all | $(BUILD)/.need-e2e ## metrics of a running controller, its queries, alerts and the Grafana dashboard; needs no cluster
	@CONTROLLER=$(CONTROLLER) MPACTL=$(MPACTL) $(PYTHON) -B -m pytest -q -p no:cacheprovider tests/alerts $(PYTEST)
rules: | $(BUILD)/.need-e2e ## renew deploy/prometheus-rules.yaml from the chart
	@$(PYTHON) -B tests/alerts/chart.py

# The Gymnasium and PettingZoo binding, installed as its users do, into a place of its own.
VENV := $(BUILD)/venv
$(VENV)/.ready: $(wildcard python/pyproject.toml python/setup.py python/faasrl_env/*.py \
               pkg/base/*.[ch] pkg/trace/*.[ch] pkg/sim/*.[ch]) | $(BUILD)/.need-python
	@[ -x $(VENV)/bin/pip ] || $(PYTHON) -m venv $(VENV)
	@$(VENV)/bin/pip install -q --disable-pip-version-check ./python pytest
	@touch $@
$(BUILD)/sim-walk: $(BUILD)/obj/tests/python/walk.o $(LIB)
	@echo "  LD    $@"
	@$(CC) $(LDFLAGS) -o $@ $< $(LIB) $(PKG_LIBS)
python-test: $(VENV)/.ready $(BUILD)/sim-walk ## test the Gymnasium and PettingZoo binding (packages from PyPI)
	@$(VENV)/bin/python -m pytest -q -p no:cacheprovider tests/python $(PYTEST)

# The dashboard in a real browser: with a server that can be made to fail, and with the controller's simulated cluster.
AXE            := axe-core 4.14.0 sha512-9WTZxEjsZ7b13TH8JPmbV2z8CHbl80/2hm3XPEG4JgNdQLK81IBRXmSxHfMAOkSqQeRxT/0dwNDz2GOm3zzpcQ==
DASHBOARD_VENV := build/venv-dashboard
.PHONY: dashboard-test dashboard-images
dashboard-test: all $(PAGE) | $(BUILD)/.need-dashboard ## the dashboard in a real browser (packages from PyPI and npm)
	@PYTHON=$(PYTHON) tools/venv $(DASHBOARD_VENV) pytest==9.2.0 playwright==1.65.2 pillow==13.0.0
	@axe=$$(tools/need-npm $(AXE)) && CONTROLLER=$(CONTROLLER) MPACTL=$(MPACTL) AXE="$$axe/axe.min.js" \
	    $(DASHBOARD_VENV)/bin/python -B -m pytest -q -o cache_dir=$(abspath build/pytest/$@) tests/dashboard $(PYTEST)
dashboard-images: ## renew the pictures of the dashboard in docs/images
	@DASHBOARD_IMAGES=docs/images $(MAKE) --no-print-directory dashboard-test PYTEST="-k picture"

lint: | $(BUILD)/.need-build $(BUILD)/.need-unit $(BUILD)/.need-lint ## clang-format, clang-tidy, cppcheck, shellcheck
	@tools/lint
fmt: | $(BUILD)/.need-lint ## format the C sources
	@git ls-files --cached --others --exclude-standard '*.c' '*.h' | xargs clang-format -i

# --- measuring, packing, cleaning ---------------------------------------------------------------
.PHONY: bench experiments comparison fidelity side-by-side knative-side-by-side newpods bench-scale scale-test image sbom chart krew man install clean
bench: all $(BUILD)/bench $(BUILD)/policy ## measure speed and memory, into build/bench.json
	@tests/bench/run
$(BUILD)/bench: $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard tests/bench/*.c)) $(LIB)
	@echo "  LD    $@"
	@$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) $(LIB) $(PKG_LIBS)
comparison: all $(BUILD)/policy ## ppo and tuned baselines on simulated load, into docs/judgement.md (within 40 minutes on one core)
	@tests/comparison/run $(COMPARISON)
experiments: all $(BUILD)/policy ## the documents' experiments at full effort, into docs/experiments
	@$(BUILD)/mpactl experiment all --out docs/experiments
# $(call on-cluster,COMMAND): the cluster is ended again only where this has started it.
define on-cluster
if tests/cluster/cluster status >/dev/null 2>&1; then $(1); \
	else tests/cluster/cluster up && { $(1); code=$$?; tests/cluster/cluster down; exit $$code; }; fi
endef
fidelity: $(BUILD)/simulate-points $(BUILD)/spin $(FUNCTION) $(LOAD) | $(BUILD)/.need-e2e ## the simulator against the real cluster, into docs/fidelity.md (25 minutes a round; three rounds, or FIDELITY=--rounds=1)
	@$(call on-cluster,tests/fidelity/run $(FIDELITY))
side-by-side: all $(FUNCTION) $(LOAD) $(BUILD)/policy | $(BUILD)/.need-e2e ## ppo, thresholds and a real HPA on a real cluster, into docs/side-by-side.md (half an hour)
	@$(call on-cluster,tests/side-by-side/run $(SIDE_BY_SIDE))
knative-side-by-side: all $(FUNCTION) $(LOAD) $(BUILD)/policy | $(BUILD)/.need-e2e ## Knative's autoscaler alone, steered and replaced on a real cluster, into docs/knative.md (a quarter of an hour)
	@$(call on-cluster,tests/side-by-side/knative $(SIDE_BY_SIDE))
newpods: all $(FUNCTION) $(BUILD)/policy | $(BUILD)/.need-e2e ## when new pods have their size on a real cluster, into docs/new-pods.md (five minutes)
	@$(call on-cluster,tests/newpods/run $(NEWPODS))
# SIZES="1000": how many MPAs, each size can be measured by itself; SCALE=--docs writes docs/scale.md, too; SCALE=--check
# fails also where a goal is missed.
bench-scale: all $(BUILD)/scale/feed scale-test | $(BUILD)/.need-e2e ## 1,000 to 10,000 MPAs beside as many HPAs and VPAs on fake nodes (an hour and more)
	@tests/scale/run $(SIZES) $(SCALE)
scale-test: | $(BUILD)/.need-e2e ## what make bench-scale judges by: made-up figures of whole and of broken runs
	@$(PYTHON) -B -m pytest -q -p no:cacheprovider tests/scale $(PYTEST)
$(BUILD)/scale/feed: $(wildcard tests/scale/feed/*.go) tests/scale/feed/go.mod
	@tools/need-go
	@mkdir -p $(@D)
	@cd tests/scale/feed && go build -o $(abspath $@) .
SOAK_SECONDS ?= 3600
.PHONY: soak soak-test
soak: all $(BUILD)/scale/feed soak-test ## do memory and descriptors stay flat in SOAK_SECONDS (an hour) of pods and MPAs that come and go? (SOAK=--docs: into docs/soak.md)
	@tests/soak/run --seconds $(SOAK_SECONDS) $(SOAK)
soak-test: | $(BUILD)/.need-e2e ## what make soak judges by: made-up series and a real process, that leak and that do not
	@$(PYTHON) -B -m pytest -q -p no:cacheprovider tests/soak $(PYTEST)
$(BUILD)/simulate-points: $(BUILD)/obj/tests/fidelity/simulate.o $(LIB)
	@echo "  LD    $@"
	@$(CC) $(LDFLAGS) -o $@ $< $(LIB) $(PKG_LIBS)
$(BUILD)/spin: $(BUILD)/obj/tests/fidelity/spin.o
	@echo "  LD    $@"
	@$(CC) $(LDFLAGS) -o $@ $<
image: $(BUILD)/faasrl-mpa.tar ## an OCI image of the controller, without Docker: build/faasrl-mpa.tar
# glibc has the resolvers of /etc/hosts and DNS in libc itself; libcurl looks for the authorities there.
CA_BUNDLE := /etc/ssl/certs/ca-certificates.crt
$(eval $(call need,image,ca-certificates python3))
$(BUILD)/image/%: $(BUILD)/%
	@mkdir -p $(@D)
	@strip -o $@ $<
$(BUILD)/faasrl-mpa.tar: $(PROGRAMS:%=$(BUILD)/image/%) $(BUILD)/policy tools/image.py | $(BUILD)/.need-image
	@tools/image.py --out $@ --name faasrl-mpa:$(VERSION) --entrypoint /faasrl-mpa --user 65532:65532 \
	    --users --libs $(foreach p,$(PROGRAMS),$(BUILD)/image/$(p):/$(p)) $(BUILD)/policy:/policy \
	    $(CA_BUNDLE):$(CA_BUNDLE)
	@ls -l $@ | awk '{ printf "  IMAGE %s, %.1f MiB\n", $$NF, $$5 / 1048576 }'
sbom: image ## what the image is made of, as SPDX in JSON: build/faasrl-mpa.spdx.json
	@tools/sbom --image $(BUILD)/faasrl-mpa.tar --version $(VERSION) --out $(BUILD)/faasrl-mpa.spdx.json
HELM = $(shell tests/cluster/build helm)
chart: ## pack the Helm chart: build/faasrl-mpa-VERSION.tgz
	@$(HELM) package -d $(BUILD) charts/faasrl-mpa
krew: $(BUILD)/image/mpactl ## pack kubectl-mpa for krew, with its manifest, into build/krew (KREW_URL: where it will be)
	@tools/krew --version $(VERSION) --program $< --out $(BUILD)/krew $(if $(KREW_URL),--url $(KREW_URL))
man: all ## the manual pages of docs/man, from the programs' own help
	@tools/man --build $(BUILD)

# The programs stand beside the policy, where they look for it.
PREFIX  ?= /usr/local
OWN     := lib/faasrl-mpa
install: all $(BUILD)/policy ## install programs, policy, manual pages and completions below PREFIX (in DESTDIR)
	@install -d $(DESTDIR)$(PREFIX)/$(OWN) $(DESTDIR)$(PREFIX)/bin \
	    $(addprefix $(DESTDIR)$(PREFIX)/share/,man/man1 man/man8 bash-completion/completions \
	    zsh/site-functions fish/vendor_completions.d)
	@install -s $(PROGRAMS:%=$(BUILD)/%) $(DESTDIR)$(PREFIX)/$(OWN)
	@install -m 644 $(BUILD)/policy $(DESTDIR)$(PREFIX)/$(OWN)
	@for name in $(PROGRAMS); do ln -sf ../$(OWN)/$$name $(DESTDIR)$(PREFIX)/bin/$$name; done
	@for name in kubectl-mpa kubectl_complete-mpa; do ln -sf ../$(OWN)/mpactl $(DESTDIR)$(PREFIX)/bin/$$name; done
	@install -m 644 docs/man/*.1 $(DESTDIR)$(PREFIX)/share/man/man1
	@install -m 644 docs/man/*.8 $(DESTDIR)$(PREFIX)/share/man/man8
	@$(BUILD)/kubectl-mpa completion bash >$(DESTDIR)$(PREFIX)/share/bash-completion/completions/kubectl-mpa
	@$(BUILD)/kubectl-mpa completion zsh >$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_kubectl-mpa
	@$(BUILD)/kubectl-mpa completion fish >$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/kubectl-mpa.fish
clean: ## remove what was built (the cluster must be down)
	@if [ -e build/cluster/up ]; then echo "make clean: the cluster is up: make cluster-down first"; exit 1; fi
	rm -rf build python/build python/*.egg-info

-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
