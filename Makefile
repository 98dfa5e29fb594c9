# Every command of the project. `make` alone lists them; each sets up what it needs.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
NODE := tests/node
NODE_READY := $(NODE)/node_modules/.ready
JS := sdk/js
JS_READY := $(JS)/node_modules/.ready
JS_BUILT := $(JS)/dist/.built
AUI := $(JS)/bench/assistant-ui
AUI_READY := $(AUI)/node_modules/.ready

.DEFAULT_GOAL := help
.PHONY: help setup demo demo-page demo-check demo-vllm test test-core test-js test-browser test-vllm bench-planner bench-sim-worker bench-smoothing bench-web bench-proxy bench-leaks bench-replay bench-classify bench-control classify-training check fast-check format clean

help:  ## list the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */|/' | \
	  awk -F'|' '{printf "  make %-19s %s\n", $$1, $$2}'

setup: $(READY) $(JS_BUILT)  ## .venv with paceline and everything to develop it, the TypeScript build

$(READY): pyproject.toml constraints.txt hatch_build.py $(wildcard gateway/paceline/native/*.[ch])
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Paceline needs Python 3.11 or newer; this is $$($(PYTHON) --version). Say make PYTHON=..."; exit 1; }
	@echo "setting up $(VENV) (about half a minute the first time)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

# The official Node clients, for their tests alone. Without Node those tests say that they are skipped.
$(NODE_READY): $(NODE)/package.json $(NODE)/package-lock.json $(NODE)/.npmrc
	@if ! command -v npm >/dev/null; then \
	  echo "no npm here: tests of the Node clients will be skipped"; \
	elif cd $(NODE) && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error; then \
	  touch node_modules/.ready; \
	else echo "npm ci failed: tests of the Node clients will be skipped"; fi

# The TypeScript SDK. Without Node 20 it is neither built nor tested, which under CI is a failure.
$(JS_READY): $(JS)/package.json $(JS)/package-lock.json $(JS)/.npmrc
	@if ! node -e 'process.exit(Number(process.versions.node.split(".")[0] < 20))' 2>/dev/null; then \
	  echo "no Node 20 here: the TypeScript SDK is not built"; test "$$CI" != true; \
	else echo "setting up $(JS)"; cd $(JS) && \
	  npm ci --ignore-scripts --no-audit --no-fund --loglevel=error && touch node_modules/.ready; fi

$(JS_BUILT): $(JS_READY) $(wildcard $(JS)/src/*.ts) $(JS)/tsup.config.ts $(JS)/tsconfig.json
	@if test -e $(JS_READY); then cd $(JS) && npm run --silent build && touch dist/.built; fi

# assistant-ui's own smoothing, for make bench-smoothing alone. Offline a rule written anew stands in.
$(AUI_READY): $(JS_READY) $(AUI)/package.json $(AUI)/package-lock.json $(AUI)/.npmrc
	@if test -e $(JS_READY); then echo "setting up $(AUI)"; cd $(AUI) && \
	  if npm ci --ignore-scripts --no-audit --no-fund --loglevel=error; then touch node_modules/.ready; \
	  else echo "npm ci failed: assistant-ui is not measured by its own code"; fi; fi

demo: $(READY)  ## three simulated pools behind a gateway (ARGS=--any-port for free ports)
	@$(BIN)/paceline demo --config configs/gateway.yaml $(ARGS)

demo-page: $(JS_BUILT)  ## a page that shows one stream raw and smooth (ARGS="--gateway http://127.0.0.1:8080")
	@node web_demo/serve.mjs $(ARGS)

demo-check: $(READY)  ## the same, headless: one streamed request of each workload through it
	@$(BIN)/paceline demo --config configs/gateway.yaml --check

demo-vllm: $(READY)  ## the same on two real vLLM workers on the CPU, with a small real model
	@$(BIN)/paceline demo --config configs/cpu-vllm.yaml --workers vllm-cpu

test: $(READY) $(NODE_READY) test-js test-browser  ## all tests that need no vLLM, a few minutes
	@$(BIN)/python -m pytest

test-js: $(JS_BUILT)  ## the TypeScript SDK's tests alone
	@if test -e $(JS_READY); then cd $(JS) && npm test --silent; \
	else echo "the TypeScript SDK's tests are skipped"; fi

test-browser: $(READY) $(JS_BUILT)  ## the same in Chromium (half a minute), if there is one
	@if test -e $(JS_READY); then cd $(JS) && npm run --silent test:browser; \
	else echo "the tests in a browser are skipped"; fi

test-core: $(READY)  ## the pure tests alone, about ten seconds
	@$(BIN)/python -m pytest -q tests/core tests/sim tests/bench tests/sdk

test-vllm: $(READY)  ## the tests on real vLLM workers (builds their environment once: 3.4 GB)
	@$(BIN)/python -m paceline.testing.vllm_cpu setup
	@$(BIN)/python -m pytest tests/vllm -m vllm

bench-planner: $(READY)  ## the step-time model beside published figures, a second
	@$(BIN)/python -m paceline.bench.planner

bench-sim-worker: $(READY)  ## how punctual one simulated worker is with 300 streams, half a minute
	@$(BIN)/python -m paceline.bench.sim_worker

bench-proxy: $(READY)  ## what a proxy costs, ours beside others: 15 minutes (ARGS=--quick: 5)
	@$(BIN)/python -m paceline.bench.proxy $(ARGS)

bench-smoothing: $(READY) $(JS_BUILT) $(AUI_READY)  ## how smooth the SDK makes streams, at which delay: on streams kept for it
	@$(BIN)/python -m paceline.bench.smoothing $(ARGS)

bench-web: $(JS_BUILT)  ## what is painted in a real page, as it comes beside smooth: 80 seconds
	@cd $(JS) && npm run --silent bench:web

bench-leaks: $(READY)  ## 10,000 aborted and 10,000 whole streams: what a gateway keeps of them, half a minute
	@$(BIN)/python -m paceline.bench.leaks $(ARGS)

bench-replay: $(READY)  ## what replaying answers costs, on hard texts and on usual ones, a minute
	@$(BIN)/python -m paceline.bench.replay

bench-classify: $(READY) $(VENV)/.bench  ## how right the classifier is on sources it has not seen, and how fast
	@$(BIN)/python -m paceline.bench.classify

bench-control: $(READY)  ## the adaptive choice beside static ones, simulated: a quarter of an hour (ARGS=--quick: 1 minute)
	@$(BIN)/python -m paceline.bench.control $(ARGS)

classify-training: $(READY) $(VENV)/.bench  ## fit the classifier anew (needs the gathered prompts)
	@$(BIN)/python -m paceline.bench.classify_training

$(VENV)/.bench: $(READY)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[bench]'
	@touch $@

check: fast-check test demo-check  ## format, lint, types, import rules, tests

fast-check: $(READY) $(JS_READY)  ## format, lint, types, import rules
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/clang-format --dry-run --Werror gateway/paceline/native/*.[ch]
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@if test -e $(JS_READY); then cd $(JS) && npm run --silent check; fi

format: $(READY) $(JS_READY)  ## put the code into shape
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .
	@$(BIN)/clang-format -i gateway/paceline/native/*.[ch]
	@if test -e $(JS_READY); then cd $(JS) && npm run --silent format; fi

clean:  ## remove the environment and caches
	rm -rf $(VENV) gateway/paceline/native/*.so $(NODE)/node_modules $(JS)/node_modules $(AUI)/node_modules $(JS)/dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
