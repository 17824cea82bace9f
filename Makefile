# `make demo` and `make test` need only make and Python 3.11 or newer: each creates an environment in
# this folder and installs what it needs.

PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11 python; do \
	if $$python -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))' \
		>/dev/null 2>&1; then command -v $$python; break; fi; done)
VENV := .venv
CORE := .venv-core
BIN := $(VENV)/bin
JOBS ?= 2
# Each job runs half of the tests in order, then takes tests from the end of the other half. Two jobs
# in the same file would both make the same tables and compile the same kernels.
PYTEST_JOBS := --numprocesses $(JOBS) --dist worksteal
SOURCES := $(shell find src -type f ! -name '*.py[co]' ! -name '*.nb[ci]' 2>/dev/null)
PIP_INSTALL := -m pip --disable-pip-version-check install --quiet --quiet
SAY := @printf '\n== %s\n'

.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help install demo test lint format docs test-all test-core fuzz bench clean python

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' Makefile

# Kernels are compiled in the background. If that fails, they are compiled on first use.
install: $(VENV)/.installed ## Prepare .venv with everything a developer needs
	@nohup nice $(BIN)/shoal warm >$(VENV)/warm.log 2>&1 </dev/null &

demo: $(VENV)/.installed ## Protect a small table: ends with a release and its report
	$(SAY) "Running shoal demo"
	@$(BIN)/shoal demo --out demo-release --force
	@printf '\nTo open it from this folder: %s\n' '$(BIN)/shoal studio demo-studio'

# The documentation is built while types are checked, since each uses one processor.
test: $(VENV)/.installed ## Check everything that CI checks
	@$(MAKE) --no-print-directory docs & building=$$!; \
		$(MAKE) --no-print-directory lint; checked=$$?; \
		wait $$building && exit $$checked
	@$(MAKE) --no-print-directory test-all test-core

lint: $(VENV)/.installed ## Check style, types and import layers
	$(SAY) "Checking style (ruff)"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	$(SAY) "Checking types (mypy)"
	@$(BIN)/mypy
	$(SAY) "Checking the layers (import-linter)"
	@$(BIN)/lint-imports

format: $(VENV)/.installed ## Format the code
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

docs: $(VENV)/.installed ## Build the documentation into site/; a broken link is an error
	$(SAY) "Building the documentation"
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

test-all: $(VENV)/.installed ## Run tests and doctests with every extra
	$(SAY) "Testing with every extra"
	@$(BIN)/pytest $(PYTEST_JOBS)

# Compiled code belongs to one state of all kernels. If the wheel has the same kernels, it is reused;
# otherwise, it is ignored.
IN_WHEEL := ../../../$(CORE)/lib/python*/site-packages/shoal/kernels
KEEP_COMPILED = cd src/shoal/kernels; for folder in $(IN_WHEEL); do \
	find . -name '*.nb[ic]' | tar -cf - -T - | tar -xf - -C $$folder; done

# The whole suite has just run. These tests show that the wheel has every file, that no module needs
# an extra when it is imported, and that every method, measure and format works without extras.
test-core: $(CORE)/.installed ## Test what extras and packaging can break, on the built wheel
	$(SAY) "Testing the built wheel without extras"
	@$(KEEP_COMPILED)
	@$(CORE)/bin/pytest $(PYTEST_JOBS) tests/test_installed.py tests/test_import_time.py \
		tests/app/cli/test_cli_commands.py tests/table/storage tests/table/test_frames.py \
		tests/snapshots tests/workflow/release/test_release.py

# Each number is a case. The next run can start where this one ended: make fuzz FROM=40000.
MINUTES ?= 10
FROM ?= 0
fuzz: $(VENV)/.installed ## Try random tables, plans and releases on all cores (MINUTES=60)
	$(SAY) "Fuzzing for $(MINUTES) minutes"
	@cd tests && ../$(BIN)/python -m fuzz.campaign --minutes $(MINUTES) --from $(FROM)

bench: $(VENV)/.installed ## Run every benchmark
	@for script in benchmarks/*.py benchmarks/kernels/*.py; do \
		printf '\n== %s\n' "$$script"; $(BIN)/python "$$script" || exit 1; done

clean: ## Remove environments, caches and what was built
	rm -rf $(VENV) $(CORE) build dist site demo-release demo-studio demo-plans.html .hypothesis .import_linter_cache \
		.mypy_cache .pytest_cache .ruff_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

python:
	@test -n "$(PYTHON)" || { echo "Shoal needs Python 3.11 or newer with its venv module, but \
	found none. Install it (Debian, Ubuntu: apt install python3 python3-venv), or run \
	make PYTHON=/path/to/python." >&2; exit 1; }

$(VENV)/.installed: pyproject.toml | python
	$(SAY) "Installing shoal and what its developers need into $(VENV) (about two minutes)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python $(PIP_INSTALL) --upgrade "pip>=25.1"
	@$(BIN)/python $(PIP_INSTALL) --editable ".[all]" --group dev
	@touch $@

$(CORE)/.dependencies: pyproject.toml | python
	$(SAY) "Installing shoal without extras into $(CORE) (about a minute)"
	@rm -rf $(CORE)
	@$(PYTHON) -m venv $(CORE)
	@$(CORE)/bin/python $(PIP_INSTALL) --upgrade "pip>=25.1"
	@$(CORE)/bin/python $(PIP_INSTALL) . --group test
	@touch $@

# Not editable, so that a file that is missing from the wheel fails here and not for a user.
$(CORE)/.installed: $(CORE)/.dependencies $(SOURCES)
	@$(CORE)/bin/python $(PIP_INSTALL) --no-deps --force-reinstall .
	@touch $@
