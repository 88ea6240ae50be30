"""A standalone master that does not answer for a while; control goes on (`make chaos`)."""

import json
import os
import signal
import subprocess
import sys

import pytest

from tests.helpers.places import HELPERS
from tests.helpers.processes import kill_tree, pass_time, wait_for
from tests.helpers.standalone import standalone

pytestmark = [
    pytest.mark.spark,
    pytest.mark.chaos,
    pytest.mark.skipif(
        "TIDEGATE_CHAOS_ROUNDS" not in os.environ, reason="takes two minutes; make chaos runs it"
    ),
]
GONE_S = 40


def test_control_goes_on_when_the_master_answers_again(tmp_path):
    def so_far() -> tuple[int, int]:
        """Ticks and micro-batches."""
        place = tmp_path / "so-far"
        if not place.exists():
            return 0, 0
        ticks, batches = place.read_text().split()
        return int(ticks), int(batches)

    with standalone(tmp_path) as cluster, (tmp_path / "log").open("wb") as log:
        driver = subprocess.Popen(
            [sys.executable, str(HELPERS / "master_driver.py"), str(tmp_path), cluster.url],
            stdout=log,
            stderr=log,
            env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
        )
        try:
            assert wait_for(lambda: so_far()[1] >= 3, 300, driver), (tmp_path / "log").read_text()
            os.kill(cluster.master.pid, signal.SIGSTOP)
            before = so_far()
            pass_time(driver, GONE_S)
            os.kill(cluster.master.pid, signal.SIGCONT)
            assert driver.poll() is None, (tmp_path / "log").read_text()[-3000:]
            ticks, batches = so_far()
            print(f"{ticks - before[0]} ticks, {batches - before[1]} batches without a master")
            assert batches > before[1], "batches go on without a master"
            goes_on = wait_for(lambda: min(_less(so_far(), (ticks, batches))) >= 5, 180, driver)
            assert goes_on, (tmp_path / "log").read_text()[-3000:]
            (tmp_path / "enough").touch()
            driver.wait(120)
        finally:
            os.kill(cluster.master.pid, signal.SIGCONT)
            kill_tree(driver)
    assert driver.returncode == 0, (tmp_path / "log").read_text()[-3000:]
    seen = json.loads((tmp_path / "seen.json").read_text())
    print(seen)
    assert seen["rows in state"] >= seen["rows in results"] > 0


def _less(now: tuple[int, int], then: tuple[int, int]) -> tuple[int, int]:
    return now[0] - then[0], now[1] - then[1]
