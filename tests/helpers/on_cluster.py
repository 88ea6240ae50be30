"""Runs the pipeline of `cluster_driver.py` in a process of its own, and checks what it reports."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.helpers.places import HELPERS


def run_on(kind: str, root: Path) -> dict[str, Any]:
    """Its report: a pipeline went through scale-out, the loss of a host and scale-in, exactly."""
    log = root / "log"
    with log.open("wb") as output:
        done = subprocess.run(
            [sys.executable, str(HELPERS / "cluster_driver.py"), kind, str(root)],
            stdout=output,
            stderr=output,
            env={**os.environ, "TIDEGATE_SPARK_LOG": str(root / "spark.log")},
            check=False,
        )
    assert done.returncode == 0, log.read_text()[-3000:]
    report: dict[str, Any] = json.loads((root / "report.json").read_text())
    assert report["failure"] is None
    assert sum(count for count, _ in report["expected"].values()) == report["rows"]
    assert report["found"] == report["expected"]
    # One executor at last, three at the top, and fewer for a while, because a host was lost.
    up = report["executors"]
    assert up[-1] == 1
    top = up.index(3, up.index(1))
    lost = next(place for place in range(top, len(up)) if up[place] < 3)
    assert 3 in up[lost:]
    return report
