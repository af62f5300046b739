# Python 3.11.5 or later (to 3.14) and make are all this needs.

VENV  := .venv
BIN   := $(VENV)/bin
# In .venv, so that a removed environment is made anew.
USER_STAMP := $(VENV)/.installed
DEV_STAMP  := $(VENV)/.installed-dev
CLIENTS       := $(VENV)/clients
CLIENTS_STAMP := $(CLIENTS)/.installed
# Modules are compiled where they are imported: all of them at once take half of the time. If that
# were forbidden, each of a thousand processes of the tests would compile them again.
unexport PYTHONDONTWRITEBYTECODE
PIP     := $(BIN)/python -m pip
ASKED    = "$$($(PIP) config list | sed -n "s/.*[.]$(1)='\(.*\)'/\1/p")"
# uv installs ten times as fast as pip. It reads none of pip's settings, so it is told the indexes that
# pip asks; hashes guard what these give. Where uv fails, pip installs.
FAST     = UV_DEFAULT_INDEX=$(call ASKED,index-url) UV_INDEX=$(call ASKED,extra-index-url) \
             $(BIN)/uv pip install --quiet --index-strategy unsafe-best-match --python
SLOW    := -m pip install --quiet --disable-pip-version-check --no-compile
# The packages of lock file $(2), into environment $(1).
INSTALL  = $(FAST) $(1) --require-hashes --requirement $(2) || \
             $(1)/bin/python $(SLOW) --require-hashes --requirement $(2)
