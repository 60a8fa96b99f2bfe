# The front door. Every target does its own set-up (tools/setup) and can be repeated.
#   make demo | demo-train | demo-processes | test | docs-test | build | bench | format | duplicates | sanitize | sanitize-files | faults | fuzz | clean
.DEFAULT_GOAL := help
.PHONY: help build test docs-test demo demo-train demo-processes bench bench-full bench-shared bench-field bench-kernels bench-train bench-processes train-accuracy format duplicates sanitize sanitize-files faults fuzz clean

jobs := $(shell nproc 2>/dev/null || echo 2)
python := .venv/bin/python
release := build/release
checked := build/sanitize-files
# Threads of libtorch spin for milliseconds where they wait, which takes the processors from tests that run beside: two
# unit tests of 7 s together took 79.
beside := OMP_WAIT_POLICY=PASSIVE
duplicates := --min-lines 10 --noSymlinks --exitCode 1 --reporters console \
  --ignore '**/*_test.cpp,**/*_cases.cpp,**/*.md,**/*.txt,**/*.json' lissome bench examples tools cmake

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 20

build: ## the program (build/lissome) and the Python package (build/python)
	@tools/setup build
	@tools/build

test: ## build, unit tests, then whole commands, parity with Python, structure, documentation
	@tools/setup test
	@tools/build all
	$(beside) ctest --test-dir $(release) --output-on-failure --no-tests=error --parallel $(jobs)
	$(beside) $(python) -m pytest tests -m 'not alone' --numprocesses $(jobs) --dist loadfile --no-loadscope-reorder
	$(python) -m pytest tests -m alone

docs-test: ## every command and example of README.md and docs/
	@tools/setup test
	@tools/build all
	$(python) -m pytest tests/readme

demo: ## train, optimize and report two real models
	@tools/setup demo
	@tools/build
	@examples/run_demo

demo-train: ## train a real model beside plain PyTorch: throughput, memory, accuracy
	@tools/setup demo
	@tools/build
	@examples/run_demo_train

demo-processes: ## train the same model by two processes, under two launchers, one of them killed on the way
	@tools/setup demo
	@tools/build
	@examples/run_demo_processes

bench: ## compare with PyTorch, Inductor, ONNX Runtime and OpenVINO, rounds interleaved
	@tools/setup demo
	@tools/build
	@bench/run --only net,minilm --engines eager,lissome
	@bench/run

bench-full: ## the same with batch 8, one thread and TorchScript too; goes on where it was interrupted
	@tools/setup demo
	@tools/build
	@bench/run --full

bench-shared: ## what lissome, ONNX Runtime, OpenVINO and eager PyTorch lose beside other work on the same processors
	@tools/setup demo
	@tools/build
	@bench/run --shared

bench-field: ## compare over the field: architectures that the kernels were not made for; FLAGS="--only open --batch 8"
	@tools/setup demo
	@tools/build lissome_bench_worker lissome_bench_prepare
	@bench/install_peers build/bench/peers
	@build/bench/peers/bin/python bench/field/compare.py $(FLAGS)

bench-kernels: ## time each kernel beside libtorch, with its share of the machine's limit; NAME=softmax for one
	@tools/setup test
	@tools/build run_cases
	@$(python) bench/kernels.py $(NAME)

bench-train: ## compare steps of training with eager PyTorch and torch.compile, rounds interleaved
	@tools/setup demo
	@tools/build lissome_training_worker
	$(python) bench/training_models.py build/bench/training
	$(python) bench/compare_training.py build/bench/training

format: ## clang-format over all C++ files
	@tools/setup format
	git ls-files --cached --others --exclude-standard '*.cpp' '*.h' '*.cu' | xargs clang-format-19 -i

bench-processes: ## what --compress saves and --bucket hides when two processes train over a shaped link (needs root)
	@tools/setup demo
	@tools/build
	$(python) bench/compress_gradients.py
	$(python) bench/overlap_gradients.py

train-accuracy: ## train the demo's net with three seeds, by lissome and by PyTorch, and compare accuracy and loss
	@tools/setup demo
	@tools/build
	$(python) bench/train_accuracy.py

duplicates: ## places outside of tests that share ten equal lines, or a hundred equal tokens of code; none is allowed
	@tools/setup duplicates
	@.cache/jscpd/node_modules/.bin/jscpd --mode mild --min-tokens 20 $(duplicates)
	@.cache/jscpd/node_modules/.bin/jscpd --mode weak --min-tokens 100 $(duplicates)

sanitize: ## unit tests under the address and undefined-behaviour sanitizers; what runs in parallel under the thread sanitizer
	@tools/setup test
	@LISSOME_PRESET=asan-ubsan tools/build all
	ctest --preset asan-ubsan --no-tests=error
	@LISSOME_PRESET=tsan tools/build test_base test_measure test_data test_runtime
	ctest --preset tsan --no-tests=error --tests-regex 'base|measure|data|runtime'

# The seeds are plans of the kernels that the preset builds.
sanitize-files: ## the same over what reads files: readers, gates, mutated plans, programs and graphs
	@tools/setup test
	@tools/build lissome write_seed_plans
	@LISSOME_ISA=avx2 tests/fuzz/make_quick_seeds $(checked)/seeds
	@LISSOME_PRESET=sanitize-files tools/build replay_inputs
	@tests/fuzz/replay $(checked) $(checked)/seeds/inputs 100

faults: ## plant faults in statistics, gate, observers and rounding, one by one; unit tests have to notice each
	@tools/setup test
	@$(python) tests/faults/plant_faults.py

fuzz: ## what reads files under libFuzzer, half a minute each; plans, programs and graphs run what they read
	@tools/setup fuzz
	@tools/build lissome write_seed_plans
	@tests/fuzz/make_quick_seeds build/fuzz/quick
	@mkdir -p build/fuzz/seeds && cp -r build/fuzz/quick/inputs/. build/fuzz/seeds
	@LISSOME_PRESET=fuzz tools/build all
	@LISSOME_PRESET=fuzz-torch tools/build fuzz_plan fuzz_program fuzz_graph fuzz_prepare
	@tests/fuzz/run 30

clean: ## remove what was built (.venv stays)
	rm -rf build
