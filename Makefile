# One command each: everything runs inside .venv, made from the hashed requirements.lock.
SHELL := /bin/bash
PYTHON ?= $(shell for p in python3.14 python3.13 python3.12 python3.11 python3; do \
	command -v $$p >/dev/null && $$p -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo $$p && break; done)
BIN := .venv/bin
STAMP := .venv/.installed
JOBS ?= 2

.PHONY: run example test test-all browser lint format bench atlas accuracy lock clean

run: $(STAMP) ## Start the service on loopback
	$(BIN)/planner serve

example: $(STAMP) ## Answer a worked example
	$(BIN)/planner plan meta-llama/Llama-3.1-70B-Instruct --gpu h100-sxm5 --tp 4 --context 8192

test: lint ## Lint, type-check and run the tests, without the slow ones
	$(BIN)/pytest -n $(JOBS) --dist worksteal -m "not slow"

test-all: lint browser ## The same with the slow ones, in Chromium too
	$(BIN)/pytest -n $(JOBS) --dist worksteal

browser: ## Install Debian's Chromium where there is none and this user may, or say how
	@tools/chromium.sh

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP) ## Speed, kept in bench/history.json and drawn: ratios within one run, rates, memory
	$(BIN)/python bench/history.py

ATLAS ?= atlas
BATCHES := 1,2,3,4,6,8,12,16,24,32,48,64,80,96,128,160,192,224,256,320,384,448,512,640,768,896,1024,1280,1536,2048,3072,4096
CONTEXTS := 256,512,1k,2k,3k,4k,6k,8k,12k,16k,24k,32k,64k,128k,256k,1024k

atlas: $(STAMP) ## Every model on every accelerator that can be had, as a table (minutes; goes on where it ended)
	$(BIN)/planner sweep --all-models --all-gpus --tp 1,2,3,4,5,6,7,8 --batch $(BATCHES) \
		--context $(CONTEXTS) --output $(ATLAS) --workers $(JOBS)

accuracy: $(STAMP) ## Refit the calibration from the committed rows and report its accuracy (minutes)
	$(BIN)/planner calibrate --output planner/calibration/data/$$($(BIN)/python -c \
		"from planner.calibration.table import EDITION; print(f'calibration-{EDITION}.json')")
	$(BIN)/planner validate --report docs/ACCURACY.md

COMPILE := uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --custom-compile-command "make lock" --quiet

lock: ## Compile both lock files from pyproject.toml: all, and what the image runs (needs uv)
	$(COMPILE) --all-extras --output-file requirements.lock
	$(COMPILE) --extra service --extra postgres --extra tables --extra page --extra build \
		--constraint requirements.lock --output-file requirements-service.lock

$(STAMP): requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.11 or later with venv is needed"; exit 2; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
# where PYTHONDONTWRITEBYTECODE is set, every start would compile them
	$(BIN)/python -m compileall -q planner api
	touch $@

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache
