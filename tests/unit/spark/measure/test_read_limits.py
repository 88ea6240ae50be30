"""Limits that sources were loaded with."""

from types import SimpleNamespace

from tidegate.spark.measure.read_limits import NO_LIMITS, ReadLimits, limits_of, read_limits


def test_limits_add_up_over_sources() -> None:
    one = {"maxOffsetsPerTrigger": "300", "minPartitions": "5", "subscribe": "a"}
    assert limits_of([one]) == ReadLimits(rows=300, min_partitions=5)
    assert limits_of([one, {"MAXOFFSETSPERTRIGGER": "200"}]) == ReadLimits(
        rows=500, min_partitions=5
    )
    assert limits_of([one, {"subscribe": "b"}]).rows is None, "the other one has no limit"
    assert limits_of([{"maxFilesPerTrigger": "2"}]) == ReadLimits(files=2)
    assert limits_of([{"maxOffsetsPerTrigger": "many"}]) == NO_LIMITS
    assert limits_of([]) == NO_LIMITS


def test_a_query_whose_plan_is_elsewhere_has_no_known_limits() -> None:
    query = SimpleNamespace(_jsq=SimpleNamespace(streamingQuery=lambda: SimpleNamespace()))
    assert read_limits(query) == NO_LIMITS
