# `make scenarios` installs what is needed and runs every scenario; `make test` installs and runs everything
# a change must pass: lint, types, tests, scenarios. `make check` is the quick look while one works: lint, types, and
# the tests of what a run is made of.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
AXE := tests/report/html/node_modules/axe-core/axe.min.js

# The tests start many processes, which are to find everything compiled.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: scenarios test check lint types unit quick fuzz bench clean

scenarios: $(INSTALLED)
	$(BIN)/pytest scenarios/

# The tests hold every run to the digest that it had under another hash seed. Types are checked beside them, on one of the cores.
test: lint
	$(MAKE) --jobs=2 types unit

check: lint
	$(MAKE) --jobs=2 types quick

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(INSTALLED)
	$(BIN)/mypy

# One worker more than there are processors: many tests wait for servers and child processes.
unit: $(INSTALLED) $(AXE)
	$(BIN)/pytest tests/ -n $$($(BIN)/python -c 'import os; print(os.cpu_count() + 1)') --dist worksteal

# What the tests of report.html look for faults of accessibility with. Without npm they are skipped, and say so.
$(AXE): tests/report/html/package-lock.json
	npm ci --prefix tests/report/html --ignore-scripts --no-audit --no-fund --silent || echo "axe-core is not installed"

# The tests of what a run is made of: dialects, engine, scenarios, results; properties with few examples. The others
# start processes, servers and browsers, or compute for long.
quick: $(INSTALLED)
	HYPOTHESIS_PROFILE=quick $(BIN)/pytest $(addprefix tests/,$(QUICK)) --ignore=tests/report/html -n auto -q

SLOW := cli docs draw evolution fuzz gate isolation recording secrets selection serve statistics variants world
QUICK := $(filter-out $(SLOW),$(notdir $(patsubst %/,%,$(wildcard tests/*/)))) test_imports.py

# The long fuzz, `make fuzz HARNESS_FUZZ=5000`, and properties with many examples. `make unit` runs a small sample.
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
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build *.egg-info
