# Two commands on a fresh machine with Python 3.11 and make: `make demo` and `make test`.
# Both set everything up in .venv, may be repeated, and say which sandboxes they found.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
MADE := $(VENV)/.made

.PHONY: demo test test-all test-extras check image venv clean

demo: venv
	@$(BIN)/toolenvs demo

# Much of a test is waiting, so they run side by side, each file in one process.
test: venv image
	$(BIN)/python -m pytest -m "not slow" -n auto --maxprocesses 4 --dist loadfile

test-all: venv image
	$(BIN)/python -m pytest

# What needs heavy packages: sentence embeddings, and schemathesis against the search server. They
# have an environment of their own. TORCH names the build of torch, which has to come first.
EXTRAS := .venv-extras
TORCH ?= torch

test-extras:
	@$(PYTHON) -m venv $(EXTRAS)
	$(EXTRAS)/bin/python -m pip install --quiet --disable-pip-version-check $(TORCH)
	$(EXTRAS)/bin/python -m pip install --quiet --disable-pip-version-check \
		--editable '.[dev,dense]' schemathesis
	PATH="$(CURDIR)/$(EXTRAS)/bin:$$PATH" $(EXTRAS)/bin/python -m pytest \
		tests/backends/test_dense.py tests/backends/test_hybrid.py tests/serving/test_description.py

check: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Without an engine or an image the tests of docker are skipped, loudly; where the engine is
# promised (TOOLENVS_REQUIRE_DOCKER=1) that is a failure.
image: venv
	@if $(BIN)/toolenvs build python && $(BIN)/toolenvs build sql; then \
		echo "==> found: a container engine and the sandbox images; docker and local are tested"; \
	elif [ "$$TOOLENVS_REQUIRE_DOCKER" = 1 ]; then \
		echo "==> TOOLENVS_REQUIRE_DOCKER=1, and there is no sandbox image: see above"; exit 1; \
	else \
		echo "==> no container engine or no image (see above): going on with local alone"; \
	fi

venv: $(MADE)

$(MADE): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "toolenvs needs Python 3.11 or newer; $(PYTHON) is older or missing." \
			"Name another: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
		echo "$(PYTHON) cannot make a virtual environment." \
			"On Debian and Ubuntu: sudo apt install python3-venv"; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) $(EXTRAS) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
