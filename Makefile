# `make setup` once, then `make check test`. Everything together, as CI runs it: .ci/run
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: setup check test golden demo

setup: ## an environment with the project and its tools
	python3 -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'

check: ## style, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

test: ## the whole suite
	$(BIN)/python -m pytest -n 2

golden: ## rewrite the golden files from what the program says now; read the difference before you commit it
	GOLDEN=write $(BIN)/python -m pytest -n 2 -k golden

demo: ## a simulated pool to try everything on
	$(BIN)/lloom-gitops demo
