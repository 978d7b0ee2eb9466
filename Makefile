# Two commands matter to a newcomer: `make demo` and `make test`. Both set up what they need.
SHELL := /bin/bash
PY := .venv/bin/python
.DEFAULT_GOAL := help
export PYTHONDONTWRITEBYTECODE :=  # without byte code each process compiles what it imports, and each worker all tests
.PHONY: help setup demo test proof proof-tests fuzz sim sim-bugs lint run bench bench-recall bench-understanding crash format types lock

help:  ## what there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 15

setup:  ## virtual environment, locked dependencies, the local Supabase
	@bash .ci/setup

demo: setup  ## two devices and a cloud on this machine, live (ONCE=1 ends by itself; LAN=1: without the cloud)
	@$(PY) -m tests.demo $(if $(ONCE),--once) $(if $(LAN),--lan)

test: setup  ## the tests: Python in parallel and random order, then Node
	@failed=0; \
	$(PY) -m pytest -n 3 --dist worksteal || failed=1; \
	node --test --test-concurrency=2 --test-reporter=dot electron-snippets/test/*.test.js && echo "electron-snippets: passed" || failed=1; \
	exit $$failed

proof: setup  ## all that is exhaustive, for hours: proof-tests, sim SEEDS=1000, sim-bugs, crash, fuzz; one summary
	@failed=0; summary=; \
	for part in proof-tests "sim SEEDS=1000" sim-bugs crash fuzz; do \
	  begin=$$SECONDS; outcome=passed; \
	  $(MAKE) --no-print-directory $$part || { outcome=FAILED; failed=1; }; \
	  summary+="$$(printf '%-7s %-16s %6d s' $$outcome "$$part" $$((SECONDS - begin)))"$$'\n'; \
	done; \
	printf '\nproof\n%s' "$$summary"; exit $$failed

proof-tests: setup  ## the tests that `make test` leaves out: SQL mutants, planted bugs; all examples of Hypothesis
	@$(PY) -m pytest -n 3 --dist worksteal --hypothesis-profile=proof -m "proof or hypothesis"

fuzz: setup  ## hostile input, minutes long: ONLY=frames,markdown… SEED=n AT=n COUNT=n
	@$(PY) -m tests.fuzz $(if $(ONLY),--only $(ONLY)) $(if $(SEED),--seed $(SEED)) $(if $(AT),--at $(AT)) $(if $(COUNT),--count $(COUNT))

lint: setup  ## style, types, imports, size limits, class names
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check -q .
	@$(PY) -m mypy
	@.venv/bin/lint-imports --no-logo
	@$(PY) -m tests.size_limits sync bridge tests
	@for file in electron-snippets/*.js electron-snippets/test/*.js electron-snippets/tools/*.mjs tests/demo/*.mjs tests/acceptance/*.mjs; do node --check $$file || exit 1; done
	@for project in main page; do node tests/types/node_modules/typescript/bin/tsc -p tests/types/tsconfig.$$project.json || exit 1; done
	@echo "lint: passed"

sim: setup  ## SEEDS=5000 simulated histories under faults, OF=lan,away only those; RECORD=1 records it; SEED=7 repeats one, SHRINK=1 TRACE=1
	@$(PY) -m tests.simulation $(if $(SEED),--seed $(SEED),--seeds $(or $(SEEDS),500)) $(if $(FIRST),--first $(FIRST)) $(if $(OF),--of $(OF)) \
	  $(if $(STEPS),--steps $(STEPS)) $(if $(KINDS),--kinds $(KINDS)) $(if $(FUSES),--fuses $(FUSES)) \
	  $(if $(SHRINK),--shrink) $(if $(TRACE),--trace) $(if $(JSON),--json) $(if $(RECORD),--record)

sim-bugs: setup  ## plant known bugs and simulate until every one of them is detected
	@$(PY) -m tests.simulation.bug_search $(if $(MOST),--most $(MOST))

run: setup  ## the plain sidecar on your own file, without a cloud
	@.venv/bin/xiaobai-memory serve

bench: setup  ## speed beside floors and peers: RECORD=1 keeps it (quiet machine!), PEERS=1 or a Python 3.12, GROWTH=n
	@bash tests/bench/setup $(PEERS)
	@$(PY) -m tests.bench $(if $(RECORD),--record) $(if $(GROWTH),--growth $(GROWTH))

bench-recall: setup  ## what recall finds and how fast: DATA=folder of the labelled sets, COUNT=100000
	@$(PY) -m tests.bench.bench_recall $(DATA)

bench-understanding: setup  ## what is read in labelled messages: DATA=folder of the labelled sets, VERBOSE=1
	@$(PY) -m tests.bench.bench_understanding $(DATA) $(if $(VERBOSE),--verbose)

fit-understanding: setup  ## fit the weights of the scorer on tests/data/statements: FIGURES=1 CURVE=1 (minutes each)
	@OMP_NUM_THREADS=1 $(PY) -m tests.fit_understanding $(if $(FIGURES),--figures) $(if $(CURVE),--curve)

crash: setup  ## every crash point, torn log, damaged database and broken disk (half an hour): ONLY=word RESUME=1 JOBS=2
	@$(PY) -m tests.crash --jobs $(or $(JOBS),2) $(if $(ONLY),--only "$(ONLY)") $(if $(RESUME),--resume)
	@STORE_PROCESSES=20 STORE_EVENTS=500 STORE_AT_ONCE=50 STORE_KILLS=30 $(PY) -m pytest tests/acceptance/log/test_event_store.py

format: setup  ## write the style the linter asks for
	@.venv/bin/ruff check -q --fix . ; .venv/bin/ruff format -q .

types: setup  ## the TypeScript types of the methods, from the methods table
	@.venv/bin/xiaobai-memory serve --openrpc | node electron-snippets/tools/generate-types.mjs > electron-snippets/types.d.ts

lock:  ## pin the newest versions that fit, with hashes and without addresses
	@uv pip compile -q pyproject.toml --group dev --universal --python-version 3.11 --upgrade \
	  --generate-hashes --no-emit-index-url --no-header -o requirements.lock
	@$(PY) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["embeddings"], sep="\n")' \
	  | uv pip compile -q - --universal --python-version 3.11 --upgrade \
	  --generate-hashes --no-emit-index-url --no-header -o requirements-embeddings.lock
	@$(PY) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["encryption"], sep="\n")' \
	  | uv pip compile -q - --universal --python-version 3.11 --upgrade \
	  --generate-hashes --no-emit-index-url --no-header -o requirements-encryption.lock
	@uv pip compile -q --group bench --universal --python-version 3.11 --upgrade \
	  --generate-hashes --no-emit-index-url --no-header -o requirements-bench.lock
	@uv pip compile -q --group peers --python-version 3.12 --upgrade \
	  --generate-hashes --no-emit-index-url --no-header -o requirements-peers.lock
