"""Commands that take long tell how far they are, on standard error and never on standard output."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.helpers.pipeline_worlds import controller, world
from tests.helpers.places import ROOT
from tidegate.cli import app
from tidegate.control.assembly import Assembly
from tidegate.control.replay import replay_runs
from tidegate.progress import Progress
from tidegate.sim.capacity import backtest
from tidegate.sim.capacity.applications import APPLICATIONS
from tidegate.sim.capacity.cluster import ClusterRun
from tidegate.sim.capacity.on_pipeline import PipelineSettings
from tidegate.sim.microbatch.pipeline import simulate
from tidegate.view.live import progress as shown

BENCHES = sorted((ROOT / "benchmarks").glob("[!_]*.py"))
LOAD = 3000 + 1500 * np.sin(np.arange(240) / 30.0)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines come at once, so that work of milliseconds says something too."""
    monkeypatch.setattr(shown.ShownProgress.__init__, "__kwdefaults__", _SOON)


_SOON = {"first_line_s": 0.0, "line_every_s": 0.01}


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "trace.csv"
    lines = (f"{minute},{count:.0f}" for minute, count in enumerate(LOAD))
    path.write_text("minute,count\n" + "\n".join(lines) + "\n")
    return path


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(
    "words",
    [
        ("backtest", "TRACE", "--app", "grep", "--policy", "latency", "--tick", "30s"),
        ("simulate", str(ROOT / "examples" / "vld.toml"), "--allocation", "ALLOCATION"),
    ],
    ids=lambda words: words[0],
)
def test_progress_is_on_standard_error_and_the_document_alone_on_the_other(
    words: tuple[str, ...], trace: Path
) -> None:
    given = {"TRACE": str(trace), "ALLOCATION": "extract=10,match=11,aggregate=1"}
    run = CliRunner().invoke(app, [*(given.get(one, one) for one in words), "--json"])
    assert run.exit_code == 0, run.output
    json.loads(run.stdout)
    assert re.search(rf"{words[0]}: .*(left|running for)", run.stderr)


def test_a_backtest_of_one_run_advances_with_the_simulated_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    progress, seen = Progress(), list[float]()
    real = backtest.run_on_pipeline

    def watched(*given: Any, on_minute: Callable[[int], None]) -> ClusterRun:
        def noted(minute: int) -> None:
            on_minute(minute)
            seen.append(progress.how_far().share or 0.0)

        return real(*given, on_minute=noted)

    monkeypatch.setattr(backtest, "run_on_pipeline", watched)
    apps, settings = [APPLICATIONS["grep"]], PipelineSettings(tick_s=30.0)
    forecasts = backtest.TraceForecasts(LOAD)
    list(backtest.grid(forecasts, ["latency"], apps, 1, 0.95, pipeline=settings, progress=progress))
    assert seen == pytest.approx([(minute + 1) / len(LOAD) for minute in range(len(LOAD))])


def test_a_replay_tells_of_every_tick() -> None:
    shares: list[float] = []
    records = simulate(world(), controller(), on_share=shares.append).records
    assert shares == sorted(shares) and shares
    decided: list[None] = []
    made = Assembly.of(records[0].assembly or {})
    replay_runs(records, lambda _: made, lambda: decided.append(None))
    assert len(decided) == len(records)


@pytest.mark.parametrize("file", BENCHES, ids=lambda file: file.stem)
def test_every_benchmark_tells_how_far_it_is(file: Path) -> None:
    """`expect` or `each` says how much there is to do, so that the time left can be told."""
    bodies = (ROOT / "benchmarks" / f"{file.stem}_bodies").glob("*.py")
    text = "".join(one.read_text(encoding="utf-8") for one in (file, *bodies))
    assert re.search(r"progress\.(expect|each)\(", text)
