# Everything starts here: `make demo` shows it running, `make test` proves it.
# The environment is made on first use, from hashed lock files, in .venv.

PYTHON ?= python3
BIN := .venv/bin
RUN_LOCK := requirements/run.lock
BUILD_LOCK := requirements/build.lock
DEV_LOCK := requirements/dev.lock
PRODUCT := slicewatch simulator exporter adapter health advisor cli
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
COMPILE := $(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-header \
  --quiet --upgrade

.PHONY: help demo test check generate lock e2e bench soak ramp fleet screenshots previews ci clean size

help: ## what there is to make
	@sed -n 's/^\([a-z0-9]*\):.*## /\1\t/p' Makefile | expand -t 12

demo: .venv/run.stamp ## the main job, on simulated GPUs where no NVIDIA driver is there
	$(BIN)/python -m cli demo

# A process that has loaded the test driver cannot load a real one: GPU tests run in their own.
test: .venv/dev.stamp ## unit, property, contract and integration tests; on a GPU where there is one
	$(BIN)/python -m pytest -q -m gpu tests/gpu
	$(BIN)/python -m pytest -m "not e2e and not gpu"

check: .venv/dev.stamp ## style, types, layers, generated files, present sizes
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m cli.generate --check
	$(BIN)/python -m alerts.checking
	@$(MAKE) --no-print-directory size

generate: .venv/dev.stamp ## everything that is derived from catalog, settings, alerts, dashboards
	$(BIN)/python -m cli.generate --write

lock: .venv/dev.stamp ## new lock files from pyproject.toml
	$(COMPILE) pyproject.toml -o $(RUN_LOCK)
	$(COMPILE) --group build -c $(RUN_LOCK) -o $(BUILD_LOCK)
	$(COMPILE) pyproject.toml --group dev -c $(RUN_LOCK) -o $(DEV_LOCK)

e2e: .venv/dev.stamp ## a real Kubernetes: from NVML's C interface to a scaled Deployment
	$(BIN)/python -m pytest -m e2e -s

bench: .venv/dev.stamp ## ratios against what is possible, all from one run
	$(BIN)/python -m bench

soak: .venv/dev.stamp ## a day of an exporter's life, to see what it keeps; takes an hour
	$(BIN)/python -m bench.soak

ramp: .venv/dev.stamp ## the users' HPA from 2 to 20 replicas and back, nothing hastened; takes an hour
	$(BIN)/python -m testbed.chain.ramp

fleet: .venv/dev.stamp ## a month of a thousand nodes and their health monitors; takes a quarter of an hour
	$(BIN)/python -m testbed.health_fleet

screenshots: .venv/dev.stamp ## pictures of the pages, for the docs
	SLICEWATCH_SCREENSHOTS=docs/images $(BIN)/python -m pytest -q tests/integration/test_pages.py

previews: .venv/dev.stamp ## pictures of the dashboards, for the docs; needs npm
	SLICEWATCH_PREVIEWS=docs/images/dashboards $(BIN)/python -m pytest -q \
	  tests/integration/test_dashboards_on_prometheus.py -k prometheus-3

ci: check test e2e ## what has to pass before anything lands

size:
	@for p in $(PRODUCT); do \
	  printf '%-12s %5d lines\n' $$p $$(find $$p -name '*.py' ! -name '*_pb2*' -exec cat {} + | wc -l); \
	done

clean:
	rm -rf .venv

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv .venv

.venv/run.stamp: .venv/bin/python $(RUN_LOCK) $(BUILD_LOCK)
	$(PIP) --require-hashes -r $(RUN_LOCK) -r $(BUILD_LOCK)
	$(PIP) --no-deps --no-build-isolation -e .
	touch $@

.venv/dev.stamp: .venv/bin/python $(DEV_LOCK) pyproject.toml
	$(PIP) --require-hashes -r $(DEV_LOCK)
	$(PIP) --no-deps --no-build-isolation -e .
	touch $@ .venv/run.stamp
