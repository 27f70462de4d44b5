# The front door. Every target installs what it needs (Debian packages, scripts/deps) and can be the first command after a clone.
#
#   make build    the program, optimised: build/culprit
#   make deb      the program and the library as a Debian package: build/culprit_VERSION_ARCHITECTURE.deb
#   make wheel    the Python package with the program: dist/*.whl (PYTHONS="python3.10 python3.12": one each), and dist/*.tar.gz, which pip builds
#   make demo     records a small server, disturbs it, records it again, and says what changed
#   make test     unit, golden and end-to-end tests under AddressSanitizer and UndefinedBehaviorSanitizer
#   make test-real DIR=…  trials on the vLLM and SGLang servers installed in DIR, started by SERVE (default DIR/serve), an hour or more; ONLY="vllm python" some of
#                 them, SHORT=1 their shortest form: see scripts/test-real
#   make test-wheel  the wheels in clean environments of every Python that is there, built from the sdist, and on a bare Debian 12; needs root
#   make test-torch DIR=…  the Python package beside PyTorch, of the virtual environment DIR/torch
#   make calibrate DIR=…  how often `culprit diff` is wrong about recordings of the same and finds known slowdowns: docs/accuracy.md; an hour or more
#   make accuracy  how often the first cause is right, beside the reference's score: on generated traces, and with DIR=… on tinyserve, redis, nginx, postgres, the servers
#                 and a training loop of PyTorch in DIR (hours; root); the answers into the folder INTO (default: accuracy), the tables into docs/accuracy.md. Parts: accuracy-programs, accuracy-servers
#   make check    the optimised build, formatting, lint, clang-tidy, and the tests under ThreadSanitizer
#   make fuzz     every fuzz target for FUZZ_SECONDS (default 300)
#   make bench    speed and memory against the machine's limits; BENCH_MAX=6 stops at 10^6 slices
#   make clean    removes everything that was built
#
# On a system without apt, install the packages of `scripts/deps --list build test` by other means and use `make DEPS= ...`.

MAKEFLAGS += --no-print-directory
DEPS ?= scripts/deps
JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 300
BENCH_MAX ?= 7
ACCURACY = $(or $(INTO),accuracy)

# Names the packages of groups: $(call need,build test). An empty DEPS leaves the step out.
need = $(if $(DEPS),@$(DEPS) $(1),@:)

.DEFAULT_GOAL := build
.PHONY: deps build deb wheel demo test test-real test-wheel test-torch calibrate accuracy accuracy-programs accuracy-servers check format lint tidy tsan fuzz bench clean

deps:
	$(call need,build test)

build:
	$(call need,build)
	@cmake --preset release >/dev/null
	@cmake --build --preset release -j $(JOBS)

deb: build
	$(call need,package)
	@cd build && cpack -G DEB

wheel:
	$(call need,build package)
	@scripts/make-wheel $(PYTHONS)

demo: build
	@scripts/demo build

test:
	$(call need,build test)
	@scripts/nvtx-headers
	@scripts/ready-set-sources
	@cmake --preset asan >/dev/null
	@cmake --build --preset asan -j $(JOBS)
	@scripts/python-env build-asan
	@scripts/run-tests build-asan -j $(JOBS)

test-real: build
	@scripts/test-real $(ONLY) --build build --servers $(or $(DIR),$(error give DIR=, the folder with the servers)) --serve $(or $(SERVE),$(DIR)/serve) $(if $(SHORT),--short)

test-wheel: build
	$(call need,package trial)
	@scripts/trial-wheel --all

test-torch: build
	@scripts/make-wheel $(or $(DIR),$(error give DIR=, the folder with the virtual environment torch))/torch/bin/python
	@rm -rf build-python/torch
	@$(DIR)/torch/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --target build-python/torch --no-index --find-links dist culprit
	@PYTHONPATH=build-python/torch $(DIR)/torch/bin/python scripts/test-torch
	@scripts/trial-compiled --build build --servers $(DIR)

