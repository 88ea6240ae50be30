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
    def ticks() -> int:
        return int((tmp_path / "ticks").read_text()) if (tmp_path / "ticks").exists() else 0

    with standalone(tmp_path) as cluster, (tmp_path / "log").open("wb") as log:
        driver = subprocess.Popen(
            [sys.executable, str(HELPERS / "master_driver.py"), str(tmp_path), cluster.url],
            stdout=log,
            stderr=log,
            env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
        )
        try:
            assert wait_for(lambda: ticks() >= 15, 180, driver), (tmp_path / "log").read_text()
            os.kill(cluster.master.pid, signal.SIGSTOP)
            before = ticks()
            pass_time(driver, GONE_S)
            os.kill(cluster.master.pid, signal.SIGCONT)
            assert driver.poll() is None, (tmp_path / "log").read_text()[-3000:]
            print(f"{ticks() - before} ticks in {GONE_S} s without a master")
            after = ticks()
            assert wait_for(lambda: ticks() >= after + 10, 120, driver), "control came back"
            (tmp_path / "enough").touch()
            driver.wait(120)
        finally:
            os.kill(cluster.master.pid, signal.SIGCONT)
            kill_tree(driver)
    assert driver.returncode == 0, (tmp_path / "log").read_text()[-3000:]
    seen = json.loads((tmp_path / "seen.json").read_text())
    print(seen)
    assert seen["rows in state"] >= seen["rows in results"] > 0
