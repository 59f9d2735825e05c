# Everything a newcomer needs: `make demo` and `make test` set up what they use.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
DEMO := demo

.PHONY: help demo test test-compiled test-loops test-all test-numpy test-engines lint docs reference pictures bench bench-quick faults fault-calls fuzz fuzz-csv fuzz-dialects soak scaling format clean package test-lowest test-pythons sanitize golden coverage mutants

help:
	@echo "make demo    set up, then fit, transform and evaluate on sample_data"
	@echo "make test    set up, then run the tests, but for those that take minutes together (make test-all)"
	@echo "make test-numpy  set up, then run all that make test runs, without the compiled core"
	@echo "make test-engines  install the newest Dask and Spark (400 MB; Spark needs Java 17), and run their tests (2 minutes)"
	@echo "make coverage  which lines and branches make test runs, in build/coverage.json (15 minutes)"
	@echo "make mutants plant a mistake in each of 300 places, and count those that the tests find (an hour; NUMBER=30 SEED=1)"
	@echo "make lint    set up, then ruff, mypy --strict, import-linter, no circles of imports, and codespell"
	@echo "make package      build the sdist, and the wheel from it, into dist/, and use that in an environment with nothing else"
	@echo "make test-lowest  all tests with the lowest versions that pyproject.toml allows (12 minutes)"
	@echo "make test-pythons a part of the tests with every Python from 3.11 on that is here (4 minutes each)"
	@echo "make docs    set up, then build the site from docs/ and the docstrings into build/site/"
	@echo "make reference  set up, then write what docs/ and share/ say of the code (commands, config, kinds); make pictures: the kernels"
	@echo "make bench   set up, then every figure of speed and memory beside those of scikit-learn (half an hour; bench-quick: 3)"
	@echo "make golden  compare all that the code of BASE (main) and the working tree write, byte by byte (5 minutes)"
	@echo "make faults  kill fit and transform at 200 random moments, and runs over parts at 120, and run them again (half an hour)"
	@echo "make fault-calls  let every call of fit, transform, predict, tune and evaluate on files fail once (7 minutes; needs a C compiler)"
	@echo "make sanitize  the compiled core under the sanitizers of addresses and undefined behaviour, over all shapes (2 minutes)"
	@echo "make fuzz    coverage-guided fuzzing of config, NPY, CSV and model files (4 minutes; FUZZ_SECONDS=600 for ten times that)"
	@echo "make fuzz-csv  20,000 random CSV files beside Python's csv module (a minute; FUZZ_FILES=100000 SEED=1 for more and others)"
	@echo "make fuzz-dialects  3,000 random tables in dialects: read right, or refused with the remedy (two minutes; FUZZ_TABLES=30000 SEED=1)"
	@echo "make scaling  parts in threads, processes and on Dask; ten thousand tiny ones; workers killed (15 minutes)"
	@echo "make soak    a hundred million rows through one process"
	@echo "make format  rewrite the code in the project's format"
	@echo "make clean   remove what the above made"

