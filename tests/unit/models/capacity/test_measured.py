"""Capacity samples and their file: the throughput within a target, round trips, refusals."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import AskedWrongly
from tidegate.models.capacity.measured import (
    CURVES,
    CapacitySample,
    MeasuredCapacity,
    read_capacity,
)
from tidegate.models.capacity.shapes import Shape
from tidegate.models.microbatch.batch_cost import SOJOURN_BATCHES, BatchCost
from tidegate.models.microbatch.station import MicroBatchStation


@given(
    fixed_s=st.floats(0.05, 0.5),
    work_s=st.floats(1e-5, 0.1),
    cores=st.integers(1, 64),
    rows=st.integers(1000, 100_000),
    target_s=st.floats(1.0, 20.0),
)
def test_any_batch_shows_the_same_throughput_within_a_target(
    fixed_s: float, work_s: float, cores: int, rows: int, target_s: float
) -> None:
    """However large the batch was, and by the fixed point of N = lambda D as well."""
    cost = BatchCost(fixed_s=fixed_s, work_s=work_s)
    batch_s = cost.duration_s(rows, cores)
    sample = CapacitySample(cores=cores, rows_per_s=rows / batch_s, batch_s=batch_s)
    found = sample.within(target_s, fixed_s)
    if found is None:
        assert batch_s - fixed_s < 0.1 * batch_s * (1 + 1e-9)
        return
    assert found == pytest.approx(cost.throughput(cores, target_s), rel=1e-6)
    duration_s = fixed_s
    for _ in range(20_000):
        longer_s = cost.duration_s(found * duration_s, cores)
        if abs(longer_s - duration_s) <= 1e-10:
            break
        duration_s = longer_s
    assert SOJOURN_BATCHES * duration_s == pytest.approx(target_s, rel=1e-3)


@given(target_s=st.floats(0.1, 1.0))
def test_a_target_below_the_floor_leaves_what_can_be_reached(target_s: float) -> None:
    sample = CapacitySample(cores=2, rows_per_s=500.0, batch_s=2.0)
    found = sample.within(target_s, overhead_s=1.0)
    assert found is not None
    assert 0.0 < found < 1000.0


def test_without_batches_it_is_what_was_measured() -> None:
    assert CapacitySample(cores=3, rows_per_s=120.0).within(0.5, 0.2) == 120.0


samples = st.builds(
    CapacitySample,
    cores=st.integers(1, 10_000),
    rows_per_s=st.floats(1e-3, 1e12),
    batch_s=st.none() | st.floats(1e-3, 1e4),
)


@given(
    measured=st.builds(
        MeasuredCapacity,
        pipeline=st.text(max_size=20),
        samples=st.lists(samples, min_size=1, max_size=12).map(tuple),
        fixed_s=st.floats(0.0, 10.0),
        per_task_s=st.floats(0.0, 1.0),
        curve=st.none() | st.sampled_from(CURVES),
        stretched=st.booleans(),
    )
)
def test_what_is_written_is_read(measured: MeasuredCapacity) -> None:
    assert MeasuredCapacity.of(json.loads(json.dumps(measured.document()))) == measured


def test_the_curves_are_those_that_can_be_fitted() -> None:
    assert tuple(shape.value for shape in Shape) == CURVES


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    measured = MeasuredCapacity(
        pipeline="ads", samples=(CapacitySample(cores=2, rows_per_s=5.0, batch_s=1.0),), fixed_s=0.2
    )
    measured.write(tmp_path / "ads.json")
    assert read_capacity(tmp_path / "ads.json") == measured


GOOD: dict[str, Any] = {
    "format": "tidegate capacity",
    "version": 1,
    "pipeline": "ads",
    "samples": [{"cores": 1, "rows_per_s": 10.0}],
}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"format": "other"}, "its format is 'other', not 'tidegate capacity'"),
        ({"version": 9}, "its version is 9, and this release reads 1: calibrate again"),
        ({"samples": None}, "no list 'samples'"),
        ({"samples": []}, "at least one sample"),
        ({"samples": [3]}, "sample 1 is not an object"),
        ({"samples": [{"cores": 1}]}, "sample 1 has no 'rows_per_s'"),
        ({"samples": [{"cores": 1.5, "rows_per_s": 1}]}, "cores of sample 1 are 1.5"),
        ({"samples": [{"cores": 1, "rows_per_s": "x"}]}, "rows_per_s of sample 1 is 'x'"),
        ({"samples": [{"cores": 1, "rows_per_s": -1.0}]}, "a throughput must be positive"),
        ({"samples": [{"cores": 0, "rows_per_s": 1.0}]}, "a whole number of at least 1"),
        ({"samples": [{"cores": 1, "rows_per_s": 1.0, "batch_s": 0}]}, "must be positive"),
        ({"samples": [{"cores": 1, "rows_per_s": 1.0, "batchs": 0}]}, "did you mean 'batch_s'"),
        ({"fixed_s": -1}, "give durations of 0 or more"),
        ({"fixed_s": "soon"}, "'fixed_s' is 'soon': give a number"),
        ({"curve": "model 3"}, "no capacity curve 'model 3'; did you mean 'model"),
        ({"curve": 3}, "'curve' is 3: give a text"),
        ({"stretched": 1}, "'stretched' is 1: give true or false"),
        ({"piepline": "x"}, "unknown key 'piepline'; did you mean 'pipeline'"),
    ],
)
def test_a_wrong_file_is_refused_with_what_is_wrong(
    tmp_path: Path, changes: dict[str, Any], says: str
) -> None:
    path = tmp_path / "wrong.json"
    path.write_text(json.dumps({**GOOD, **changes}))
    with pytest.raises(AskedWrongly, match=says) as error:
        read_capacity(path)
    assert "wrong.json cannot be used" in str(error.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [("{", "is not JSON"), ("[1]", "not a JSON object"), (None, "no capacity file")],
)
def test_no_file_and_no_json_are_refused(tmp_path: Path, text: str | None, says: str) -> None:
    path = tmp_path / "wrong.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(AskedWrongly, match=says):
        read_capacity(path)


@pytest.mark.parametrize("interval_s", [0.0, 0.5, 1.0, 1.4, 2.0, 4.0])
@pytest.mark.parametrize("batch_s", [0.2, 0.5, 0.9, 1.1, 3.0])
def test_a_batch_exceeds_a_latency_as_the_rows_of_such_batches_do(
    batch_s: float, interval_s: float
) -> None:
    """A trigger interval makes rows wait as well, for half of it on average."""
    sample = CapacitySample(cores=1, rows_per_s=100.0, batch_s=batch_s)
    cost = BatchCost(fixed_s=batch_s, work_s=0.0)
    station = MicroBatchStation(cost=cost, arrival_rate=1.0, interval_s=interval_s)
    for latency_s in (0.4, 1.0, 1.5, 2.5, 5.0):
        assert sample.exceeds(latency_s, interval_s) == (station.latency(1) >= latency_s)
