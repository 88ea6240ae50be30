"""Each cause is named by its evidence, and by nothing less."""

from dataclasses import replace

import pytest

from tidegate.control.batch_parts import LOG, OFFSETS, PLANNING, SLOWEST, STAGES
from tidegate.control.effect.judged_batch import JudgedBatch
from tidegate.control.effect.likely_cause import (
    HOT_KEY,
    HOT_PARTITION,
    IDLE,
    PARTITIONS,
    PLANNING_TIME,
    SINK,
    SKEW,
    SOURCE,
    STORAGE,
    UNKNOWN,
    Evidence,
    HottestShard,
    likely_cause,
)
from tidegate.control.effect.series import Before
from tidegate.control.lag import Lag, PartitionLag
from tidegate.models.microbatch.batch_cost import BatchCost


def batch(tasks: int, **changes: object) -> JudgedBatch:
    plain = JudgedBatch(
        rows=1000, tasks=tasks, duration_s=4.0, imbalance=1.1, parts_s={}, busy_s=None
    )
    return replace(plain, **changes)


def evidence(*, before: dict[str, object] | None = None, **changes: object) -> Evidence:
    """Batches on 8 tasks after those on 2; `after` are changes of the batches on 8."""
    after = changes.pop("after", {})
    told = {
        "before": Before(
            batches=tuple(batch(2, **(before or {})) for _ in range(3)),
            cores=2,
            cost=BatchCost(fixed_s=0.3, work_s=1e-3),
            imbalance_on=lambda tasks: 1.1,
        ),
        "after": [batch(8, **after) for _ in range(3)],  # type: ignore[arg-type]
        **changes,
    }
    return Evidence(**told)  # type: ignore[arg-type]


def lag(partitions: int, **changes: object) -> Lag:
    parts = tuple(
        PartitionLag(topic="ads", partition=number, behind_rows=0, taken_rows=10)
        for number in range(partitions)
    )
    return Lag(partitions=parts, **changes)  # type: ignore[arg-type]


def test_partitions_fewer_than_the_cores() -> None:
    found = likely_cause(evidence(lag=lag(2), reads=True, after={"busy_s": 7.5}))
    assert found.name == PARTITIONS
    assert "2 tasks read the source for 8 cores; set minPartitions to 8 or more" in found.why
    assert likely_cause(evidence(lag=lag(1), reads=True)).why.count("1 task reads") == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"lag": lag(8), "reads": True},
        {"lag": lag(2, min_partitions=8), "reads": True},
        {"lag": lag(2), "reads": False},
        {"lag": lag(4), "reads": True, "after": {"busy_s": 4.0}},
        {"lag": None, "reads": True},
    ],
    ids=["enough", "split", "dealt to tasks of their own", "one of four is busy", "not told"],
)
def test_partitions_that_are_no_cause(changes: dict[str, object]) -> None:
    assert likely_cause(evidence(**changes)).name != PARTITIONS


def test_a_hot_partition_comes_before_their_number() -> None:
    hot = PartitionLag(topic="ads", partition=3, behind_rows=100)
    found = likely_cause(evidence(lag=lag(4), reads=True, hot_partitions=[(hot, 5.2)]))
    assert found.name == HOT_PARTITION
    assert "partition 3 of 'ads' gets 5 times as many rows" in found.why


def test_one_hot_key_and_skew_are_told_apart_by_the_shards() -> None:
    uneven = {"before": {"imbalance": 1.6}, "after": {"imbalance": 6.4}}
    hot = {"count": HottestShard(7, 0.8)}
    assert likely_cause(evidence(**uneven, hot_shards=hot)).name == HOT_KEY
    assert "shard 7 of 'count' has 80 %" in likely_cause(evidence(**uneven, hot_shards=hot)).why
    found = likely_cause(evidence(**uneven, hot_shards={"count": HottestShard(7, 0.1)}))
    assert found.name == SKEW
    assert "the fullest task has 6.4 times the mean of 8" in found.why


@pytest.mark.parametrize(
    "changes",
    [
        {"before": {"imbalance": 1.9}, "after": {"imbalance": 1.9}},
        {"before": {"imbalance": 1.0}, "after": {"imbalance": 1.3}},
        {"after": {"imbalance": 6.4, "parts_s": {SLOWEST: 0.4, STAGES: 3.6}}},
    ],
    ids=["the fullest task has fewer rows", "even", "tasks take a tenth of the batch"],
)
def test_an_imbalance_that_is_no_cause(changes: dict[str, object]) -> None:
    assert likely_cause(evidence(**changes)).name not in (SKEW, HOT_KEY)


@pytest.mark.parametrize(
    ("parts_s", "cause", "said"),
    [
        ({OFFSETS: 2.4, STAGES: 1.6}, SOURCE, "60 % of a batch"),
        ({PLANNING: 2.2, STAGES: 1.8}, PLANNING_TIME, "55 % of a batch"),
        ({LOG: 3.0, STAGES: 1.0}, STORAGE, "75 % of a batch"),
        ({SLOWEST: 0.8, STAGES: 3.2}, SINK, "80 % of a batch is not spent in their tasks"),
    ],
)
def test_a_part_of_the_batch_in_which_no_task_works(
    parts_s: dict[str, float], cause: str, said: str
) -> None:
    found = likely_cause(evidence(after={"parts_s": parts_s}))
    assert found.name == cause
    assert said in found.why


@pytest.mark.parametrize(
    ("busy_s", "cause", "said"),
    [
        (1.2, SINK, "0.3 of 8 cores are busy"),
        (4.0, HOT_KEY, "one task does nearly all of the work"),
        (12.0, IDLE, "3.0 of 8 cores are busy"),
    ],
)
def test_cores_that_are_granted_and_idle(busy_s: float, cause: str, said: str) -> None:
    found = likely_cause(evidence(after={"busy_s": busy_s, "parts_s": {STAGES: 3.9}}))
    assert found.name == cause
    assert said in found.why


def test_rows_that_take_longer_the_more_tasks_there_are() -> None:
    found = likely_cause(evidence(before={"busy_s": 7.0}, after={"busy_s": 28.0}))
    assert found.name == SINK
    assert "a row takes 4.0 times as long in its task as on 2 cores" in found.why


def test_nothing_is_made_up() -> None:
    assert likely_cause(evidence()).name == UNKNOWN
    busy = evidence(before={"busy_s": 28.0}, after={"busy_s": 28.0})
    assert likely_cause(busy).name == UNKNOWN
