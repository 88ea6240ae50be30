"""Every benchmark of the checkout can be loaded, its bodies too, and says what it measures."""

import importlib
from pathlib import Path

import numpy as np
import pytest
from benchmarks import drs, surge
from typer.testing import CliRunner

from tests.helpers.places import ROOT
from tidegate.benching import Options
from tidegate.cli import app
from tidegate.commands import bench
from tidegate.errors import AskedWrongly
from tidegate.sim.microbatch.oracle import Oracle

FILES = sorted((ROOT / "benchmarks").glob("[!_]*.py"))
BODIES = sorted((ROOT / "benchmarks").glob("*/*.py"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_it_loads(file: Path) -> None:
    assert callable(bench._load(file))
    assert bench._description(file)


@pytest.mark.parametrize("file", BODIES, ids=lambda file: file.stem)
def test_its_bodies_load(file: Path) -> None:
    importlib.import_module(f"benchmarks.{file.parent.name}.{file.stem}")


def test_what_bench_shed_does_not_know_is_refused_by_name() -> None:
    for words, said in ((["--body", "spork"], "no body 'spork'"), (["--pic", "x"], "'--pic'")):
        run = CliRunner().invoke(app, ["bench", "shed", *words])
        assert isinstance(run.exception, AskedWrongly) and said in str(run.exception)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--minute", "abc"), "--minute abc is not possible; give 0.1 to 600 seconds"),
        (("--minute", "nan"), "--minute nan is not possible"),
        (("--t-max", "-1"), "--t-max -1 is not possible"),
        (("--figure", "7"), "there is no figure '7' here; give 8 or 9"),
        (("--model", "mm"), "there is no model 'mm'; did you mean 'mmk'?"),
        (("--figures", "8"), "bench drs has no option '--figures'; did you mean 'figure'?"),
    ],
)
def test_what_bench_drs_cannot_run_is_refused_before_spark_starts(words, said: str) -> None:
    run = CliRunner().invoke(app, ["bench", "drs", *words])
    assert isinstance(run.exception, AskedWrongly) and said in str(run.exception)


def test_bench_drs_runs_both_figures_or_one() -> None:
    assert drs.asked_of(Options()).figures == ("8", "9")
    assert drs.asked_of(Options(extra={"figure": "9", "minute": "2"})) == drs.Asked(
        minute_s=2.0, t_max_s=8.0, figures=("9",), model="mmk"
    )


def test_an_oracle_that_misses_the_target_itself_is_an_aim_not_met() -> None:
    """It takes all cores then, and whoever is compared with it looks cheap."""
    good = surge.against_oracle(120.0, Oracle(100.0, 1.0, np.empty(0)))
    assert [one.met for one in good] == [True, True]
    bad = surge.against_oracle(120.0, Oracle(100.0, 0.9, np.empty(0)))
    assert [one.met for one in bad] == [True, False]
