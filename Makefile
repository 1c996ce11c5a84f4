# `make demo` and `make test` work on a fresh machine: each makes .venv itself.

# The first interpreter that runs and has wheels of TensorFlow.
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
    $$python -c 'import ensurepip, sys, venv; \
sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null \
    && { echo $$python; break; }; done)
PY := .venv/bin/python
RUN_DIR ?= runs/demo
EXPORT_DIR ?= exports/demo
DEMO = $(RUN_DIR)/demo
UPDATES ?= 1200
# Of each test set, the BLEU below which the demo fails.
AT_LEAST ?= test=90 unseen=75

.PHONY: demo test slow peers wheel docs check format clean

# Trains on the embedded corpus, exports, scores and translates: some
# minutes on two cores, less than one the second time.
demo: $(EXPORT_DIR)/1/saved_model.pb
	@for least in $(AT_LEAST); do \
	    split=$${least%=*}; \
	    echo "== $$split: 500 sentences through the SavedModel"; \
	    $(PY) -m translate.evaluate --export-dir $(EXPORT_DIR) \
	        --source $(DEMO)/$$split.en --reference $(DEMO)/$$split.es \
	        --at-least $${least#*=} || exit 1; \
	done
	@echo "== five test sentences and their translations"
	@for language in en es; do \
	    head -n 5 $(DEMO)/test.$$language > $(RUN_DIR)/five.$$language; \
	done
	@$(PY) -m translate --export-dir $(EXPORT_DIR) \
	    --input $(RUN_DIR)/five.en --output $(RUN_DIR)/translated.es
	@paste $(RUN_DIR)/five.en $(RUN_DIR)/translated.es $(RUN_DIR)/five.es | awk -F '\t' \
	    '{ print $$1; print $$2 ($$2 == $$3 ? "" : " (reference: " $$3 ")") }'
	@echo "== the export on disk: its files, and outputs equal to the recorded ones (right or wrong)"
	@$(PY) -m export.check --export-dir $(EXPORT_DIR)

$(EXPORT_DIR)/1/saved_model.pb: | $(RUN_DIR)/model.keras
	$(PY) -m export --run-dir $(RUN_DIR) --export-dir $(EXPORT_DIR)

$(RUN_DIR)/model.keras: | .venv/train.stamp
	$(PY) -m train --dataset demo --preset tiny --num-layers 2 --dropout 0.1 \
	    --steps $(UPDATES) --warmup-steps 400 --batch-tokens 2048 --run-dir $(RUN_DIR)

PYTEST = $(PY) -m pytest -n 2 --dist loadgroup

test: .venv/test.stamp
	$(PYTEST) -m "not slow and not peers"

# The few tests that take long: killed runs, lost workers, half precision.
slow: .venv/test.stamp
	$(PYTEST) -m "slow and not peers"

# What we are compared with: other libraries' models, and a browser.
peers: .venv/peers.stamp
	$(PYTEST) -m peers

# The wheel in an empty environment, outside of the checkout: the layers' checks on
# JAX and torch without TensorFlow, then on TensorFlow.
wheel: PY := .venv-wheel/bin/python
wheel:
	rm -rf build/wheel build/lib .venv-wheel
	$(MAKE) $(PY)
	$(PY) -m pip wheel --quiet --no-deps --wheel-dir build/wheel .
	$(PY) -m pip install --quiet --disable-pip-version-check \
	    build/wheel/*.whl jax torch pytest
	$(PY) -m pip uninstall --quiet --yes triton  # As in .venv/peers.stamp.
	cd build/wheel && for backend in jax torch; do KERAS_BACKEND=$$backend \
	    ../../$(PY) ../../tests/helpers/keras_workflows.py || exit 1; done
	$(PY) -m pip install --quiet --disable-pip-version-check \
	    'keras-transformer-translation[tensorflow]'
	cd build/wheel && KERAS_BACKEND=tensorflow ../../$(PY) \
	    ../../tests/helpers/keras_workflows.py
	.venv-wheel/bin/keras-transformer --help >/dev/null

# The guide, in build/site/index.html.
docs: .venv/docs.stamp
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict

check: .venv/test.stamp
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	.venv/bin/lint-imports --no-cache
	$(PY) -m mypy keras_transformer

format: .venv/test.stamp
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

.venv/bin/python .venv-wheel/bin/python:
	@test -n "$(PYTHON)" || { echo "keras_transformer needs Python 3.11, 3.12\
 or 3.13 with venv; none of python3, python3.13, python3.12, python3.11 is\
 one. Install one, or name it: make PYTHON=/path/to/python3.12" >&2; exit 1; }
	$(PYTHON) -m venv $(@:/bin/python=)

# Pip says nothing but what is wrong; that there is a newer pip is not.
INSTALL = $(PY) -m pip install --quiet --disable-pip-version-check --editable

.venv/train.stamp: setup.cfg pyproject.toml .venv/bin/python
	$(INSTALL) '.[train]'
	@touch $@

.venv/docs.stamp: setup.cfg pyproject.toml .venv/bin/python
	$(INSTALL) '.[docs]'
	@touch $@

.venv/test.stamp: setup.cfg pyproject.toml .venv/bin/python
	$(INSTALL) '.[test,dev]'
	@touch $@

# Torch brings Triton, nothing here needs it, and it ends any process that has
# imported TensorFlow 2.20 or 2.21 (tensorflow#124205). Chromium is no Python
# package: Debian's, where one may and can install it; nor is Caddy.
APT = apt-get -qq -o Acquire::http::Timeout=30 -o Acquire::Retries=0
.venv/peers.stamp: setup.cfg pyproject.toml .venv/bin/python
	$(INSTALL) '.[test,dev,peers]'
	@$(PY) -m pip uninstall --quiet --yes triton
	@if command -v apt-get && test $$(id -u) = 0 && \
	    ! { command -v chromium && command -v caddy; }; \
	then $(APT) update && $(APT) install --yes chromium caddy; fi >/dev/null || \
	    echo "no chromium or caddy: the tests that need them are skipped" >&2
	@touch $@

clean:
	rm -rf .venv .venv-wheel