ITSELF  := $(BIN)/python $(SLOW) --no-deps --no-build-isolation --editable .
FITS    := import sys, ensurepip; sys.exit(not (3, 11, 5) <= sys.version_info < (3, 15))
NAMES   := python3.11 python3.12 python3.13 python3.14 python3 python
# Every interpreter that fits, by its real path: on the PATH, or made by pyenv.
FOUND    = $(foreach name,$(NAMES) $(wildcard $(HOME)/.pyenv/versions/*/bin/python3),\
             $(shell $(name) -c '$(FITS)' 2>/dev/null && \
               $(name) -c 'import os, sys; print(os.path.realpath(sys.executable))'))
# `make test` tries the wheel with that of .venv.
OTHERS   = $(filter-out $(realpath $(BIN)/python),$(sort $(FOUND)))
# The first of them makes .venv; `make PYTHON=/path/to/python3` decides otherwise.
PYTHON  ?= $(firstword $(FOUND))
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
             --no-header --no-emit-index-url --no-emit-find-links --no-annotate

# The extras of a checkout: the command, the service, and its clients.
SERVICE := --extra cli --extra serve --extra client --extra nltk --extra remote

.DEFAULT_GOAL := help
.PHONY: help setup dev run test test-fast check format bench coverage pythons kernels browser promtool clients lock clean

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*##/\1\t/p' $(MAKEFILE_LIST) | expand -t 12

setup: $(USER_STAMP)  ## .venv with the lpcfg command (quick when nothing changed)

dev: $(DEV_STAMP)  ## setup, and the tools that test and check

run: setup  ## serve the default model and its page (HOST and PORT: LPCFG_HOST, LPCFG_PORT)
	@echo "starting the service"
	@$(BIN)/lpcfg serve

test: dev  ## everything that must hold
	@$(MAKE) --no-print-directory -j 2 clients check kernels browser promtool
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not load" $(PYTEST)
	$(BIN)/python -m pytest -q -m load $(PYTEST) || [ $$? = 5 ]  # alone; 5: PYTEST names none

test-fast: dev  ## what takes a day's work: no processes, services and browsers
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not slow and not load" $(PYTEST)

check: dev  ## style and types only
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: dev  ## rewrite the code as check wants it, and the synchronous client
	$(BIN)/python scripts/unasync.py
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

coverage: dev  ## branch coverage, line by line
	$(BIN)/python -m pytest -q -n 2 -m "not load" --cov --cov-report=term-missing $(PYTEST)

BASE     ?= 002aed7
TREEBANK ?= ../shared/data/craft/dev.mrg

bench: dev  ## speed against an earlier commit (BASE, TREEBANK: Penn brackets), into docs/performance.md
	$(BIN)/python -m benchmarks.speed --base $(BASE) --treebank $(TREEBANK) --write docs/performance.md

pythons: dev  ## build the wheel and try it with every other Python found, in new environments
	rm -rf build dist
	$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .
	@printf '%s\n' $(OTHERS) | xargs -r -P 2 -I PYTHON \
	  $(BIN)/python tests/installed/try_wheel.py --fresh --python PYTHON dist/lpcfg-*.whl

kernels: dev  ## compile what most tests need, before two workers do it side by side
	@echo "compiling kernels: about a minute"
	@folder=$$(mktemp -d); \
	  $(BIN)/lpcfg train examples/everyday.mrg --name kernels --store $$folder >/dev/null 2>&1 & \
	  echo "She saw him." | $(BIN)/lpcfg parse en --output json >/dev/null; wait; rm -rf "$$folder"

browser:  ## the Chromium that the tests of the web page drive
	@command -v chromium >/dev/null || { \
	  echo "installing chromium from the system's packages"; \
	  as_root=$$([ "$$(id -u)" = 0 ] || echo sudo); \
	  $$as_root apt-get update -qq && \
	  $$as_root apt-get install -o DPkg::Lock::Timeout=300 -qq --yes --no-install-recommends chromium >/dev/null; } || \
	  echo "no chromium: tests of the web page will be skipped (in CI: fail); install it with your system's packages"

promtool: | browser  ## the tool that tests of alerts run
	@command -v promtool >/dev/null || { \
	  echo "installing promtool from the system's packages"; \
	  as_root=$$([ "$$(id -u)" = 0 ] || echo sudo); \
	  $$as_root apt-get update -qq && \
	  $$as_root apt-get install -o DPkg::Lock::Timeout=300 -qq --yes --no-install-recommends prometheus >/dev/null; } || \
	  echo "no promtool: tests of alerts will be skipped (in CI: fail); install Prometheus"

clients: $(CLIENTS_STAMP)  ## others' clients of the service, in an environment of their own

lock: dev  ## pin all dependencies anew (UPGRADE=--upgrade takes the newest versions)
	$(COMPILE) $(UPGRADE) --group build $(SERVICE) pyproject.toml --output-file requirements.lock
	$(COMPILE) $(UPGRADE) --group build $(SERVICE) --extra distributed --extra parquet --extra s3 \
	  --extra zst pyproject.toml --constraint requirements.lock --output-file requirements-batch.lock
	$(COMPILE) $(UPGRADE) --group build --group dev --all-extras pyproject.toml \
	  --constraint requirements.lock --output-file requirements-dev.lock

clean:  ## remove what make made
	rm -rf $(VENV) build dist artifacts .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage*

$(BIN)/python:
	@[ -n "$(PYTHON)" ] || { \
	  echo "expected Python 3.11.5 to 3.14 with its venv module as one of $(NAMES), found none:" \
	       "install it (Debian: python3.11-venv) or say make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c '$(FITS)' 2>/dev/null || { \
	  echo "expected Python 3.11.5 to 3.14 with its venv module, got $$($(PYTHON) --version 2>&1) as" \
	       "$(PYTHON): name another, as in make PYTHON=/path/to/python3" >&2; exit 1; }
	@echo "making $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV)

$(BIN)/uv: requirements-dev.lock | $(BIN)/python
	@sed -n '/^uv==/,/[^\\]$$/p' requirements-dev.lock | \
	  $(BIN)/python $(SLOW) --require-hashes --requirement /dev/stdin || echo "no uv: pip takes longer"

# Hashes guard every download; the build backend is among the locked packages, so the package
# itself installs without fetching anything.
$(USER_STAMP): requirements.lock pyproject.toml | $(BIN)/uv
	@echo "installing what lpcfg needs"
	@$(call INSTALL,$(VENV),requirements.lock)
	@$(ITSELF)
	@touch $@

# These requirements are those of users and more, so users' are installed as well.
$(DEV_STAMP): requirements-dev.lock requirements.lock pyproject.toml | $(BIN)/uv
	@echo "installing what lpcfg, tests and checks need: about a minute"
	@$(call INSTALL,$(VENV),requirements-dev.lock)
	@$(ITSELF)
	@touch $(USER_STAMP) $@

$(CLIENTS_STAMP): requirements-clients.lock | $(BIN)/uv
	@echo "installing others' clients"
	@$(BIN)/python -m venv --clear $(CLIENTS)
	@$(call INSTALL,$(CLIENTS),requirements-clients.lock) || \
	  echo "no clients: their tests will be skipped (in CI: fail)"
	@touch $@
