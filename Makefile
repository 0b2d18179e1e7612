# Every target starts from a bare clone: it makes .venv and installs what it needs, once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export SLATEWISE_DATA ?= $(wildcard $(abspath ../shared/data))
unexport PYTHONDONTWRITEBYTECODE # what one worker has compiled the other and all their processes import

.PHONY: demo label-demo test portable gpu-test explore boundscheck same-answers same-speed check house fuzz bench docs clean

demo: $(VENV)/installed-plain
	$(BIN)/slatewise demo --out demo/report.html

# Drawn scenes, and the page that asks about them.
label-demo: $(VENV)/installed-label
	$(BIN)/slatewise label demo demo/labeling

test: $(VENV)/installed-test
	$(BIN)/python -m pytest -n auto --dist worksteal --durations=10

# The suite with the instructions of other processors, which add in another order: all that this one can imitate.
portable: $(VENV)/installed-test
	$(BIN)/python -m tests.portable

# Kernels of a GPU against the plain torch that CI tests, where there is a GPU.
gpu-test: $(VENV)/installed-test $(VENV)/installed-gpu
	$(BIN)/python -m pytest tests/gpu -rs

# The tests with generated cases, with cases that no run had before; what they find becomes a test of its own.
explore: $(VENV)/installed-test
	SLATEWISE_EXPLORE=1 $(BIN)/python -m pytest -n auto --dist worksteal $(shell grep -rlE "hypothesis" tests --include="test_*.py")

# The tests that reach kernels, with every index checked. Kernels in a cache were compiled without: its own is empty.
KERNEL_TESTS := tests/collaborative tests/core tests/cstar tests/data tests/factors tests/inference tests/latent \
  tests/losses tests/matching tests/metric_learning tests/metrics tests/quadratic tests/recommend tests/sessions tests/test_boundscheck.py
boundscheck: $(VENV)/installed-test
	cache=$$(mktemp -d) && trap 'rm -rf "$$cache"' EXIT && \
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR="$$cache" $(BIN)/python -m pytest -n auto --dist worksteal $(KERNEL_TESTS)

# Fits and answers of every estimator, bit for bit as those of another commit: make same-answers COMMIT=...
same-answers: $(VENV)/installed-test
	$(BIN)/python -m tests.same_answers $(COMMIT)

# Benchmarks beside those of another commit, in turn: make same-speed COMMIT=...
same-speed: $(VENV)/installed-test
	$(BIN)/python -m tests.same_speed $(COMMIT) star permanent metric warp topk cstar labels quadratic neighbors serve

# The documentation is built in an environment of its own, which has nothing but the extra "docs".
check: $(VENV)/installed-check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports
	$(MAKE) docs VENV=$(VENV)/docs

# The size and shape of the code base, and how far a reader walks; a report, never a failure.
house: $(VENV)/installed-test
	$(BIN)/python -m tools.house
	-$(BIN)/python -m tools.walks

fuzz: $(VENV)/installed-test
	$(BIN)/python -m tests.fuzz --files $(or $(FILES),200000)
	$(BIN)/python -m tests.fuzz.models --cases $(or $(MODELS),20000)

bench: $(VENV)/installed-bench
	for name in metrics reader star cstar labels quadratic metric permanent warp topk serve; do $(BIN)/slatewise bench $$name || exit 1; done

docs: $(VENV)/installed-docs
	$(BIN)/sphinx-build -q -W -E docs docs/_build/html

clean:
	rm -rf $(VENV) demo docs/_build
	find src tests -name "*.nbi" -o -name "*.nbc" -o -path "*__pycache__*.lock" | xargs rm -f

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "slatewise needs Python 3.11 or newer: make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)

# One stamp per extra, and one for each extra inside it: reinstalled only when pyproject.toml changes.
INSIDE_bench := test
INSIDE_check := test docs
INSIDE_ci := check test docs gpu
$(VENV)/installed-plain: pyproject.toml | $(VENV)/bin/python
	@echo "installing into $(VENV) (once; a minute or two)"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/installed-%: pyproject.toml | $(VENV)/bin/python
	@echo "installing into $(VENV) (once; a minute or two)"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	@touch $@ $(INSIDE_$*:%=$(VENV)/installed-%)
