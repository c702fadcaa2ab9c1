# make run      set up, serve examples/assistant, print an answer and go on serving
# make test     set up, check the code, fetch the programs that tests need, and run every test in parallel workers
# make check    lint, types, import rules, generated files, Dockerfiles, workflows
# make lint     the checks among these that read the sources alone
# make e2e      the end-to-end tests alone: a real Kubernetes cluster on this machine, as root
# make fuzz     fuzz what reads requests and files of models, 20 s a target: FUZZ='TARGET --seconds N'
# make compile  compile the server's hot modules by mypyc, where there is a C compiler
# make gpu      the tests of a real GPU, which make test skips where there is none
# make clean    delete the environment and what was compiled
# make help     print this
#
# Benchmarks. BENCH='--quick' and the like pass options; python -m benchmarks.NAME --help lists them.
# make bench-triton    Argosy against NVIDIA's Triton
# make bench-peers     Argosy against MLServer, LitServe, BentoML and Ray Serve, each in an environment of its own
# make bench-stages    the cost of each stage of a request's path, in one process, compiled and not
# make bench-engines   engines of ONNX Runtime and AOTInductor against the files that they are made from
# make bench-language  language models on vLLM: Argosy against the engine alone and vllm serve (argosy engines install vllm)
# make bench-scaling   Argosy's scaling against HPA's, KEDA's and Knative's, on seeded and real traces
# make bench-planning  the cost of a plan of 800 to 8,000 GPUs, with capacity for all models and without
# make bench-packing   GPUs of a plan against the fewest that are proven and against first-fit, best-fit and worst-fit
# make bench-scale     a server at rest, and with 1,000 models and 10,000 idle connections
# make bench-scrapes   the cost of measuring a server of 1,000 models, for the server and for the operator
# make bench-soak      loads, crashes, cancellations and streams for minutes: wrong, lost and leaked
# make bench-gpu       BERT's shape on a GPU, against a bare torch loop and Triton's Python backend
#
# A test whose program cannot be fetched (Kubernetes, NVIDIA's Triton, Helm …) is skipped with the reason and the way to run it.
# CI=true make test, as root, fetches every program, if need be by building Kubernetes from Debian's sources, or fails.
PYTHON ?= python3
# One more than cores: tests of the cluster wait more than they work.
WORKERS ?= 3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
export UV_CONFIG_FILE := $(CURDIR)/$(VENV)/uv.toml
# Tests that lead through compiled modules. Other backends' instances, the rules of configurations, the making of
# environments, and what a server loads are Python in both forms.
COMPILED_PATH := tests/differential $(addprefix tests/runtime/,backends/python execution frontends/grpc frontends/http \
    frontends/test_frontends_fuzz.py http2 language protocol scheduling telemetry tensors test_compiled.py \
    test_fifo_cache.py test_histograms.py) \
  $(foreach name,answers_after_return call_arguments counts divided_steps execution graceful_end hostile_models \
    large_tensors lifecycle_exits lost_instances memory_comes_back model_calls overlapping owned_tensors rate_limiter \
    response_cache sender_races sequence_backends sequences shadow sizes streaming_calls threads traces variants version_traffic, \
    tests/runtime/service/test_$(name).py) \
  $(foreach name,failed_loads flags inplace load_errors namespaces start, \
    --ignore=tests/differential/test_differential_$(name).py)
SUITE = ARGOSY_FORM=$$($(BIN)/python hatch_build.py form) $(BIN)/python -m tests.again suite
PURE = PYTHONPATH=$(CURDIR)/build/pure ARGOSY_FORM=pure $(BIN)/python -m tests.again pure
# Where nothing may be skipped, the modules that mypyc compiles have to be compiled.
export ARGOSY_COMPILE ?= $(if $(filter true,$(CI)),1)

.PHONY: setup help compile run test check lint programs suite pure e2e gpu fuzz bench-triton bench-peers bench-scaling bench-scale bench-soak bench-scrapes bench-planning bench-packing bench-stages bench-gpu bench-engines bench-language clean

setup: compile

