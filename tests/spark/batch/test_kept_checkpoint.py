"""A pipeline goes on from the checkpoint of a release, and repeats the batch that had begun."""

import json

import pyarrow as pa
import pytest

import tidegate as tg
from tests.helpers.kept_checkpoint import FIXTURES, expected, expected_windows, flow, unpacked

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("release", sorted(path.stem for path in FIXTURES.glob("release-*.zip")))
def test_a_pipeline_goes_on_from_the_checkpoint_of_a_release(release, spark, tmp_path):
    checkpoint = unpacked(release, tmp_path / "ck")
    logged = (checkpoint / "segments/main/spark/offsets/0").read_text().splitlines()[-1]
    run = flow(spark).start(str(checkpoint))
    run.processAllAvailable()
    run.stop()
    first = run.results("main")[0]
    assert first.replayed
    assert first.plan.operators["totals"].tasks == 2, "the replay has the plan of the release"

    def stored(operator: str, column: str) -> dict[int, int]:
        table = tg.read_state(str(checkpoint), operator)
        return dict(zip(table["key"].to_pylist(), table[column].to_pylist(), strict=True))

    totals, visits = expected()
    assert stored("totals", "total") == totals
    assert stored("visits", "n") == visits
    assert stored("seen", "n").keys() == totals.keys()
    windows = tg.read_state(str(checkpoint), "windows")
    starts = windows["window_start"].cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_pylist()
    truth = expected_windows(json.loads(logged)["start_ms"])
    open_now = zip(windows["key"].to_pylist(), starts, windows["count"].to_pylist(), strict=True)
    assert windows.num_rows
    assert all(truth[key, start] == count for key, start, count in open_now)
