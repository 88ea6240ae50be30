"""Executors for real: out and back in on a cluster of processes under a load that changes.

Each kind takes two minutes, so `make chaos` runs them.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.places import HELPERS
from tidegate.recording import read_records

DRIVER = HELPERS / "executors_driver.py"


@pytest.mark.experiment
@pytest.mark.parametrize("kind", ["pipeline", "attached"])
def test_executors_come_and_go_and_no_batch_notices(kind: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("wb") as output:
        done = subprocess.run(
            [sys.executable, str(DRIVER), kind, str(tmp_path)],
            stdout=output,
            stderr=output,
            env={**os.environ, "TIDEGATE_SPARK_LOG": str(tmp_path / "spark.log")},
            check=False,
        )
    assert done.returncode == 0, log.read_text()[-3000:]
    report = json.loads((tmp_path / "report.json").read_text())
    # No batch failed and no row was lost: the result is that of a batch query over all rows.
    assert (report["error"], report["failure"]) == (None, None)
    assert sum(count for count, _ in report["expected"].values()) == report["rows"]
    assert report["found"] == report["expected"]
    # From one to four and back to one.
    assert max(report["executors"]) == 4
    assert report["executors"][-1] == 1
    assert report["executors"].index(1) < report["executors"].index(4)
    # Whoever went had nothing to do, nothing failed, and no stage was run again for lost files.
    assert len(set(report["released"])) == len(report["released"]) >= 3
    assert report["removals"]
    assert all(running == {"jobs": 0, "busy": 0} for running in report["removals"])
    assert (report["failed_tasks"], report["stage_tries"]) == (0, 0)
    records = read_records(tmp_path / "records")
    asked = [r.decision.cores for r in records if r.acted and r.decision.cores is not None]
    assert max(asked) == 4
    assert asked[-1] == 1
    # How long executors take was learned, and is the horizon of the forecast.
    assert records[-1].measurement.grant_s > 0.0
    assert records[-1].beliefs["horizon_s"] > records[-1].measurement.grant_s
