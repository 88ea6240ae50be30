"""State stays where it is: on executors with caches of their own, only what moves is fetched."""

import json
import subprocess
import sys

import pytest

from tests.helpers.locality_driver import CALM, SHARDS
from tests.helpers.places import HELPERS

pytestmark = pytest.mark.spark
DRIVER = HELPERS / "locality_driver.py"


def test_shards_are_read_where_they_are_and_only_moved_ones_are_fetched(tmp_path):
    done = subprocess.run(
        [sys.executable, str(DRIVER), str(tmp_path)], capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout.splitlines()[-1])
    for phase in ("calm", "calm again"):
        reads = told[phase]["own"] + told[phase]["durable"]
        assert reads == CALM * SHARDS
        assert told[phase]["own"] >= 0.95 * reads
        assert told[phase]["places"] == told[phase]["nodes"] == 2
        assert (told[phase]["bytes"] > 0) == (told[phase]["durable"] > 0)
    assert 0 < told["moved"] < SHARDS
    assert told["rescaled"]["own"] + told["rescaled"]["durable"] == SHARDS
    assert told["rescaled"]["durable"] <= told["moved"]
    assert told["tasks on nodes"] == 3
    assert told["fetched"] == sum(told[p]["bytes"] for p in ("calm", "rescaled", "calm again"))
    assert told["moved beside"]["durable"] == told["moved beside"]["bytes"] == 0
    assert told["moved away"]["durable"] == 1 and told["moved away"]["bytes"] > 0
    assert told["counted"] == told["rows"]
