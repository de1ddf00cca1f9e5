# Everything works on a fresh machine that has Python 3.11 or newer and nothing else.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test lint docs all-tests clean

# The main job on data that comes with Mansard: report, chart and tables in ./mansard-demo.
demo: $(VENV)/.installed
	$(BIN)/mansard demo

# The tests that need no GPU, in two minutes on two cores.
test: $(VENV)/.installed-test
	$(BIN)/pytest -q -n auto -m 'not slow'

# These and the slow ones: browsers, hostile input, pictures, fleets, every kernel for every chip.
all-tests: $(VENV)/.installed-test
	$(BIN)/pytest -q -n auto

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Pages that are made from the code.
docs: $(VENV)/.installed
	$(BIN)/python -m mansard.counters > docs/counters.md

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) mansard-demo
