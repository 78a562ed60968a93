# Everything a checkout can do. `make` alone lists it.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
EMULATOR := .venv-emulator
OPENAPI := .venv-openapi
SITE := .venv-docs
SUPPLY := .venv-supply
LOWEST := .venv-lowest
FOLDERS := . client common testing infra/cdk local
PROJECTS := $(addsuffix /pyproject.toml,$(FOLDERS))
# The distributions, with all that is optional.
DISTRIBUTIONS := '.[cloud,local,dev,tracing]' 'client[aws,archive,live,mcp,signatures]' common 'testing[moto]' infra/cdk local
NAMES := duetime duetime-client duetime-common duetime-testing duetime-cdk duetime-local
SAY = @printf '\033[1m==>\033[0m %s\n'
SOURCES := $(shell find layers infra/cdk/duetime_cdk/layers examples/handlers examples/billing -type f \( -name '*.py' -o -name '*.txt' -o -name '*.mjs' -o -name '*.json' \) 2>/dev/null)
CONSOLE := $(shell find console/src -type f -not -name schema.d.ts 2>/dev/null)
BROWSER := build/.browser
# Simulations walk sets, whose order Python draws anew for each process: a red test can be run again only if it does not.
PYTEST := PYTHONHASHSEED=0 $(BIN)/python -m pytest
# Three processes for two processors: the one with the deployed stack waits for most of its time.
SPREAD := -n 3 --no-loadscope-reorder

# uv finds the environment by this name, whatever is activated in the caller's shell.
export VIRTUAL_ENV := $(CURDIR)/$(VENV)

# The tests start hundreds of processes: without bytecode each of them would compile all of its libraries anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup console run demo check format test tests test-slow test-deployed test-lowest flaky docs docs-site docs-serve docs-tools screenshots console-figures openapi openapi-tools simulate nightly pairs mutants files-entered fuzz fuzz-deployed kill load bench workflows wheels release lock sbom audit clean distclean

help: ## list all targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  \033[1m%-14s\033[0m %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(VENV)/.installed node_modules/.installed $(EMULATOR)/.installed build/.layers functions/console/static/index.html $(BROWSER) ## install everything (a second call takes a second)
	@:

run: setup ## run the whole stack on this machine, with a demo; Ctrl-C stops it
	@$(BIN)/duetime local up

demo: setup ## run the demo only, then stop
	@$(BIN)/duetime local demo --exit

console: functions/console/static/index.html ## build the web console
	@:

test: setup ## check the code and run the tests, side by side: the checks take one processor for two minutes
	@$(MAKE) --no-print-directory -j 2 check tests

tests: setup ## run the tests without the checks
	$(SAY) 'Running the tests'
	@$(PYTEST) $(SPREAD) --durations=10

test-slow: setup openapi-tools ## run the tests that take long, and each property with ten times as many examples (PART=1/3 or commit/3)
	@$(PYTEST) $(SPREAD) -m 'slow and not hypothesis' $(if $(PART),--part $(PART)) --durations=10
	@$(PYTEST) $(SPREAD) -m hypothesis --hypothesis-profile=thorough $(if $(PART),--part $(PART)) --durations=10

check: setup ## format, lint, types (also of the console), import rules, spelling, links; lists modules by size
	$(SAY) 'Checking the code'
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/codespell
	@$(BIN)/python docs/links.py
	@$(BIN)/python -m docs.openapi > build/openapi.json
	@npm run --silent --prefix console types > /dev/null 2>&1
	@npm run --silent --prefix console check
	@$(BIN)/python -m tests.module_sizes

format: setup ## format the code and apply fixes of ruff
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

test-deployed: setup openapi-tools ## run only the tests on the deployed stack
	@$(PYTEST) -m deployed tests/deployed

flaky: setup ## repeat the whole suite under different conditions (RUNS=20 FIRST=0 ONLY=tests/scenarios)
	@$(BIN)/python -m tests.flakiness --runs $(or $(RUNS),20) --first $(or $(FIRST),0) $(ONLY)

