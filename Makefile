# From a clean clone on a machine with only Debian, root and Python: `make demo`.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
SUITE := tasks/terminal

.DEFAULT_GOAL := help
.PHONY: help setup demo test explore audit bench clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):[^#]*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python 3.11 or newer is needed; name one with: make PYTHON=/path/to/python3 …" >&2; exit 2; }
	@# Debian keeps what venv needs in a package of its own.
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null \
	  || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-venv; } </dev/null >&2 \
	  || { echo "$(PYTHON) cannot make a virtual environment: install python3-venv" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)

# Only a changed pyproject.toml installs again. `--group` needs pip 25.1. A venv whose making was cut short has no pip.
$(STAMP): pyproject.toml | $(BIN)/python
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install -q 'pip>=25.1' </dev/null
	$(BIN)/python -m pip install -q -e . --group dev </dev/null
	@touch $@

setup: $(STAMP) ## .venv with the `assay` command, a running engine, the base image, the bundled suite's lock
	@$(BIN)/python -m harness.bootstrap </dev/null
	@$(BIN)/assay suite lock $(SUITE) </dev/null

demo: setup ## a simulated agent, adaptively, on the bundled suite to a 200-task stop
	@$(BIN)/assay run configs/demo.toml

# What only the tests of adapters need.
$(STAMP)-adapters: $(STAMP)
	$(BIN)/python -m pip install -q --group adapters </dev/null
	@touch $@

test: setup $(STAMP)-adapters ## lint, types, layers and all tests, the Docker ones included
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest

explore: setup $(STAMP)-adapters ## the tests without the engine, with new random examples
	HYPOTHESIS_PROFILE=explore $(BIN)/python -m pytest -m "not docker"

audit: setup ## gold, null and mutants over the whole bundled suite, as one cycle
	$(BIN)/assay audit all --suite terminal --count-mutants declared

bench: setup ## the figures of the README
	$(BIN)/python -m benchmarks

clean: ## remove the virtual environment and caches; runs, images and the engine stay
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
