# `make scenarios` installs the dependencies and runs every scenario. `make test` also runs everything that a change
# must pass: lint, types, tests, scenarios. `make check` is the quick check during development: lint, types, and the
# tests of the parts that every run uses.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
AXE := tests/report/html/node_modules/axe-core/axe.min.js

# The tests start many processes, which start faster with compiled modules.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: scenarios test check lint types unit quick oldest frameworks package fuzz bench clean

scenarios: $(INSTALLED)
	$(BIN)/pytest scenarios/

# The tests compare the digest of every run with the stored one. Types are checked in parallel with the tests.
test: lint
	$(MAKE) --jobs=2 types unit

check: lint
	$(MAKE) --jobs=2 types quick

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(INSTALLED)
	$(BIN)/mypy

# One worker more than processors, since many tests wait for servers and child processes.
unit: $(INSTALLED) $(AXE)
	$(BIN)/pytest tests/ --ignore=tests/package -n $$($(BIN)/python -c 'import os; print(os.cpu_count() + 1)') --dist worksteal

# axe-core checks the accessibility of report.html. Without npm, these tests are skipped with a message.
$(AXE): tests/report/html/package-lock.json
	npm ci --prefix tests/report/html --ignore-scripts --no-audit --no-fund --silent || echo "axe-core is not installed"

# The tests of the parts that every run uses (dialects, engine, scenarios, results), with few examples per property.
# The other tests start processes, servers and browsers, or take long.
quick: $(INSTALLED)
	HYPOTHESIS_PROFILE=quick $(BIN)/pytest $(addprefix tests/,$(QUICK)) --ignore=tests/report/html -n auto -q

SLOW := cli docs draw evolution fuzz gate isolation package recording secrets selection serve statistics variants world
QUICK := $(filter-out $(SLOW),$(notdir $(patsubst %/,%,$(wildcard tests/*/)))) test_imports.py

# Apps on old versions of LangGraph, each in an environment of its own: the lowest versions that pyproject.toml allows,
# and the oldest 1.x. `make test` has the newest. What a version lacks is skipped, with the reason; old libraries warn
# of each other.
oldest: on-oldest on-langgraph-1.0

on-%: $(VENV)-%/.installed
	$(VENV)-$*/bin/python -m pytest -q -W ignore -p tests.versions scenarios/langgraph tests/dialects/apps

.PRECIOUS: $(VENV)-%/.installed
$(VENV)-%/.installed: constraints-%.txt pyproject.toml
	$(PYTHON) -m venv --clear $(VENV)-$*
	$(VENV)-$*/bin/python -m pip install --quiet --requirement $< --editable .
	touch $@

# The examples of frameworks that bring many packages, each in an environment of its own.
frameworks: framework-langgraph_ts $(patsubst examples/%/requirements.txt,framework-%,$(wildcard examples/*/requirements.txt))

framework-%: $(VENV)-framework-%/.installed
	$(VENV)-framework-$*/bin/harness run examples/$*

framework-langgraph_ts: $(INSTALLED)
	npm ci --prefix examples/langgraph_ts --no-audit --no-fund --silent
	$(BIN)/pytest examples/langgraph_ts

.PRECIOUS: $(VENV)-framework-%/.installed
$(VENV)-framework-%/.installed: examples/%/requirements.txt pyproject.toml
	$(PYTHON) -m venv --clear $(VENV)-framework-$*
	$(VENV)-framework-$*/bin/python -m pip install --quiet --requirement $< --editable .
	touch $@

# The source distribution and the wheel: their contents, and the first example of README.md with the wheel alone, in a
# fresh environment of each Python of PYTHONS. It takes minutes, since the dependencies are installed each time.
PYTHONS ?= $(PYTHON)
package: $(INSTALLED)
	rm -rf dist
	$(BIN)/python -m build --outdir dist . > /dev/null
	HARNESS_PYTHONS="$(PYTHONS)" $(BIN)/pytest tests/package

# Fuzzing with many seeds, and properties with many new examples; `make unit` runs the same small sample each time.
# `make fuzz HARNESS_FUZZ=5000` sets the number of seeds.
HARNESS_FUZZ ?= 1000
fuzz: $(INSTALLED)
	HARNESS_FUZZ=$(HARNESS_FUZZ) $(BIN)/pytest tests/fuzz -n auto
	HYPOTHESIS_PROFILE=long $(BIN)/pytest tests/ -m hypothesis -n auto

bench: $(INSTALLED)
	$(BIN)/python -m benchmarks

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev,openai,anthropic,serve]'
	touch $@

clean:
	rm -rf $(VENV) $(VENV)-* .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist *.egg-info
