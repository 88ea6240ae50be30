"""Every benchmark of the checkout can be loaded, its bodies too, and says what it measures."""

import importlib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.helpers.places import ROOT
from tidegate.cli import app
from tidegate.commands import bench
from tidegate.errors import AskedWrongly

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
