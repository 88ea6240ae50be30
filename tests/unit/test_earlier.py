"""What an earlier run's records tell before the next start."""

import dataclasses

import pytest
from pipeline_worlds import controller, world

from tidegate.control.counts import ClassCount, SourceCount
from tidegate.control.earlier import earlier, refuse_unshedable
from tidegate.control.record import Record
from tidegate.errors import AskedWrongly
from tidegate.pipelines.shedding import ShedClass
from tidegate.sim.pipeline import simulate

FLOOR_S = 1.5 * (0.30 + 0.01 * 2)
"""Of the simulated pipeline on two tasks."""


@pytest.fixture(scope="module")
def records() -> list[Record]:
    return list(simulate(world(seconds=90.0), controller()).records)


def with_classes(records: list[Record], gold: int, rest: int) -> list[Record]:
    """The same run, with the rows of every tick counted by class."""
    classes = (
        ClassCount(name="gold", offered=gold, kept=gold),
        ClassCount(name="other", offered=rest, kept=rest),
    )
    source = SourceCount(name="in", offered=gold + rest, kept=gold + rest, classes=classes)
    return [
        dataclasses.replace(
            record, measurement=dataclasses.replace(record.measurement, sources=(source,))
        )
        for record in records
    ]


def test_the_floor_of_the_pipeline_is_known(records: list[Record]) -> None:
    known = earlier(records)
    assert known is not None
    assert known.floor_s(2) == pytest.approx(FLOOR_S, rel=0.25)
    assert list(known.costs) == ["main"]
    assert known.rate_by_class == {}


def test_a_run_that_had_learned_nothing_tells_nothing(records: list[Record]) -> None:
    assert earlier([]) is None
    assert earlier([dataclasses.replace(records[0], beliefs={})]) is None


def test_a_target_below_the_floor_is_refused_with_the_floor(records: list[Record]) -> None:
    known = earlier(records)
    assert known is not None
    refuse_unshedable(known, target_s=2.0, cores=12, least=1, classes={})
    with pytest.raises(AskedWrongly, match="a target of 300 ms is below the floor of"):
        refuse_unshedable(known, target_s=0.3, cores=12, least=1, classes={})


def test_floors_that_all_cores_cannot_keep_are_refused(records: list[Record]) -> None:
    known = earlier(with_classes(records, gold=3000, rest=1000))
    assert known is not None
    assert known.rate_by_class == pytest.approx({"gold": 3000.0, "other": 1000.0}, rel=0.01)
    classes = {"gold": ShedClass(floor=0.9), "other": ShedClass()}
    refuse_unshedable(known, target_s=1.5, cores=12, least=1, classes=classes)
    with pytest.raises(AskedWrongly, match="promised floors add up to 2,700 rows/s"):
        refuse_unshedable(known, target_s=1.5, cores=2, least=1, classes=classes)
