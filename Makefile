# Needs only python3 and make; uv is used when present.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEV_STAMP := $(VENV)/.installed-dev

# make test TESTS=tests/unit SEED=1 gives pytest other paths, and the property tests the seed of an earlier run.
TESTS ?= tests
SEED ?=
PYTEST := $(BIN)/python -m pytest -n 2 --dist loadgroup $(if $(SEED),--hypothesis-seed=$(SEED))
LOCKS := deploy/locks
SOURCES := src tests benchmarks tools

.PHONY: help install run test test-all test-coverage test-pythons coverage properties check format vectors faults soak kill fuzz fuzz-api bench bench-check experiments kubernetes test-kubernetes test-frameworks programs docs man lock audit release clean

help:
	@echo "make run      install into .venv and run a gang job of several roles, start to end"
	@echo "make test     install the test tools and run the tests, without those that take minutes or need a real Kubernetes"
	@echo "make test-all          run every test that can be made to run on this machine"
	@echo "make test-coverage     run the tests with what takes minutes, measuring coverage; make coverage prints it"
	@echo "make test-pythons      run the unit tests on Python 3.12 and 3.13, where this machine has them or uv gets them; QUICK=yes or TESTS=tests/unit/api for some"
	@echo "make properties        run the property tests with 20 times as many examples"
	@echo "make check    ruff, ruff format, mypy --strict, import-linter"
	@echo "make format   write the sources as ruff format wants them"
	@echo "make explain-campaign  plant 1,000 causes and compare what the explanation says"
	@echo "make vectors  compare the scheduler's decisions with the recorded ones (needs ../shared/vectors)"
	@echo "make faults   run ten thousand seeds of the fault simulation (hours); SEEDS=0:100 for fewer"
	@echo "make soak     jobs come and go for MINUTES=10; prints what grows, and fails when it grows too fast"
	@echo "make kill     kill, stop and damage a running system for MINUTES=10; nothing may be lost or run twice"
	@echo "make fuzz     fuzz every parser that a client reaches for MINUTES=10; keeps inputs that reach new lines; ONLY=cel for one"
	@echo "make fuzz-api send requests that schemathesis makes from our OpenAPI documents, for MINUTES=10; EXAMPLES=3 for so many of each operation; ONLY=apps/v1 for one group"
	@echo "make bench    run the benchmarks and print their figures"
	@echo "make bench-check  compare CPU time with the last release on this machine; fails on a slowdown above 15 %; BASE=COMMIT, ONLY=cycle"
	@echo "make experiments  simulate the experiments of the talks and write docs/experiments.md"
	@echo "make docs     build the documentation site into site/; a broken link is an error"
	@echo "make man      write manual pages into build/man"
	@echo "make lock     write the locked versions of all dependencies with their hashes; make audit looks for known weaknesses"
	@echo "make release  build wheel and sdist, and try each in an empty environment"
	@echo "make kubernetes        build a real kube-apiserver, once (about ten minutes; Go is fetched where it is missing)"
	@echo "make test-kubernetes   run the suites on it"
	@echo "make test-frameworks   install and run real frameworks (Spark, Dask, …; ONLY=dask for some) and print a table"

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed, this is $$($(PYTHON) --version); try: make PYTHON=python3.12 run"; exit 1; }
	@if command -v uv >/dev/null 2>&1; then uv venv -q --allow-existing --python $(PYTHON) $(VENV); \
	else $(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || \
		{ echo "Python's venv module is missing; on Debian and Ubuntu: apt-get install python3-venv"; exit 1; }; \
		$(PYTHON) -m venv $(VENV); fi

$(STAMP): pyproject.toml | $(BIN)/python
	@echo "installing volcano into $(VENV) …"
	@if command -v uv >/dev/null 2>&1; then uv pip install --python $(BIN)/python -e .; \
	else $(BIN)/python -m pip install --disable-pip-version-check -e .; fi
	@touch $@

$(DEV_STAMP): pyproject.toml | $(BIN)/python
	@echo "installing volcano and its test tools into $(VENV) …"
	@if [ -n "$(LOCKED)" ]; then $(BIN)/python tools/locks.py install $(LOCKS)/dev.txt; \
	elif command -v uv >/dev/null 2>&1; then uv pip install -q --python $(BIN)/python -e '.[dev]'; \
	else $(BIN)/python -m pip install -q --disable-pip-version-check -e '.[dev]'; fi
	@touch $@ $(STAMP)

install: $(DEV_STAMP)

run: $(STAMP)
	@$(BIN)/volcano run examples/gang.yaml

test: $(DEV_STAMP)
	@$(PYTEST) $(TESTS)

# Programs that some tests drive for real are installed where that is possible.
programs:
	@tools/ci/install_programs.sh

test-all: programs kubernetes
	@$(PYTEST) --slow --kubernetes $(TESTS)

# With what takes minutes, and measuring which lines run.
test-coverage: $(DEV_STAMP)
	@$(PYTEST) --slow --cov=volcano --cov-report=json:.pytest_cache/coverage.json $(TESTS)

# On the other Pythons that this machine has, in environments outside the checkout.
test-pythons: $(DEV_STAMP)
	@$(BIN)/python tools/ci/pythons.py $(if $(QUICK),--quick) $(filter-out tests,$(TESTS))

# The figures of the last `make test-coverage` for each package; fails below the floors in pyproject.toml.
coverage: $(DEV_STAMP)
	@$(BIN)/python tools/ci/coverage_floors.py .pytest_cache/coverage.json

properties: $(DEV_STAMP)
	@HYPOTHESIS_PROFILE=thorough $(PYTEST) --slow -m property $(TESTS)

check: $(DEV_STAMP)
	@$(BIN)/ruff check $(SOURCES)
	@$(BIN)/ruff format --check $(SOURCES)
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

format: $(DEV_STAMP)
	@$(BIN)/ruff check --fix $(SOURCES)
	@$(BIN)/ruff format $(SOURCES)

.PHONY: explain-campaign
explain-campaign: $(DEV_STAMP)
	$(BIN)/python -m tests.planted.campaign 1000

VECTORS ?= ../shared/vectors
vectors: $(DEV_STAMP)
	@if [ -f $(VECTORS)/check.py ]; then $(BIN)/python tools/ci/vectors.py $(VECTORS) $(BIN)/volcano; \
	else echo "$(VECTORS) is not here: the recorded decisions are skipped"; fi

# The whole system with faults by seed; stops at the first seed that fails, and shows the fewest faults it needs. Seeds that
# have passed on the same sources are left out, so that it can be stopped and started again. KEEP_GOING=1 runs all seeds.
SEEDS ?= 0:10000
faults: $(DEV_STAMP)
	@$(BIN)/python -m volcano.testing.faults --seeds $(SEEDS) --minimize --record .cache/faults.jsonl \
		$(if $(MINUTES),--minutes $(MINUTES)) $(if $(KEEP_GOING),--keep-going)

# Real processes, for minutes to hours.
soak kill: $(DEV_STAMP)
	@$(BIN)/python -m tests.campaigns.$@ $(if $(MINUTES),--minutes $(MINUTES))

fuzz: $(DEV_STAMP)
	@$(BIN)/python -m tests.fuzz $(if $(MINUTES),--minutes $(MINUTES)) $(if $(ONLY),--only $(ONLY))

fuzz-api: $(DEV_STAMP)
	@$(BIN)/python -m tests.fuzz.api $(if $(MINUTES),--minutes $(MINUTES)) $(if $(EXAMPLES),--examples $(EXAMPLES)) \
		$(if $(ONLY),--only $(ONLY)) $(if $(SEED),--seed $(SEED))

bench: $(DEV_STAMP)
	@for script in $(filter-out %/check_cases.py,$(wildcard benchmarks/*.py)); do echo "== $$script"; $(BIN)/python $$script || exit 1; done

bench-check: $(DEV_STAMP)
	@$(BIN)/python tools/bench_check.py $(if $(BASE),--base $(BASE)) $(if $(ONLY),--only $(ONLY))

# The experiments of the talks, simulated: docs/experiments.md with its plots.
experiments: $(DEV_STAMP)
	@$(BIN)/python tools/experiments.py $(if $(LONG),--long) $(if $(ONLY),--only $(ONLY)) $(if $(PODS),--pods $(PODS))

# Build the distributions into dist/, and try each in an empty environment.
# The documentation as a site; its tools are not needed for anything else.
docs: $(DEV_STAMP)
	@if command -v uv >/dev/null 2>&1; then uv pip install -q --python $(BIN)/python -e '.[docs]'; \
	else $(BIN)/python -m pip install -q --disable-pip-version-check -e '.[docs]'; fi
	@$(BIN)/python tools/build_docs.py

man: $(STAMP)
	@$(BIN)/volcano man build/man/man1

# The versions and hashes that CI, the image and releases use.
lock: $(DEV_STAMP)
	@$(BIN)/python tools/locks.py write $(LOCKS)

# Known weaknesses of the locked versions; says so where the database of them cannot be reached.
audit: $(DEV_STAMP)
	@$(BIN)/python tools/locks.py audit $(LOCKS)/run.txt

release: $(DEV_STAMP)
	@$(BIN)/python tools/release.py

clean:
	rm -rf $(VENV) dist .coverage .pytest_cache .mypy_cache .ruff_cache .hypothesis

# A real kube-apiserver, kube-controller-manager and etcd, built once into a cache outside the checkout.
kubernetes: $(DEV_STAMP)
	@$(BIN)/python tools/kubernetes/build.py

# On one worker: the tests share one control plane.
test-kubernetes: kubernetes
	@$(BIN)/python -m pytest --kubernetes -m kubernetes $(if $(SEED),--hypothesis-seed=$(SEED)) $(TESTS)

# Real frameworks, each in an environment of its own outside the checkout; ONLY=spark,dask for some, SMALL=yes for those below 50 MB.
test-frameworks: $(DEV_STAMP)
	@$(BIN)/python -m tests.frameworks $(if $(SMALL),--small) $(ONLY)
