"""Lag in measurements and records."""

import json
from dataclasses import replace

from tests.helpers.pipeline_worlds import controller, measured
from tidegate.control.lag import Lag, PartitionLag
from tidegate.control.record import Record
from tidegate.view.explain import explain
from tidegate.view.lag import lag_words
from tidegate.view.summary import summarise

PARTS = (
    PartitionLag(topic="t", partition=0, behind_rows=300, taken_rows=10, arrived_rows=20),
    PartitionLag(topic="t", partition=1, behind_rows=700, stuck=True),
)
LAG = Lag(partitions=PARTS, seconds=2.5, limit_rows=10)


def lagging(tick: int, lag: Lag | None = LAG):
    found = measured(tick)
    return replace(found, segments=(replace(found.segments[0], lag=lag),))


def test_lag_is_kept_in_records_and_older_ones_are_read() -> None:
    record = controller().tick(lagging(0))
    assert Record.from_json(record.to_json()) == record
    document = json.loads(record.to_json())
    for segment in document["measurement"]["segments"]:
        del segment["lag"]
        for batch in segment["batches"]:
            del batch["busy_s"], batch["rowless_s"]
    older = Record.from_json(json.dumps(document)).measurement
    assert older == lagging(0, None)
    assert (older.lag_rows, older.lag_s) == (None, None)


def test_a_measurement_adds_up_the_lag_of_its_segments() -> None:
    one = lagging(0)
    assert (one.lag_rows, one.lag_s, LAG.reachable_rows) == (1000, 2.5, 300)
    other = replace(one.segments[0], name="other", lag=replace(LAG, seconds=4.0))
    both = replace(one, segments=(*one.segments, other))
    assert (both.lag_rows, both.lag_s) == (2000, 4.0)


def test_tasks_that_read() -> None:
    assert LAG.readers == 1, "one partition had rows"
    assert replace(LAG, min_partitions=6).readers == 6
    assert Lag(limit_files=1).readers is None
    idle = tuple(replace(one, taken_rows=0) for one in PARTS)
    assert Lag(partitions=idle).readers == 2, "no batch ended"


def test_lag_in_words() -> None:
    decides = controller()
    records = [decides.tick(lagging(n, LAG if n < 20 else Lag(partitions=()))) for n in range(30)]
    assert lag_words(records[0].measurement) == "1,000 rows, 2.5 s"
    assert lag_words(records[-1].measurement) == "0 rows"
    assert lag_words(measured(0)) is None
    found = summarise(records)
    assert (found.largest_lag_rows, found.largest_lag_s) == (1000, 2.5)
    assert ("most rows left in the source", "1,000") in found.lines()
    told = explain(records)
    assert told.lag == (
        "Rows stayed behind in the source: 1,000 rows, 2.5 s at most, 0 rows at last."
    )
    assert any("is stuck" in what and seconds == 20.0 for what, seconds in told.source_limits)
    assert any("is stuck" in note for note in records[5].decision.notes)
