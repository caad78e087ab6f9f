# All that a clone needs is Python 3.11 to 3.13, pip and make; everything is installed into .venv, once.
PYTHON ?= python3
# Processes of `make test` and `make test-slow`. A file goes to one of them: what its tests share is made once.
WORKERS ?= 2
# Minutes of training in `make demo`.
MINUTES ?= 4
# Run of train.py whose learning curve `make pictures` draws.
RUN ?= runs/ppo
# Package index of the torch build to install; when empty, the one pip installs by itself.
TORCH_INDEX ?=

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
TORCH := $(VENV)/torch.stamp
INSTALLED := $(VENV)/installed.stamp
DOCS := $(VENV)/docs.stamp

.DEFAULT_GOAL := help
.PHONY: help install demo test test-slow lint format pictures bench docs clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo "options: MINUTES=$(MINUTES) (training in the demo), TORCH_INDEX=URL (where to get torch), PYTHON=$(PYTHON)"

install: $(INSTALLED) ## make .venv and install everything into it

demo: $(INSTALLED) ## train a masked PPO agent for MINUTES minutes into runs/demo, anew each time, and compare it
	$(BIN)/python train.py maskable_ppo --minutes $(MINUTES) --run runs/demo --overwrite
	$(BIN)/python evaluate.py random greedy turn_greedy policy:runs/demo/policy.safetensors \
		--games 10000 --json runs/demo/evaluation.json --plots runs/demo
	@echo "Model, learning curve, plots and evaluation.json are in runs/demo"

test: $(INSTALLED) ## run the fast tests
	$(BIN)/python -m pytest -m "not slow" -n $(WORKERS) --dist loadfile

test-slow: $(INSTALLED) ## run the slow tests alone
	$(BIN)/python -m pytest -m slow -n $(WORKERS) --dist loadfile

lint: $(INSTALLED) ## check style, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(INSTALLED) ## put the code into the project's format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

pictures: $(INSTALLED) ## make the pictures of the README; RUN=FOLDER has the learning curve
	$(BIN)/python docs/make_pictures.py --run $(RUN)

bench: $(INSTALLED) ## run the benchmarks one after the other
	@set -e; for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python "$$script"; done

docs: $(DOCS) ## build the documentation site into site/; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean: ## remove .venv, builds and caches; runs/ stays
	rm -rf $(VENV) dist build site .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed; name one with PYTHON=..."; exit 1; }
	$(PYTHON) -m venv $(VENV)

# torch first and by itself: what is installed later takes the build it finds. An index for torch alone need not have
# the pinned versions of what torch depends on, so from such an index comes torch and nothing else.
$(TORCH): constraints.txt | $(BIN)/pip
	$(PIP) install $(if $(TORCH_INDEX),--no-deps --index-url $(TORCH_INDEX)) torch -c constraints.txt
	touch $@

$(INSTALLED): pyproject.toml constraints.txt $(TORCH)
	$(PIP) install -e ".[train,multiplayer,render,dev]" -c constraints.txt
	touch $@

$(DOCS): $(INSTALLED)
	$(PIP) install -e ".[docs]" -c constraints.txt
	touch $@
