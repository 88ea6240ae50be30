"""YARN and HDFS for real: a host is lost, one is decommissioned, and no row is lost or doubled."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.places import HELPERS
from tidegate.errors import AskedWrongly
from tidegate.spark.clusters.yarn import Yarn

DRIVER = HELPERS / "yarn_driver.py"


def test_wrong_numbers_are_refused() -> None:
    with pytest.raises(AskedWrongly, match="0 NodeManagers"):
        Yarn(0)


@pytest.mark.experiment
def test_a_pipeline_survives_the_loss_of_hosts(hadoop: None, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("wb") as output:
        done = subprocess.run(
            [sys.executable, str(DRIVER), str(tmp_path)],
            stdout=output,
            stderr=output,
            env={**os.environ, "TIDEGATE_SPARK_LOG": str(tmp_path / "spark.log")},
            check=False,
        )
    assert done.returncode == 0, log.read_text()[-3000:]
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["failure"] is None
    assert sum(count for count, _ in report["expected"].values()) == report["rows"]
    assert report["found"] == report["expected"]
    # One executor at first, three at the top, each on a host of its own, and one at the end.
    up = report["executors"]
    assert (up[0], max(up), up[-1]) == (1, 3, 1)
    assert report["hosts"] == 3
    assert report["states"][1] == "DECOMMISSIONED"
    # Fewer in the middle: a host was lost, and its executor came back.
    top = up.index(3)
    lost = next(place for place in range(top, len(up)) if up[place] < 3)
    assert 3 in up[lost:]
