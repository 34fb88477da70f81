# Each target is one line into the real tool. `make run` and `make test` are the two that matter.
# What only a release or a server needs is in deploy/Makefile.

PORT ?= 8501
VENV := .venv
BIN := $(VENV)/bin
ARGS ?=
KILLS ?= 200
SOAK_MINUTES ?= 30
FUZZ_S ?= 600

# The first interpreter that is new enough and can make a virtual environment.
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3.14 python3; do \
	$$p -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& { echo $$p; break; }; done)

# What is compiled, of the tests too, is there for the next process, whatever a container sets.
export PYTHONDONTWRITEBYTECODE :=
# Compiling is more than half of an installation, and most of it is never imported.
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check --no-compile
# Into an environment that has no pip of its own, which takes 3 s to install: $(call pip_into,FOLDER)
pip_into = $(BIN)/python -m pip --python $(1)/bin/python install --quiet --disable-pip-version-check

# Packages of Debian, one call at a time; the lists of them are fetched where they are old or not there.
APT := DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends
apt = { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
	&& flock Makefile sh -c "$(APT) $(1) >/dev/null 2>&1 || { apt-get update -qq && $(APT) $(1) >/dev/null; }"; }

TESTED := not browser and not services and not slow
# Tests of browsers and servers wait about as long as they compute: two of them for each core, of one
# thread each: a fit of two takes 1.6 times the processor time of one.
SIDE_BY_SIDE := $(shell echo $$((2 * $$(getconf _NPROCESSORS_ONLN))))
# Quick tests wait, too, for processes and locks: three keep two cores 95% busy.
QUICK_SIDE_BY_SIDE := $(shell echo $$((3 * $$(getconf _NPROCESSORS_ONLN) / 2)))
CORE_TESTS := tests/whole/test_doctests.py tests/whole/test_golden_links.py tests/core

RAY := 2.60.0
SKYPILOT := 0.14.1
ATHERIS := 3.0.0
PIP_AUDIT := 2.10.1
CYCLONEDX := 7.5.0

.PHONY: help install install-test chromium nginx postgres clusters slurm run test test-all soak lint coverage mutants fit validate bench bench-ui docs
.DEFAULT_GOAL := help

help:  ## what there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */  make \1\t/' | expand -t 22

install: $(VENV)/.dashboard  ## .venv with what the dashboard and the command line need

install-test: $(VENV)/.tests  ## .venv with everything that is pinned

run: install  ## the dashboard on localhost:8501 (PORT=9000 for another port)
	$(BIN)/python -m streamlit run app/main.py --server.port $(PORT)

test: lint chromium  ## lint and every quick test, with one walk through a real browser
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(QUICK_SIDE_BY_SIDE) --dist worksteal -m "$(TESTED)" $(ARGS)

test-all:  ## make test, then real installations, a real PostgreSQL and nginx, the whole browser suite
	$(MAKE) -j8 chromium postgres nginx clusters $(VENV)/.audit $(VENV)/.fuzz
	$(MAKE) test
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(SIDE_BY_SIDE) --dist loadfile --no-loadscope-reorder -m "not ($(TESTED)) and not serial" --durations=15 $(ARGS)
	$(BIN)/python -m pytest -m "not ($(TESTED)) and serial" --durations=15 $(ARGS)

soak: install-test chromium postgres nginx $(VENV)/.fuzz  ## by hand: 50 sessions at once, hostile feeds, files and a flood, every kind of kill and power cut 200 times, 10 minutes of fuzzing, 30 of edits (KILLS=N SOAK_MINUTES=N FUZZ_S=S)
	$(BIN)/python -m tests.support.load
	$(BIN)/python -m tests.threats.hostile_files
	$(BIN)/python -m tests.threats.hostile_feeds
	$(BIN)/python -m tests.support.flood
	RUNCAST_KILLS=$(KILLS) $(BIN)/python -m pytest -s -k "kill or power" tests/services/test_refresh_end_to_end.py tests/services/test_faults_kill.py tests/threats/test_power_cut.py $(ARGS)
	RUNCAST_FUZZ_S=$(FUZZ_S) $(BIN)/python -m pytest -s tests/threats/test_fuzz.py $(ARGS)
	RUNCAST_OFFERS=100000 $(BIN)/python -m pytest -s -k offers_from_loopback tests/pricing/test_refresh_crash.py $(ARGS)
	$(BIN)/python -m tests.support.soak --minutes $(SOAK_MINUTES)

coverage: install-test  ## lines of core that its quick tests run: at least 95%
	OMP_NUM_THREADS=1 $(BIN)/python -m coverage run -m pytest -n 0 -m "$(TESTED)" $(CORE_TESTS) $(ARGS)
	$(BIN)/python -m coverage report

mutants: install-test  ## plant errors in the formulas of core and see them caught (ARGS="--random 200")
	$(BIN)/python -m tests.mutations $(ARGS)

lint: install-test  ## format, lint, types, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy --num-workers auto
	$(BIN)/lint-imports

