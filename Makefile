# make demo: a whole investigation on whatever device is here. make test: every check this machine can run.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test lint types unit process gpu clean

demo: $(STAMP)
	$(BIN)/perfkit investigate llama3-block $(DEMO_FLAGS)

test: $(STAMP) lint types
	$(BIN)/python -m pytest

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(STAMP)
	$(BIN)/mypy

unit: $(STAMP)
	$(BIN)/python -m pytest tests/unit

process: $(STAMP)
	$(BIN)/python -m pytest tests/process

gpu: $(STAMP)
	$(BIN)/python -m pytest tests/gpu -m gpu

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $(STAMP)

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache dist build
