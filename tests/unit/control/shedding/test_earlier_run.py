"""What an earlier run's records tell before the next start."""

import dataclasses

import numpy as np
import pytest

from tests.helpers.pipeline_worlds import controller, measured, world
from tests.helpers.synthetic_surge import record
from tidegate.control.record import Record
from tidegate.control.row_counts import ClassCount, SourceCount
from tidegate.control.shedding.earlier_run import earlier, objections
from tidegate.pipelines.shedding import ShedClass
from tidegate.sim.microbatch.pipeline import simulate

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
    assert 0.5 * FLOOR_S < known.floor_s() < 1.1 * FLOOR_S, "at best, so rather too low"
    assert list(known.costs) == ["main"]
    assert known.rate_by_class == {}


def test_a_slow_hour_is_not_held_against_the_pipeline(records: list[Record]) -> None:
    slow = [
        dataclasses.replace(one, beliefs={**one.beliefs, "main.a0_s": 5.0, "bias": 2.5})
        for one in records[-5:]
    ]
    best, worse = earlier(records), earlier([*records, *slow])
    assert best is not None and worse is not None
    assert worse.floor_s() == best.floor_s()


def test_the_least_time_of_tasks_is_part_of_the_floor() -> None:
    """Records from before it was told count as if there were none."""
    beliefs = {"main.a0_s": 0.2, "main.a1_s": 0.01, "main.w_s": 1e-3}
    older = dataclasses.replace(record(0), measurement=measured(0), beliefs=beliefs)
    told = dataclasses.replace(older, beliefs={**beliefs, "main.least_s": 0.4})
    without, known = earlier([older]), earlier([told])
    assert without is not None and known is not None
    assert without.floor_s() == pytest.approx(1.5 * 0.21)
    assert known.floor_s() == pytest.approx(1.5 * 0.61)
    asked = {"over_mean": 1.0, "trigger_s": 0.0, "cores": 4, "classes": {}}
    assert objections(known, target_s=0.7, **asked)
    assert not objections(without, target_s=0.7, **asked)


def test_a_run_that_had_learned_nothing_tells_nothing(records: list[Record]) -> None:
    assert earlier([]) is None
    assert earlier([dataclasses.replace(records[0], beliefs={})]) is None


def said(records: list[Record], target_s: float, cores: int, **classes: ShedClass) -> list[str]:
    known = earlier(records)
    assert known is not None
    return objections(
        known, target_s=target_s, over_mean=1.0, trigger_s=0.0, cores=cores, classes=classes
    )


def test_a_target_below_the_floor_is_said_with_the_floor(records: list[Record]) -> None:
    assert said(records, 2.0, 12) == []
    (sentence,) = said(records, 0.2, 12)
    assert "a target of 200 ms is below the floor of" in sentence


def test_floors_that_all_cores_cannot_keep_are_said(records: list[Record]) -> None:
    counted = with_classes(records, gold=3000, rest=1000)
    known = earlier(counted)
    assert known is not None
    usual = float(np.median([record.measurement.arrival_rate for record in records]))
    assert known.rate_by_class == pytest.approx({"gold": 0.75 * usual, "other": 0.25 * usual})
    classes = {"gold": ShedClass(floor=0.9), "other": ShedClass()}
    assert said(counted, 1.5, 12, **classes) == []
    busy = [
        dataclasses.replace(
            one, measurement=dataclasses.replace(one.measurement, arrival_rate=8000.0)
        )
        for one in counted
    ]
    (sentence,) = said(busy, 1.5, 2, **classes)
    assert "promised floors add up to 5,400 rows/s" in sentence
    assert len(said(busy, 0.2, 2, **classes)) == 2, "both are said"