# Material for MkDocs prints a notice of MkDocs 2 at every start; what is pinned is MkDocs 1.
docs: install-test  ## the documentation's site in build/site; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict $(ARGS)

fit: install  ## fit hardware/efficiency.csv from its priors and cross-validate it
	$(BIN)/runcast fit --write $(ARGS)

validate: install  ## predict every shipped measured run, print the errors, rebuild the README's table
	$(BIN)/runcast validate --runs hardware/measured_runs.csv --models hardware/measured_models.csv --pairs hardware/measured_pairs.csv --readme README.md $(ARGS)

bench: install-test  ## medians: one estimate, layouts a second, a cold plan, answers, a validation
	$(BIN)/python tests/bench/estimate.py $(ARGS)

bench-ui: install-test chromium  ## what somebody at the page waits for, in Chromium (ARGS=--help)
	$(BIN)/python -m tests.bench.ui $(ARGS)

# The stamps: a second `make` installs again only when the environment's own files changed.
$(VENV)/.made:
	@test -n "$(PYTHON)" || { echo "Runcast needs Python 3.11 or newer with venv: on Debian and Ubuntu, apt-get install python3-venv (python3.11-venv where python3 is older)." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.dashboard: $(VENV)/.made pyproject.toml requirements.txt
	$(BIN)/python $(PIP_INSTALL) -e '.[ui,report]' -c requirements.txt
	@touch $@

$(VENV)/.tests: $(VENV)/.made pyproject.toml requirements.txt
	$(BIN)/python $(PIP_INSTALL) -r requirements.txt -e .
	@touch $@ $(VENV)/.dashboard

# The browser of the tests (CHROMIUM=PATH names another). Without one they are skipped, except
# where CI is set: there they fail.
chromium:
	@for c in "$$CHROMIUM" chromium chromium-browser google-chrome; do command -v "$$c" >/dev/null && exit 0; done; $(call apt,chromium libatomic1) \
	|| echo "There is no Chromium here, so the tests that need it are skipped (where CI is set they fail): apt-get install chromium."

# What the launchers' tests start: SLURM, sshd and the tools of shaped links, and Ray and SkyPilot in
# environments of their own. Without one its tests are skipped; where CI is set, programs that are
# missing fail. Ray is compiled: its own processes wait for each other's start for so long only.
clusters: install-test slurm $(VENV)/.ray $(VENV)/.sky

slurm:
	@for c in sbatch munged sshd ip tc ethtool; do PATH="$$PATH:/usr/sbin" command -v $$c >/dev/null || lacks=1; done; [ -z "$$lacks" ] || $(call apt,slurm-wlm munge openssh-server iproute2 ethtool) \
	|| echo "SLURM, sshd or ip are missing here, so the tests that need them are skipped (where CI is set they fail): apt-get install slurm-wlm munge openssh-server iproute2 ethtool."

$(VENV)/.ray: $(VENV)/.made
	$(PYTHON) -m venv --without-pip $(VENV)/ray
	$(call pip_into,$(VENV)/ray) --compile 'ray[default]==$(RAY)' || { rm -rf $(VENV)/ray; echo "ray[default] cannot be installed here, so its tests are skipped."; }
	@touch $@

$(VENV)/.sky: $(VENV)/.made
	$(PYTHON) -m venv --without-pip $(VENV)/sky
	$(call pip_into,$(VENV)/sky) --no-compile 'skypilot==$(SKYPILOT)' || { rm -rf $(VENV)/sky; echo "skypilot cannot be installed here, so its tests are skipped."; }
	@touch $@

# What looks for known vulnerabilities of the lock: tests and deploy/Makefile ask it.
$(VENV)/.audit: $(VENV)/.made
	$(PYTHON) -m venv $(VENV)/audit
	$(VENV)/audit/bin/python $(PIP_INSTALL) 'pip-audit==$(PIP_AUDIT)' 'cyclonedx-bom==$(CYCLONEDX)' || { rm -rf $(VENV)/audit; echo "pip-audit cannot be installed here, so its tests are skipped."; }
	@touch $@

# The fuzzer, beside what it instruments: there are wheels for x86-64 and Python up to 3.13 alone.
$(VENV)/.fuzz: $(VENV)/.tests
	$(BIN)/python $(PIP_INSTALL) --only-binary :all: 'atheris==$(ATHERIS)' || echo "atheris has no wheel for this machine, so its tests are skipped."
	@touch $@

# The database server of the tests, which they start themselves. Without one they are skipped, except
# where CI is set: there they fail.
postgres:
	@command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || $(call apt,postgresql) \
	|| echo "There is no PostgreSQL here, so the tests that need it are skipped (where CI is set they fail): apt-get install postgresql."

# The proxy of the tests, which they start themselves with its own prefix. Without one they are
# skipped, except where CI is set: there they fail.
nginx:
	@PATH="$$PATH:/usr/sbin" command -v nginx >/dev/null || $(call apt,nginx-light) \
	|| echo "There is no nginx here, so the tests that need it are skipped (where CI is set they fail): apt-get install nginx-light."
