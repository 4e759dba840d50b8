# One command each. Every target makes .venv first, so each works by itself on a fresh machine.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
CORPUS ?= ../shared/corpus
PEERS ?= ../shared/peers
FAMILIES ?= ../shared/families
WILD ?= ../shared/wild
WILD_HOME ?= $(CURDIR)/.wild
export PEERS_HOME ?= $(CURDIR)/.peers
export OMP_NUM_THREADS ?= 1
# Commands that tests start load hundreds of files: without their bytecode each would compile them anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test quick lint types setup corpus peers families wild features digests axes operators thorough bench repair repair-modules batch openvino sources sources-timm gaps fuzz compat-torch clean

demo: $(STAMP)
	@$(BIN)/python examples/demo.py

test: lint types
	$(BIN)/python -m pytest -q -n 2

quick: $(STAMP)
	$(BIN)/python -m pytest -q -m "not slow" tests/unit tests/messages

thorough: $(STAMP)
	ANYSHAPE_THOROUGH=1 $(BIN)/python -m pytest -q

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

corpus: $(STAMP)
	$(BIN)/python $(CORPUS)/run.py --no-check --plugin benchmarks/corpus_plugin.py:export -e corpus_plugin -o corpus-results.jsonl

# The sources of the suites are unpacked into .peers first, by $(PEERS)/setup.sh; each run goes on where the last one stopped.
peers: $(STAMP)
	@test -d $(PEERS_HOME)/src || { echo "unpack the suites first: $(PEERS)/setup.sh $(PEERS_HOME) $(BIN)/python GITDIR..." >&2; exit 2; }
	$(BIN)/python $(PEERS)/run.py plugin:export --kind dynamic --timeout 120

families: $(STAMP)
	$(BIN)/python $(FAMILIES)/run.py plugin:export --path $(FAMILIES) --out $(CURDIR)/.families.jsonl --timeout 150
	cd $(FAMILIES) && $(CURDIR)/$(BIN)/python report.py $(CURDIR)/.families.jsonl

# Models of packages from PyPI, in an environment of their own (about 3 GB); writes docs/reference/wild.md. Goes on where it stopped.
WILD_EXPORTERS ?= anyshape
wild: $(STAMP)
	@test -x $(WILD_HOME)/venv/bin/python || $(WILD)/setup.sh $(WILD_HOME) $(CURDIR)/constraints.txt $(CURDIR)
	PYTHONPATH=$(CURDIR)/src $(WILD_HOME)/venv/bin/python $(WILD)/run.py --exporters $(WILD_EXPORTERS) --timeout 180 --wall 180 --out $(WILD_HOME)/results.jsonl
	$(WILD_HOME)/venv/bin/python benchmarks/wild/write_table.py $(WILD_HOME)/results.jsonl $(WILD)/baseline.json docs/reference/wild.md

# One process for each feature of torch; writes docs/reference/torch-features.md. FEATURES="--only cond", "--resume".
features: $(STAMP)
	$(BIN)/python -W ignore benchmarks/features/run.py $(FEATURES)

# Digests of the files that are written: a change that only moves or renames code leaves them as stored. With STORE=--store, stores them.
fuzz: $(STAMP)
	$(BIN)/python benchmarks/fuzz/run.py --jobs 2 $(FUZZ)

digests: $(STAMP)
	$(BIN)/python -W ignore benchmarks/digests/run.py --corpus $(CORPUS) $(STORE)

# Which axes can vary, found for every case of the corpus and judged by eager; under a minute. AXES="half_of patchify".
axes: $(STAMP)
	$(BIN)/python -W ignore benchmarks/axes/run.py --corpus $(CORPUS) $(AXES)

operators: $(STAMP)
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt expecttest
	$(BIN)/python benchmarks/operators/audit.py

# One process for each model and exporter; goes on where it stopped. BENCH="--only bert-base", "--small", "--again".
bench: $(STAMP)
	$(BIN)/python benchmarks/speed/run.py $(BENCH)