# A stamp is younger than pyproject.toml and the C files once everything is installed. Python compiles a module when it
# is first imported: to compile all of them here takes a minute. uv takes half the processor time of pip, which installs
# where uv cannot.
SOURCES := pyproject.toml hatch_build.py $(wildcard kafeat/compiled/*.[ch])
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
with = $(BIN)/uv pip install --quiet --python $(BIN)/python $(1) 2> /dev/null || $(PIP) $(1)
# $(call group,NAME): install a dependency group of pyproject.toml, which an old pip cannot read.
group = $(BIN)/python .ci/group.py $(1) > $(VENV)/$(1).txt && { $(call with,-r $(VENV)/$(1).txt $(2)); }
define install
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "kafeat needs Python >= 3.11: make PYTHON=python3.12 ..."; exit 2; }
	$(PYTHON) -m venv $(VENV)
	-$(PIP) --upgrade pip uv
	@echo "installing kafeat into $(VENV); compiling its core takes minutes on a slow machine"
	$(if $(1),$(call group,$(1),--editable .),$(call with,--editable .))
	@touch $@
endef
$(VENV)/.installed: $(SOURCES)
	$(call install,dev)
# The demo needs none of the sixty packages for development.
$(VENV)/.demo: $(SOURCES)
	$(call install,)

demo: $(or $(wildcard $(VENV)/.installed),$(VENV)/.demo)
	@mkdir -p $(DEMO)
	$(BIN)/kafeat fit --config configs/fourier.yaml sample_data/digits.parquet $(DEMO)/map.joblib --label label
	$(BIN)/kafeat inspect $(DEMO)/map.joblib
	$(BIN)/kafeat transform --model $(DEMO)/map.joblib --keep label sample_data/digits.csv $(DEMO)/features.parquet
	$(BIN)/kafeat transform --model $(DEMO)/map.joblib sample_data/digits.npy $(DEMO)/features.npy
	$(BIN)/kafeat evaluate --model $(DEMO)/map.joblib --label label --json $(DEMO)/evaluation.json sample_data/digits.parquet
	@echo "made:" && ls -l $(DEMO)
	@$(BIN)/python -c "import pyarrow.parquet as pq; t = pq.read_table('$(DEMO)/features.parquet'); print(t.num_rows, 'rows,', t.num_columns, 'columns:', ', '.join(t.column_names[:5]), '...')"

# A worker more than cores, as tests wait for processes, and no more threads than that. Workers take neighbouring tests, so
# that a fixture of a module is made once. Compiled modules are kept, whatever the environment says: hundreds of tests start a process that imports them.
ALONE := PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest
PYTEST := $(ALONE) -n $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1) --dist worksteal

# What has a compiled loop is tested without it as well, but for tests marked `one_core`; `make test-all` takes those and
# every kind, `make test-numpy` everything.
NUMPY := tests/compiled tests/contract/test_casts.py tests/contract/test_sparse_product.py \
	tests/maths/fourier/test_cosines.py tests/maths/kernels \
	tests/samplers/test_fourier.py tests/samplers/test_nystroem.py tests/samplers/test_homogeneous.py \
	tests/maths/test_sketch_loop.py tests/maths/test_content_folds.py tests/samplers/test_tensor_sketch.py tests/samplers/test_trees.py \
	tests/samplers/test_projection.py \
	tests/scalers/test_quantile.py tests/scalers/test_power.py
test: test-compiled test-loops
test-compiled: $(VENV)/.installed
	$(PYTEST) --hypothesis-profile=quick -m "not slow"
# These take as long as a worker takes to collect them, so they need no second one.
test-loops: $(VENV)/.installed
	KAFEAT_COMPILED=0 $(ALONE) --hypothesis-profile=quick -m "not slow and not one_core" $(NUMPY)

test-all: $(VENV)/.installed
	TESTS_SIZES=large $(PYTEST)
	TESTS_SIZES=large KAFEAT_COMPILED=0 $(PYTEST) $(NUMPY) tests/samplers tests/scalers tests/test_contract.py

test-numpy: $(VENV)/.installed
	KAFEAT_COMPILED=0 $(PYTEST) --hypothesis-profile=quick -m "not slow"

test-engines: $(VENV)/.installed
	$(PIP) --editable '.[dask,spark]'
	$(PIP) --upgrade 'dask[dataframe]' distributed 'pyspark[sql]'
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest tests/engines

# The suite of `make test`, measured; commands in processes of their own count too. TESTS="tests/io" measures these alone.
COVERED := PYTHONPATH=$(CURDIR)/.ci COVERAGE_PROCESS_START=$(CURDIR)/pyproject.toml COVERAGE_FOLDER=$(CURDIR)/build/coverage
TESTS ?=
coverage: $(VENV)/.installed
	rm -rf build/coverage && mkdir -p build/coverage
	-$(COVERED) $(PYTEST) -p tests_by_line --hypothesis-profile=quick -m "not slow" $(TESTS)
	-$(COVERED) KAFEAT_COMPILED=0 $(PYTEST) -p tests_by_line --hypothesis-profile=quick -m "not slow and not one_core" $(or $(TESTS),$(NUMPY))
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage json --quiet --ignore-errors -o build/coverage.json
	@$(BIN)/coverage report --ignore-errors --sort=cover --skip-covered | sed -n '1,32p;$$p'

NUMBER ?= 300
mutants: $(VENV)/.installed
	test -e build/coverage/data || $(MAKE) coverage
	$(BIN)/python benchmarks/mutants.py --number $(NUMBER) --seed $(SEED)

package: $(VENV)/.installed
	VENV=$(VENV) .ci/package

# Outside of the project's environment; what needs other packages is skipped.
TOOLS := pytest==8.2 pytest-timeout==2.3.1 pytest-xdist==3.6.1 hypothesis==6.100 pandas==2.2.2 polars==1.9 mpmath==1.3.0 'pyparsing<3.3'
test-lowest:
	rm -rf .venv-lowest && $(PYTHON) -m venv .venv-lowest
	$(PYTHON) .ci/lowest.py evaluate dask onnx sklearn trees > .venv-lowest/lowest.txt
	.venv-lowest/bin/pip install --quiet --disable-pip-version-check -r .venv-lowest/lowest.txt $(TOOLS)
	.venv-lowest/bin/pip install --quiet --disable-pip-version-check --no-deps --editable .
	OPENBLAS_NUM_THREADS=1 .venv-lowest/bin/python -m pytest -n 2

QUICK := tests/config tests/io tests/scalers tests/samplers tests/model/test_artifact.py tests/model/test_formats.py tests/model/test_feature_map.py
test-pythons:
	.ci/pythons $(QUICK)

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python .ci/circles.py
	$(BIN)/python .ci/tics.py
	$(BIN)/codespell

docs: $(VENV)/.installed
	$(call group,docs)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo "made: build/site/index.html"

reference: $(VENV)/.installed
	$(BIN)/python docs/make_reference.py

pictures: $(VENV)/.installed
	$(BIN)/python docs/make_pictures.py

bench: $(VENV)/.installed
	$(call group,bench)
	$(BIN)/python benchmarks/bench.py

# Smaller inputs, three rounds, and the maps that are used most.
bench-quick: $(VENV)/.installed
	$(call group,bench)
	$(BIN)/python benchmarks/bench.py --quick --only "start-up|whole job|d = 54|scaling"

# What the code of BASE and the working tree write, compared: ONLY='^formats/' runs some of the cases.
BASE ?= main
golden: $(VENV)/.installed
	$(BIN)/python benchmarks/golden.py --base $(BASE) --only '$(ONLY)'

faults: $(VENV)/.installed
	$(BIN)/python benchmarks/faults.py
	$(BIN)/python benchmarks/orphans.py

FAULTS ?= --memory 300
fault-calls: $(VENV)/.installed
	$(BIN)/python benchmarks/fault_calls.py $(FAULTS)

sanitize: $(VENV)/.installed
	$(BIN)/python benchmarks/sanitize.py

FUZZ_SECONDS ?= 60
fuzz: $(VENV)/.installed
	$(call group,fuzz)
	$(BIN)/python benchmarks/fuzz.py --seconds $(FUZZ_SECONDS)

FUZZ_FILES ?= 20000
SEED ?= 0
fuzz-csv: $(VENV)/.installed
	$(BIN)/python benchmarks/fuzz_csv.py --files $(FUZZ_FILES) --seed $(SEED)

FUZZ_TABLES ?= 3000
fuzz-dialects: $(VENV)/.installed
	$(BIN)/python benchmarks/fuzz_dialects.py --files $(FUZZ_TABLES) --seed $(SEED)

scaling: $(VENV)/.installed
	$(BIN)/python benchmarks/scaling.py

soak: $(VENV)/.installed
	$(BIN)/python benchmarks/soak.py

format: $(VENV)/.installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .venv-lowest .venv-python-* $(DEMO) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