calibrate: build
	@scripts/calibrate record tinyserve redis --into $(or $(INTO),calibration) --build build
	@scripts/calibrate record torch vllm sglang --into $(or $(INTO),calibration) --build build --servers $(or $(DIR),$(error give DIR=, the folder with the servers)) --serve $(or $(SERVE),$(DIR)/serve)
	@scripts/calibrate report $(or $(INTO),calibration) --build build

accuracy: build
	@mkdir -p $(ACCURACY)
	@rm -f $(ACCURACY)/causes.json $(ACCURACY)/inside.json
	@scripts/trial-causes --first-seed 200 --build build --json $(ACCURACY)/causes.json
	@scripts/trial-causes --inside --first-seed 300 --seeds 10 --build build --json $(ACCURACY)/inside.json
	@scripts/accuracy-tables causes=$(ACCURACY)/causes.json inside=$(ACCURACY)/inside.json
	@if [ -n "$(DIR)" ]; then rm -f $(ACCURACY)/tinyserve.json $(ACCURACY)/programs.json $(ACCURACY)/servers.json $(ACCURACY)/training.json && $(MAKE) accuracy-programs accuracy-servers; fi

# Each of them appends to what it found before, so that a trial that was interrupted goes on.
accuracy-programs: build
	$(call need,programs)
	@mkdir -p $(ACCURACY)
	@scripts/trial-verdicts --faults normal,cpu,cgroup-throttle,normal,memory-bandwidth,disk,normal,pause,gil --runs 20 --build build --json $(ACCURACY)/tinyserve.json
	@scripts/accuracy-tables tinyserve=$(ACCURACY)/tinyserve.json
	@scripts/trial-pairs redis nginx postgres postgres-writes node mariadb memcached --kinds normal,cpu,disk,quota,nice,fewer,lock,plan --build build --json $(ACCURACY)/programs.json
	@scripts/accuracy-tables programs=$(ACCURACY)/programs.json

accuracy-servers: build
	$(call need,programs)
	@mkdir -p $(ACCURACY)
	@scripts/trial-pairs vllm sglang --kinds normal,cpu,second,normal,gil,bandwidth,quota,normal,clients,prompts,reader,normal,kv,log,disk --build build --json $(ACCURACY)/servers.json \
	  --servers $(or $(DIR),$(error give DIR=, the folder with the servers)) --serve $(or $(SERVE),$(DIR)/serve)
	@scripts/accuracy-tables servers=$(ACCURACY)/servers.json
	@scripts/trial-pairs training --kinds normal,cpu,input,normal,function,disk,quota,normal,gc,bandwidth,bursts,normal,signals,affinity,nice,batch,accumulate --build build --json $(ACCURACY)/training.json \
	  --servers $(DIR) --serve $(or $(SERVE),$(DIR)/serve)
	@scripts/accuracy-tables training=$(ACCURACY)/training.json

check: build lint format tidy tsan

lint:
	$(call need,test)
	@scripts/lint

format:
	$(call need,check)
	@scripts/format --check

tidy:
	$(call need,build test check)
	@cmake --preset debug >/dev/null
	@cmake --build --preset debug -j $(JOBS) --target culprit_perfetto_proto culprit_bpf_programs culprit_bpf_annotate # headers
	@scripts/tidy build-debug $(JOBS)

tsan:
	$(call need,build test)
	@scripts/nvtx-headers
	@cmake --preset tsan >/dev/null
	@cmake --build --preset tsan -j $(JOBS)
	@scripts/run-tests build-tsan -j $(JOBS)

fuzz:
	$(call need,build fuzz)
	@cmake --preset fuzz >/dev/null
	@cmake --build --preset fuzz -j $(JOBS)
	@scripts/fuzz build-fuzz $(FUZZ_SECONDS)

bench:
	$(call need,build bench)
	@cmake --preset bench >/dev/null
	@cmake --build --preset bench -j $(JOBS)
	@scripts/bench --build build-bench --max $(BENCH_MAX)
	@scripts/bench-record --build build-bench
	@scripts/bench-attach --build build-bench
	@build-bench/nvtx_cost
	@setsid -w build-bench/record_overhead --json bench-results/$$(date +%Y-%m-%dT%H%M%S)-record-overhead.json

clean:
	rm -rf build build-asan build-bench build-debug build-fuzz build-python build-tsan