# Models of one size, exported by both of torch's exporters, made dynamic again, compared with eager. REPAIR="unet-size windows".
repair: $(STAMP)
	$(BIN)/python -W ignore benchmarks/repair/round_trip.py $(REPAIR)

# Files of the corpus run by OpenVINO and compared with eager; goes on where it stopped. OPENVINO="-k rnn", "--again".
openvino: $(STAMP)
	$(BIN)/python -W ignore benchmarks/deploy/openvino_corpus.py $(CORPUS) $(OPENVINO)

# Modules with hard-coded sizes: refused with the line, repaired, compared with the model that is meant. REPAIR="view trap-heads".
repair-modules: $(STAMP)
	$(BIN)/python -W ignore benchmarks/repair/repaired_modules.py $(REPAIR)

# Forty models in a batch: whole, killed ten times, on a Ray cluster that loses a node, with one worker and two. BATCH="whole killed".
batch: $(STAMP)
	$(BIN)/python -W ignore benchmarks/batch/run.py $(BATCH)

# Ten families of transformers beside torch's exporter; fifteen architectures of timm. SOURCES="bert gpt2".
sources: $(STAMP)
	$(BIN)/python -W ignore benchmarks/sources/run_families.py $(SOURCES)

sources-timm: $(STAMP)
	$(BIN)/python -W ignore benchmarks/sources/run_timm.py $(SOURCES)

# What our own rungs do not reach, over the corpus, the suites and the families. Hours; goes on where it stopped.
GAPS := $(CURDIR)/.gaps
gaps: $(STAMP)
	mkdir -p $(GAPS)
	test -f $(GAPS)/corpus.jsonl || ANYSHAPE_RUNGS=$(GAPS)/corpus.rungs $(BIN)/python $(CORPUS)/run.py --no-check --plugin benchmarks/gaps/noting_plugin.py:export_corpus -e noting_plugin -o $(GAPS)/corpus.jsonl
	ANYSHAPE_RUNGS=$(GAPS)/families.rungs $(BIN)/python $(FAMILIES)/run.py noting_plugin:export --path $(FAMILIES) --path $(CURDIR)/benchmarks/gaps --out $(GAPS)/families.jsonl --timeout 150
	ANYSHAPE_RUNGS=$(GAPS)/peers.rungs $(BIN)/python $(PEERS)/run.py noting_plugin:export --path $(CURDIR)/benchmarks/gaps --kind dynamic --timeout 120 --out $(GAPS)/peers.jsonl
	$(BIN)/python benchmarks/gaps/list_gaps.py $(foreach suite,corpus families peers,$(suite)=$(GAPS)/$(suite).jsonl=$(GAPS)/$(suite).rungs)

# The tests on another torch, in an environment of its own (several GB of CUDA packages): make compat-torch VERSION=2.15.0
VERSION ?= 2.15.0
OTHER := .torch-$(VERSION)
TESTS ?= tests
compat-torch:
	test -x $(OTHER)/bin/python || $(PYTHON) -m venv $(OTHER)
	grep -Ev '^(torch|setuptools)==' constraints.txt > $(OTHER)/constraints.txt
	$(OTHER)/bin/python -m pip install -q --disable-pip-version-check -c $(OTHER)/constraints.txt "setuptools>=77" torch==$(VERSION)
	$(OTHER)/bin/python -m pip install -q --disable-pip-version-check -c $(OTHER)/constraints.txt --no-build-isolation -e '.[dev]'
	$(OTHER)/bin/python -m pip install -q --disable-pip-version-check -c $(OTHER)/constraints.txt --no-deps timm
	$(OTHER)/bin/python -m pytest -q -n 2 $(TESTS)

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt setuptools torch
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt --no-build-isolation -e '.[dev]'
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt --no-deps timm  # torchvision has no CPU build there
	@touch $@

clean:
	rm -rf $(VENV) build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis corpus-results.jsonl