test-lowest: setup ## run the client's tests with the oldest versions of the libraries that it allows
	@test -x $(LOWEST)/bin/python || $(BIN)/uv venv --quiet --python $(BIN)/python $(LOWEST)
	@VIRTUAL_ENV="$(CURDIR)/$(LOWEST)" $(BIN)/uv pip install --quiet -c constraints.txt $(addprefix -e ,$(DISTRIBUTIONS))
	@VIRTUAL_ENV="$(CURDIR)/$(LOWEST)" $(BIN)/uv pip install --quiet --upgrade --resolution lowest-direct \
		-e common -e 'client[aws,archive,live,mcp,signatures]' 'boto3>=1.34' # of the same age as botocore
	@$(LOWEST)/bin/python -m pytest -n 2 tests/client

docs: setup ## generate the tables of the reference pages and the examples of the OpenAPI document from the code
	@$(BIN)/python -m tests.openapi.recording
	@$(BIN)/python docs/generate.py
	@$(BIN)/python -m infra.grafana

docs-site: docs-tools ## build the documentation site into build/site; broken links fail
	@$(BIN)/python -m docs.site.build

docs-serve: docs-tools ## show the documentation site on http://127.0.0.1:8780; Ctrl-C ends it
	@$(BIN)/python -m docs.site.build --serve

docs-tools: $(VENV)/.installed node_modules/.installed $(SITE)/.installed
	@:

screenshots: setup ## take the screenshots of the console that the docs show
	@$(BIN)/python -m tests.console.screenshots

console-figures: setup ## measure the console in an account of 15 000 tasks (TASKS=...)
	@$(BIN)/python -m tests.console.figures $(TASKS)

openapi: setup ## write the OpenAPI document to build/openapi.json, and a page of it to build/operations.md
	@mkdir -p build
	@$(BIN)/python -m docs.openapi > build/openapi.json
	@$(BIN)/python -m docs.site.operations > build/operations.md

openapi-tools: tests/openapi/node_modules/.installed $(OPENAPI)/.installed ## install linters of the OpenAPI document and generators of clients, for the tests
	@:

simulate: setup ## simulate random faults in virtual time (FIRST=0 SEEDS=100 RATE=0.03)
	@$(BIN)/python -m tests.simulation --first $(or $(FIRST),0) --seeds $(or $(SEEDS),100) $(if $(RATE),--rate $(RATE))

nightly: setup ## simulate fresh seeds until so many faults were injected; the report is build/nightly.txt (FAULTS=10000000 RATE=0.1 FIRST=...)
	@$(BIN)/python -m tests.simulation --first $(or $(FIRST),$(shell date +%s)000) --rate $(or $(RATE),0.1) \
		--faults $(or $(FAULTS),10000000) --report build/nightly.txt

pairs: setup ## interleave every two operations on one subject, call by call (PART=3/10 or commit/20, ONLY=regex, AGAIN='...')
	@$(BIN)/python -m tests.pairs --part $(or $(PART),1/1) $(if $(ONLY),--only '$(ONLY)') $(if $(AGAIN),--again '$(AGAIN)')

mutants: setup ## introduce one defect after the other: the tests must find each (FIRST=0 SEEDS=40 ONLY='lock|lease' SUBJECT='rates|keys')
	@$(BIN)/python -m tests.simulation.mutants --first $(or $(FIRST),0) --seeds $(or $(SEEDS),40) \
		$(if $(ONLY),--only '$(ONLY)') $(if $(SUBJECT),--subject '$(SUBJECT)')

files-entered: setup ## count the files that a reader enters who follows one task through the code (SPINE=1 lists them)
	@$(BIN)/python -m tests.files_entered $(if $(SPINE),--spine)

fuzz: setup ## send hostile requests to the API in process (REQUESTS=100000 SEED=0)
	@$(BIN)/python -m tests.hostile --requests $(or $(REQUESTS),100000) --seed $(or $(SEED),0)