compile: $(STAMP)
	@$(BIN)/python hatch_build.py
	@# A server starts with half the CPU time, even where Python may write no bytecode itself.
	@$(BIN)/python -m compileall -q operator runtime

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Argosy needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 …"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "Python's venv module is missing: apt-get install python3-venv"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@# uv does in seconds what pip does in minutes. It finds packages where pip finds them.
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'uv>=0.13'
	@$(BIN)/python runtime/argosy_common/pip_settings.py > $(UV_CONFIG_FILE)
	$(BIN)/uv pip install --quiet --python $(BIN)/python --compile-bytecode --editable '.[dev]'
	@# Helm's own code, for the chart's tests. The wheel runs on 3.11 although it asks for 3.12.
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --ignore-requires-python 'helm-sdkpy>=0.1.32' \
	  || echo "helm-sdkpy is not available here: the tests that need it are skipped, or fail under CI=true"
	@touch $(STAMP)

help:
	@sed -n '/^#/!q; s/^# \{0,1\}//p' $(firstword $(MAKEFILE_LIST))

run: setup
	$(BIN)/python examples/assistant/run.py

check: lint setup
	$(BIN)/argosy crds --check
	$(BIN)/python -m docs.reference --check
	$(BIN)/hadolint operator/Dockerfile runtime/Dockerfile
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/bug.yml .github/ISSUE_TEMPLATE/wish.yml

# What reads the sources alone, and may run while they are compiled.
lint: $(STAMP)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

# Before the tests, whose timeouts are shorter than a download or a build.
programs: $(STAMP)
	$(BIN)/python -m tests.programs

# The suite runs on compiled modules where there is a compiler; tests that use these modules run again on their sources.
# Two of `programs`, `lint` and `compile` run at a time: each mostly uses one core.
# What failed in parallel with others runs again, alone (tests/again.py).
test:
	@rm -rf build/tests
	@$(MAKE) --no-print-directory --jobs=2 programs check
	@$(MAKE) --no-print-directory --jobs=2 --keep-going suite pure \
	  || { $(SUITE) --alone; suite=$$?; $(PURE) --alone && exit $$suite; }

suite:
	$(SUITE) --numprocesses=$(WORKERS)

# What asks the real Triton alone has no second form. The output is printed at the end, because it runs in parallel with
# the suite, whose lines show the progress.
pure:
	@$(BIN)/python hatch_build.py pure
	@$(BIN)/python -m compileall -q build/pure
	@$(PURE) --numprocesses=1 -m 'not triton' $(COMPILED_PATH) \
	  > build/pure.txt 2>&1; failed=$$?; cat build/pure.txt; exit $$failed

e2e: setup programs
	$(BIN)/python -m pytest e2e

bench-triton: setup
	$(BIN)/python -m benchmarks.triton $(BENCH)

bench-peers: setup
	$(BIN)/python -m benchmarks.peers $(BENCH)

bench-scale: setup
	$(BIN)/python -m benchmarks.scale $(BENCH)

bench-soak: setup
	$(BIN)/python -m benchmarks.soak $(BENCH)

bench-scrapes: setup
	$(BIN)/python -m benchmarks.scrapes $(BENCH)

bench-planning: setup
	$(BIN)/python -m benchmarks.planning $(BENCH)

bench-packing: setup
	$(BIN)/python -m benchmarks.packing $(BENCH)

bench-engines: setup
	$(BIN)/python -m benchmarks.engines $(BENCH)

bench-language: setup
	$(BIN)/python -m benchmarks.language $(BENCH)

bench-scaling: setup
	$(BIN)/python -m benchmarks.scaling $(BENCH)

bench-stages: setup
	$(BIN)/python hatch_build.py pure
	$(BIN)/python -m benchmarks.stages $(BENCH)

gpu: setup
	$(BIN)/python -m pytest tests/gpu

bench-gpu: setup
	$(BIN)/python -m benchmarks.gpu $(BENCH)

# On sources: what is compiled shows no coverage. atheris comes with the first run.
fuzz: setup
	@$(BIN)/python -c 'import atheris' 2>/dev/null || $(BIN)/uv pip install --quiet --python $(BIN)/python --editable '.[fuzz]'
	$(BIN)/python hatch_build.py pure
	PYTHONPATH=$(CURDIR)/build/pure $(BIN)/python -m tests.fuzz $(FUZZ)

clean:
	rm -rf $(VENV) .argosy build
	find runtime -name '*.so' -delete
