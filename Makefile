# Each target sets up all it needs in .venv; only Python 3.11 or newer must be there.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint docs bench world scale arena rivals audit clean

$(VENV)/.ready: pyproject.toml hatch_build.py $(wildcard src/dpcov/core/*.[ch])
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

demo: $(VENV)/.ready
	$(BIN)/dpcov demo

# One thread each: threads of BLAS would fight over the same two cores. A third process works while others wait for
# Spark, a browser or a database.
test: $(VENV)/.ready
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses 3 --dist worksteal

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Without the network: every notebook runs, and a warning or a link that leads nowhere is an error.
docs: $(VENV)/.ready
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m sphinx --builder html --jobs 2 --fail-on-warning --quiet docs docs/_build/html
	$(BIN)/python docs/check_links.py docs/_build/html

bench: $(VENV)/.ready
	$(BIN)/python benchmarks/core.py
	$(BIN)/python benchmarks/accuracy.py
	$(BIN)/python benchmarks/paper.py
	$(BIN)/python benchmarks/coverage.py

# Tables of seeds that nothing was tuned on.
world: $(VENV)/.ready
	$(BIN)/python benchmarks/world.py --seeds 60000:60100

scale: $(VENV)/.ready
	$(BIN)/python benchmarks/scale.py
	$(BIN)/python benchmarks/clusters.py

arena: $(VENV)/.ready
	$(BIN)/python benchmarks/arena_validation.py
	$(BIN)/python benchmarks/arena.py

rivals:
	$(PYTHON) -m venv $(VENV)-rivals
	$(VENV)-rivals/bin/python -m pip install --quiet --disable-pip-version-check '.[bench]'
	$(VENV)-rivals/bin/python benchmarks/flights.py
	$(VENV)-rivals/bin/python benchmarks/real.py
	$(VENV)-rivals/bin/python benchmarks/shelf.py
	$(VENV)-rivals/bin/python benchmarks/shelf.py --part library

# Figures of an earlier audit would hide that a check did not run.
audit: $(VENV)/.ready
	rm -f benchmarks/results/assurance.json
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -m audit --numprocesses 2 --dist load; status=$$?; \
	$(BIN)/python benchmarks/assurance.py; exit $$status

clean:
	rm -rf $(VENV) $(VENV)-rivals .pytest_cache .mypy_cache .ruff_cache demo-output report-screenshots docs/_build docs/proofs docs/examples docs/reference/api src/dpcov/core/_passes.so
