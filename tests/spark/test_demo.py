"""`tidegate demo` from end to end, as a user runs it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tidegate.apps.demo import Second, run_demo
from tidegate.errors import AskedWrongly

ROOT = Path(__file__).resolve().parents[2]


def test_the_command_prints_one_document(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tidegate", "demo", "--json", "--seconds", "3"]
    command += ["--rate", "constant:200", "--master", "local[2]"]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "TMPDIR": str(tmp_path)}
    run = subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=300
    )
    assert run.returncode == 0, run.stderr
    document = json.loads(run.stdout)
    assert document["rows"] == document["arrived"] == 600
    assert 0 < document["p50_ms"] <= document["p95_ms"] <= document["p99_ms"]
    parts_ms = sum(document["batch_parts_ms"].values())
    assert parts_ms == pytest.approx(document["batch_ms"], abs=5)
    assert "WARN" not in run.stderr and "rows/s" in run.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_run_reports_every_second_and_every_row(spark) -> None:
    seconds: list[Second] = []
    summary = run_demo(spark, "ramp:100-500/2", 2.0, seconds.append)
    assert summary.rows == summary.arrived == 600
    assert sum(batch.rows for batch in summary.batches) == 600
    assert [second.at_s for second in seconds] == list(range(1, len(seconds) + 1))
    assert seconds[-1].rows == 600 and len(seconds) >= 2
    assert summary.latency is not None and summary.latency.mean_s > 0


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), 1e9])
def test_bad_seconds(spark, seconds: float) -> None:
    with pytest.raises(AskedWrongly):
        run_demo(spark, "100", seconds, print)
