# Two commands do all the set-up on a fresh machine: `make demo` and `make test`.
# Every path here is relative: make cannot handle spaces in a target's name, and the
# clone may well lie in a folder that has some.

PYTHON ?= python3
WORKERS ?= 2
VENV := .venv
PY := $(VENV)/bin/python
BENCH_VENV := .venv-bench
BENCH_PY := $(BENCH_VENV)/bin/python
LOWEST_VENV := .venv-lowest
LOWEST_PY := $(LOWEST_VENV)/bin/python
EMPTY_VENV := .venv-empty
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check -c constraints.txt
MANIFESTS := pyproject.toml constraints.txt

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test lint types unit test-lowest format bench mutants fuzz kill audit experiments \
	gallery docs docs-serve check-site dist check-dist clean

help: ## Say what the commands do
	@echo "usage: make COMMAND [PYTHON=python3.12] [WORKERS=4]"
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-11s %s\n", $$1, $$2 }' Makefile

demo: $(VENV)/installed ## Install raterwise and evaluate a model on the embedded radiologists' ratings
	$(VENV)/bin/raterwise demo

test: lint types unit ## Install the test extras and run every check

lint: $(VENV)/installed-dev ## Check style and formatting (ruff)
	$(PY) -m ruff check
	$(PY) -m ruff format --check

types: $(VENV)/installed-dev ## Check the types of src and experiments (mypy, strict)
	$(PY) -m mypy

unit: $(VENV)/installed-dev ## Run the tests and the examples in the documentation (pytest)
	$(PY) -m pytest -n $(WORKERS) $(ARGS)

test-lowest: ## Run the tests with the lowest versions that pyproject.toml allows (torch: that of constraints.txt)
	"$(PYTHON)" -m venv --clear $(LOWEST_VENV)
	$(LOWEST_PY) -m pip install --quiet --disable-pip-version-check packaging
	$(LOWEST_PY) tools/lowest.py > $(LOWEST_VENV)/lowest.txt
	$(LOWEST_PY) -m pip install --quiet --disable-pip-version-check -c $(LOWEST_VENV)/lowest.txt \
		-e ".[dev]"
	$(LOWEST_PY) -m pytest -n $(WORKERS) $(ARGS)

format: $(VENV)/installed-dev ## Format the code and fix what ruff can fix
	$(PY) -m ruff check --fix
	$(PY) -m ruff format

bench: $(BENCH_VENV)/installed ## Measure speed against named peers, in an environment of their own
	$(BENCH_PY) benchmarks $(ARGS)

mutants: $(VENV)/installed-dev ## Break the library on purpose and list what no test notices: ARGS="--sample 40"; without ARGS, what once survived
	$(PY) tools/mutants.py $(or $(ARGS),--named)

fuzz: $(VENV)/installed-dev ## Damage 10,000 files of every kind and see that no command breaks: ARGS="--inputs 500 --seed 2"
	$(PY) tools/fuzz.py $(ARGS)

kill: $(VENV)/installed-dev ## Kill runs at 200 random moments and see that they go on to the same digits: ARGS="--kills 20 --seed 2"
	$(PY) tools/kill.py $(ARGS)

audit: $(VENV)/installed-docs ## List the licences of all extras, and ask for known vulnerabilities (says so where there is no network): ARGS=--strict
	-@$(PY) -m pip install --quiet --disable-pip-version-check pip-audit
	$(PY) tools/audit.py $(ARGS)

experiments: $(VENV)/installed-dev ## Repeat a paper's experiment: ARGS="NAME --data DIR --out DIR"; without ARGS, list them
	$(PY) -m experiments $(or $(ARGS),--help)

gallery: $(VENV)/installed-dev ## Draw the figures and photograph the report for docs/gallery.md (needs Chromium)
	$(PY) tools/make_gallery.py --report

docs: $(VENV)/installed-docs ## Build the site into docs/_build/html: warnings are errors, every tutorial runs, nothing is loaded from elsewhere
	rm -rf docs/_build/html
	$(PY) -m sphinx -b html -n -W --keep-going -q -d docs/_build/doctrees docs docs/_build/html
	$(PY) tools/check_site.py docs/_build/html

check-site: ## Read the built site in a browser: no request elsewhere, axe-core, telephones (needs Chromium)
	$(PY) tools/browse_site.py docs/_build/html $(ARGS)

docs-serve: docs ## Build the site and show it at http://localhost:8000
	$(PY) -m http.server --bind 127.0.0.1 --directory docs/_build/html 8000

dist: $(VENV)/installed-dev ## Build the wheel and the source archive into dist
	rm -rf dist
	$(PY) -m hatchling build -d dist

check-dist: dist ## Check what was built (twine, check-wheel-contents), and install the wheel where nothing else is
	$(PY) $(PIP_INSTALL) -e ".[dev,release]"
	$(PY) -m twine check --strict dist/*
	$(VENV)/bin/check-wheel-contents dist/*.whl
	"$(PYTHON)" -m venv --clear $(EMPTY_VENV)
	$(EMPTY_VENV)/bin/python $(PIP_INSTALL) dist/*.whl
	cd $(EMPTY_VENV) && bin/raterwise --version && bin/raterwise demo --resamples 20 > demo.txt

clean: ## Remove the environments, caches and build outputs
	rm -rf $(VENV) $(BENCH_VENV) $(LOWEST_VENV) $(EMPTY_VENV) build dist docs/_build docs/gallery_of_tutorials docs/metrics docs/reference/api .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamp files keep repeated runs quick: packages are installed again only when the
# manifests change. Installs are editable, so a changed source file is never stale.

$(VENV)/created:
	@"$(PYTHON)" -c 'import sys; sys.version_info >= (3, 11) or sys.exit("raterwise needs Python 3.11 or newer, and this is " + sys.version.split()[0] + "; say make PYTHON=python3.12, for example")'
	"$(PYTHON)" -m venv $(VENV)
	@touch $@

$(VENV)/installed: $(VENV)/created $(MANIFESTS)
	$(PY) $(PIP_INSTALL) -e ".[report]"
	@touch $@

$(VENV)/installed-dev: $(VENV)/created $(MANIFESTS)
	$(PY) $(PIP_INSTALL) -e ".[dev]"
	@touch $@ $(VENV)/installed

# The site shows torch's and the reports' names, so it is built where the tests run.
$(VENV)/installed-docs: $(VENV)/installed-dev
	$(PY) $(PIP_INSTALL) -e ".[dev,docs]"
	@touch $@

$(BENCH_VENV)/installed: $(MANIFESTS) benchmarks/requirements.txt
	"$(PYTHON)" -m venv $(BENCH_VENV)
	$(BENCH_PY) $(PIP_INSTALL) -e . -r benchmarks/requirements.txt
	@touch $@
