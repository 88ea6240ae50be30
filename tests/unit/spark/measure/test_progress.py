"""Spark's progress report as our record."""

import json
from typing import Any

import pytest

from tidegate.spark.measure.progress import batch_progress


def report(**changes: Any) -> dict[str, Any]:
    return {
        "batchId": 7,
        "timestamp": "2026-03-01T12:00:00.250Z",
        "numInputRows": 300,
        "inputRowsPerSecond": 1000.0,
        "processedRowsPerSecond": 600.0,
        "durationMs": {
            "addBatch": 300,
            "commitOffsets": 60,
            "getBatch": 5,
            "latestOffset": 15,
            "queryPlanning": 20,
            "triggerExecution": 500,
            "walCommit": 40,
        },
    } | changes


def test_the_parts_add_up_to_the_whole() -> None:
    batch = batch_progress(json.dumps(report()))
    assert batch is not None
    assert (batch.batch_id, batch.rows, batch.arrival_rate) == (7, 300, 1000.0)
    assert batch.processed_rate == pytest.approx(600.0)
    assert batch.work_s == 0.3 and batch.log_s == 0.1
    parts_s = (
        batch.offsets_s + batch.planning_s + batch.reading_s + batch.work_s + batch.log_s
    ) + batch.other_s
    assert parts_s == pytest.approx(batch.duration_s)
    assert batch.other_s == pytest.approx(0.06)


def test_the_end_is_the_start_and_the_duration() -> None:
    batch = batch_progress(report())
    assert batch is not None
    assert batch.start_us == 1_772_366_400_250_000
    assert batch.end_us == batch.start_us + 500_000


def test_a_trigger_without_a_batch_is_none() -> None:
    idle = report(numInputRows=0, durationMs={"latestOffset": 1, "triggerExecution": 2})
    assert batch_progress(idle) is None


@pytest.mark.parametrize("rate", ["NaN", None, float("nan")])
def test_a_missing_rate_is_zero(rate: Any) -> None:
    batch = batch_progress(report(inputRowsPerSecond=rate))
    assert batch is not None and batch.arrival_rate == 0.0


def test_what_kafka_left_for_later_batches() -> None:
    told = {
        "batchId": 7,
        "numInputRows": 10,
        "timestamp": "2026-01-01T00:00:00.000Z",
        "durationMs": {"addBatch": 200, "triggerExecution": 300},
    }
    kafka = {"endOffset": {"a": {"0": 5, "1": 7}}, "latestOffset": {"a": {"0": 9, "1": 7, "2": 3}}}
    files = {"endOffset": '{"logOffset": 3}', "latestOffset": None}
    for sources, behind in (([kafka, files], 4), ([files], 0), ([], 0), (None, 0)):
        found = batch_progress({**told, "sources": sources})
        assert found is not None and found.behind_rows == behind


def test_what_a_batch_took_from_channels_is_known_by_their_offsets() -> None:
    """A user's sources come first, whatever their offsets look like."""
    sources = [
        {"startOffset": {"logOffset": 3}, "endOffset": {"logOffset": 4}},
        {"startOffset": "7", "endOffset": "9"},
        {"startOffset": None, "endOffset": {"batches": 2}},
        {"startOffset": {"batches": 4}, "endOffset": {"batches": 4}},
    ]
    batch = batch_progress(report(sources=sources))
    assert batch is not None and batch.channel_offsets == ((0, 2), (4, 4))


def test_how_far_each_partition_was_read() -> None:
    """Partition 2 came since the last batch; a source's first batch has no start."""
    kafka = {
        "startOffset": {"a": {"0": 1, "1": 7}},
        "endOffset": {"a": {"0": 5, "1": 7, "10": 2}},
        "latestOffset": {"a": {"0": 9, "1": 7, "10": 3}},
    }
    first = {**kafka, "startOffset": None}
    batch = batch_progress(report(sources=[kafka, first]))
    assert batch is not None
    told = [(one.source, one.partition, one.taken, one.behind) for one in batch.partitions]
    assert told == [
        (0, 0, 4, 4),
        (0, 1, 0, 0),
        (0, 10, 2, 1),
        (1, 0, 0, 4),
        (1, 1, 0, 0),
        (1, 10, 0, 1),
    ]


@pytest.mark.parametrize(
    ("metrics", "behind"),
    [({"avgOffsetsBehindLatest": "2.5"}, 5), ({"avgOffsetsBehindLatest": "NaN"}, 0), (None, 0)],
)
def test_what_kafka_left_by_its_metrics_alone(metrics: Any, behind: int) -> None:
    source = {"endOffset": {"a": {"0": 5, "1": 7}}, "latestOffset": None, "metrics": metrics}
    batch = batch_progress(report(sources=[source]))
    assert batch is not None and batch.behind_rows == behind
    assert batch.partitions == ()


@pytest.mark.parametrize(
    ("operators", "state_s"),
    [
        ([], None),
        ([{"operatorName": "dedupe"}], None),
        ([{"commitTimeMs": -1}], None),
        ([{"commitTimeMs": 120}, {"commitTimeMs": 30}], 0.15),
    ],
)
def test_what_writing_state_took(operators: list[dict[str, Any]], state_s: float | None) -> None:
    """Spark adds it up over the tasks, and tells nothing of queries without state."""
    batch = batch_progress(report(stateOperators=operators))
    assert batch is not None and batch.state_s == state_s