fuzz-deployed: setup ## the same over HTTP, to a local stack of its own (REQUESTS=3000 SEED=0)
	@$(BIN)/python -m tests.deployed.fuzzing --requests $(or $(REQUESTS),3000) --seed $(or $(SEED),0)

kill: setup ## kill workers of a local stack while tasks run, restart it, stop its trigger, send messages twice (TASKS=120 KILLS=20 OUTAGE=300)
	@$(BIN)/python -m tests.deployed.killing --tasks $(or $(TASKS),120) --kills $(or $(KILLS),20) --outage $(or $(OUTAGE),300)

load: setup ## measure the load that a local stack sustains, and overload it (SECONDS_EACH=12 MOST=400)
	@$(BIN)/python -m bench.load --seconds $(or $(SECONDS_EACH),12) --most $(or $(MOST),400)

bench: setup ## measure (see bench/)
	@$(BIN)/python -m bench

workflows: setup ## run recorded workflow graphs on a local stack, against their critical paths (FOLDER=..., MADE=1000)
	@$(BIN)/python -m bench.recorded_workflows $(FOLDER) $(if $(MADE),--made $(MADE))

wheels: setup ## build the distributions that projects install into dist/
	@rm -rf dist
	@for each in $(FOLDERS); do $(BIN)/uv build --quiet --wheel --out-dir dist $$each || exit 1; done
	@ls dist/*.whl

release: setup ## build and check a release without publishing it (RELEASE=1 tags it; ALL=1 needs every Python; PYTHONS='3.11 3.14')
	@$(BIN)/python -m infra.release $(if $(RELEASE),--tag) $(if $(ALL),--all) $(if $(PYTHONS),--pythons '$(PYTHONS)')

lock: $(VENV)/.uv ## update the pinned versions in constraints.txt (UPGRADE=1: newer ones)
	@printf -- '-e %s\n' $(DISTRIBUTIONS) | $(BIN)/uv pip compile - --universal --python-version 3.11 \
		$(addprefix --no-emit-package ,$(NAMES)) --no-header --no-annotate --no-emit-index-url --generate-hashes \
		$(if $(UPGRADE),--upgrade) --quiet --output-file constraints.txt
	@grep '^uv==' constraints.txt > /dev/null

sbom: $(SUPPLY)/.installed ## write CycloneDX documents of what is deployed, with licenses, to build/sbom (ENV=local)
	@$(BIN)/python -m infra.supply_chain $(if $(ENV),--env $(ENV))

audit: $(SUPPLY)/.installed ## look up known vulnerabilities of what is deployed; needs PyPI (ENV=local)
	@$(BIN)/python -m infra.supply_chain --audit $(if $(ENV),--env $(ENV))

clean: ## remove build results
	@rm -rf build functions/console/static cdk.out dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -not -path './$(VENV)/*' -not -path './$(EMULATOR)/*' -not -path './$(OPENAPI)/*' -not -path './$(SITE)/*' -not -path './$(SUPPLY)/*' -not -path './$(LOWEST)/*' -prune -exec rm -rf {} +

distclean: clean ## also remove installed tools
	@rm -rf $(VENV) $(LOWEST) $(EMULATOR) $(OPENAPI) $(SITE) $(SUPPLY) node_modules console/node_modules tests/openapi/node_modules .duetime

# The stamps: each is newer than what it was made from.

$(VENV)/.uv: constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null \
		|| { echo "duetime needs Python 3.11 or newer as '$(PYTHON)' (make PYTHON=python3.12 ...)"; exit 1; }
	$(SAY) 'Preparing the virtual environment'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@mkdir -p build && sed -n '/^uv==/,/[^\\]$$/p' constraints.txt > build/uv.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r build/uv.txt
	@touch $@

$(VENV)/.installed: $(VENV)/.uv $(PROJECTS) constraints.txt
	$(SAY) 'Installing the Python packages'
	@$(BIN)/uv pip install --quiet -c constraints.txt $(addprefix -e ,$(DISTRIBUTIONS))
	@touch $@

$(EMULATOR)/.installed: $(VENV)/.uv local/duetime_local/emulator/requirements.txt
	$(SAY) 'Installing the embedded AWS'
	@test -x $(EMULATOR)/bin/python || $(BIN)/uv venv --quiet --python $(BIN)/python $(EMULATOR)
	@VIRTUAL_ENV="$(CURDIR)/$(EMULATOR)" $(BIN)/uv pip install --quiet --no-deps -r local/duetime_local/emulator/requirements.txt
	@touch $@

node_modules/.installed: package.json package-lock.json
	@node -e 'process.exit(Number(process.versions.node.split(".")[0]) >= 20 ? 0 : 1)' 2> /dev/null \
		|| { echo "duetime needs Node.js 22 or newer (for the AWS CDK's command) as 'node'"; exit 1; }
	@node -e 'process.exit(Number(process.versions.node.split(".")[0]) >= 22 ? 0 : 1)' \
		|| echo "Node.js $$(node --version) has reached its end of life: install 22 or newer; the AWS CDK may soon refuse it"
	$(SAY) 'Installing the Node packages'
	@npm ci --loglevel=error --no-fund --no-audit
	@touch $@

console/node_modules/.installed: console/package.json console/package-lock.json
	$(SAY) 'Installing what the console is built with'
	@npm ci --loglevel=error --no-fund --no-audit --ignore-scripts --prefix console
	@touch $@

functions/console/static/index.html: console/node_modules/.installed console/build.mjs console/package.json $(CONSOLE)
	$(SAY) 'Building the console'
	@node console/build.mjs

# Tests of the console need a browser. Debian's is installed where that is possible; else they are skipped, and say so.
build/.browser:
	@mkdir -p build
	@command -v chromium-headless-shell > /dev/null || { test "$$(id -u)" = 0 && command -v apt-get > /dev/null \
		&& timeout 60 apt-get update -qq > /dev/null && timeout 120 apt-get install -qq -y --no-install-recommends chromium-headless-shell > /dev/null 2>&1; } \
		|| command -v chromium > /dev/null || command -v google-chrome > /dev/null \
		|| echo 'There is no Chromium, and it could not be installed: tests of the console will be skipped'
	@touch $@

tests/openapi/node_modules/.installed: tests/openapi/package.json tests/openapi/package-lock.json
	$(SAY) 'Installing linters and generators of the OpenAPI document'
	@npm ci --loglevel=error --no-fund --no-audit --prefix tests/openapi
	@touch $@

$(OPENAPI)/.installed: $(VENV)/.uv tests/openapi/requirements.txt
	@test -x $(OPENAPI)/bin/python || $(BIN)/uv venv --quiet --python $(BIN)/python $(OPENAPI)
	@VIRTUAL_ENV="$(CURDIR)/$(OPENAPI)" $(BIN)/uv pip install --quiet --no-deps -r tests/openapi/requirements.txt
	@touch $@

$(SITE)/.installed: $(VENV)/.uv docs/site/requirements.txt
	$(SAY) 'Installing the generator of the documentation site'
	@test -x $(SITE)/bin/python || $(BIN)/uv venv --quiet --python $(BIN)/python $(SITE)
	@VIRTUAL_ENV="$(CURDIR)/$(SITE)" $(BIN)/uv pip install --quiet --no-deps -r docs/site/requirements.txt
	@touch $@

$(SUPPLY)/.installed: $(VENV)/.installed infra/supply_chain/requirements.txt
	$(SAY) 'Installing the tools of the supply chain'
	@test -x $(SUPPLY)/bin/python || $(BIN)/uv venv --quiet --python $(BIN)/python $(SUPPLY)
	@VIRTUAL_ENV="$(CURDIR)/$(SUPPLY)" $(BIN)/uv pip install --quiet --no-deps --require-hashes -r infra/supply_chain/requirements.txt
	@touch $@

build/.layers: $(VENV)/.installed node_modules/.installed constraints.txt $(SOURCES)
	$(SAY) 'Building the Lambda layers'
	@mkdir -p build
	@$(BIN)/python -m infra.layers --env local
	@touch $@
