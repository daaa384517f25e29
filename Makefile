# Needs only python3 and make; uv is used when present.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEV_STAMP := $(VENV)/.installed-dev

.PHONY: help install run test test-failed check vectors bench kubernetes test-kubernetes test-kubernetes-failed clean

help:
	@echo "make run      install into .venv and run a gang job of several roles, start to end"
	@echo "make test     install the test tools and run the tests"
	@echo "make check    ruff, mypy --strict, import-linter"
	@echo "make vectors  compare the scheduler's decisions with the recorded ones (needs ../shared/vectors)"
	@echo "make bench    run the benchmarks and print their figures"
	@echo "make kubernetes        build a real kube-apiserver, once (about ten minutes; Go is fetched where it is missing)"
	@echo "make test-kubernetes   run the suite on it"

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed, this is $$($(PYTHON) --version); try: make PYTHON=python3.12 run"; exit 1; }
	@if command -v uv >/dev/null 2>&1; then uv venv -q --allow-existing --python $(PYTHON) $(VENV); \
	else $(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || \
		{ echo "Python's venv module is missing; on Debian and Ubuntu: apt-get install python3-venv"; exit 1; }; \
		$(PYTHON) -m venv $(VENV); fi

$(STAMP): pyproject.toml | $(BIN)/python
	@echo "installing volcano into $(VENV) …"
	@if command -v uv >/dev/null 2>&1; then uv pip install -q --python $(BIN)/python -e .; \
	else $(BIN)/python -m pip install -q --disable-pip-version-check -e .; fi
	@touch $@

$(DEV_STAMP): pyproject.toml | $(BIN)/python
	@echo "installing volcano and its test tools into $(VENV) …"
	@if command -v uv >/dev/null 2>&1; then uv pip install -q --python $(BIN)/python -e '.[dev]'; \
	else $(BIN)/python -m pip install -q --disable-pip-version-check -e '.[dev]'; fi
	@touch $@ $(STAMP)

install: $(DEV_STAMP)

run: $(STAMP)
	@$(BIN)/volcano run examples/gang.yaml

test: $(DEV_STAMP)
	@$(BIN)/python -m pytest -n 2 --dist loadgroup --ignore=tests/kubernetes

# Only those that failed last time, one after another.
test-failed: $(DEV_STAMP)
	@$(BIN)/python -m pytest --last-failed --last-failed-no-failures none --ignore=tests/kubernetes

check: $(DEV_STAMP)
	@$(BIN)/ruff check src tests benchmarks tools
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

VECTORS ?= ../shared/vectors
vectors: $(DEV_STAMP)
	@if [ -x $(VECTORS)/check.py ]; then \
		$(BIN)/python $(VECTORS)/check.py --replay "$(BIN)/volcano replay --scores" $(VECTORS)/tables $(VECTORS)/random; \
	else echo "$(VECTORS) is not here: the recorded decisions are skipped"; fi

bench: $(DEV_STAMP)
	@for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis

# A real kube-apiserver, kube-controller-manager and etcd, built once into a cache outside the checkout.
kubernetes: $(DEV_STAMP)
	@$(BIN)/python tools/kubernetes/build.py

test-kubernetes: kubernetes
	@$(BIN)/python -m pytest tests/kubernetes

test-kubernetes-failed: kubernetes
	@$(BIN)/python -m pytest --last-failed --last-failed-no-failures none tests/kubernetes
