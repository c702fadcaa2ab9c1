# make run    sets up, serves examples/assistant, prints an answer and goes on serving
# make test   sets up, checks the code and runs every test
# make check  lint, types, import rules, generated files
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: setup run test check clean

setup: $(STAMP)

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Argosy needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 …"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "Python's venv module is missing: apt-get install python3-venv"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $(STAMP)

run: setup
	$(BIN)/python examples/assistant/run.py

check: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/argosy crds --check

test: check
	$(BIN)/python -m pytest

clean:
	rm -rf $(VENV) .argosy
