"""Executors that differ in speed: rows of maps and shards of keyed operators follow it."""

import json
import subprocess
import sys

import pytest

from tests.helpers.places import HELPERS

pytestmark = [pytest.mark.spark, pytest.mark.experiment]
DRIVER = HELPERS / "uneven_driver.py"


def test_rows_of_a_map_follow_the_speed_of_its_executors(tmp_path):
    """One executor takes three times as long for a row: it gets a quarter of them."""
    done = subprocess.run(
        [sys.executable, str(DRIVER), str(tmp_path)], capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["failure"] is None
    assert told["dealt"][0] == [0.5, 0.5], "places are kept first"
    assert 0.15 <= min(told["dealt"][-1]) <= 0.35
    assert told["places"] == 2
    assert 0.15 <= told["slow"] <= 0.35
    assert told["counted"] == told["rows"], "every row once"


def test_shards_leave_an_executor_that_is_slow_and_it_is_named(tmp_path):
    """One executor takes three times as long for a row; the default policy deals with it."""
    done = subprocess.run(
        [sys.executable, str(HELPERS / "unlike_driver.py"), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["failure"] is None
    assert told["moved"] and told["slow_rows"] < 0.4
    assert any("times as slow as the others" in reason for reason in told["reasons"])
    assert any("times as slow as the others" in note for note in told["notes"])
    assert told["counted"] == told["rows"], "every row once"
