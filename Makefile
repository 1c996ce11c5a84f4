# `make demo` and `make test` work on a fresh machine: each makes .venv itself.

# The first interpreter that runs and has wheels of TensorFlow.
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
    $$python -c 'import ensurepip, sys, venv; \
sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null \
    && { echo $$python; break; }; done)
BIN := .venv/bin
RUN_DIR ?= runs/demo
EXPORT_DIR ?= exports/demo

.PHONY: demo test check format clean

demo: .venv/train.stamp
	$(BIN)/python -m train --dataset demo --preset tiny --run-dir $(RUN_DIR)
	$(BIN)/python -m export --run-dir $(RUN_DIR) --export-dir $(EXPORT_DIR)
	$(BIN)/python -m export.demo --export-dir $(EXPORT_DIR)

test: .venv/test.stamp
	$(BIN)/python -m pytest

check: .venv/test.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: .venv/test.stamp
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.venv/bin/python:
	@test -n "$(PYTHON)" || { echo "keras_transformer needs Python 3.11, 3.12\
 or 3.13 with venv; none of python3, python3.13, python3.12, python3.11 is\
 one. Install one, or name it: make PYTHON=/path/to/python3.12" >&2; exit 1; }
	$(PYTHON) -m venv .venv

.venv/train.stamp: setup.cfg pyproject.toml .venv/bin/python
	$(BIN)/python -m pip install --quiet --editable '.[train]'
	touch $@

.venv/test.stamp: setup.cfg pyproject.toml .venv/bin/python
	$(BIN)/python -m pip install --quiet --editable '.[train,test,dev]'
	touch $@

clean:
	rm -rf .venv
