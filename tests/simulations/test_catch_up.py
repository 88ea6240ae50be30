"""A restart into an hour of backlog at three times the steady rate, in the simulator.

The source has a read limit, as a Kafka source with maxOffsetsPerTrigger has.
"""

import dataclasses
import re
from functools import cache
from typing import Any

import pytest

from tests.helpers.pipeline_worlds import world
from tidegate.control.assemble import new_controller
from tidegate.control.assembly import Assembly
from tidegate.control.bounds import Bounds
from tidegate.control.latency.options import LatencyOptions
from tidegate.control.record import Record
from tidegate.control.target import Target
from tidegate.sim.microbatch.outcome import Outcome
from tidegate.sim.microbatch.pipeline import simulate
from tidegate.units import parse_duration
from tidegate.workload.profile import steps

RATE = 300.0
BACKLOG = 3 * 3600 * RATE
TARGET_S = 3.0
MOST = 12


def run(
    *, catch_up_s: float, seconds: float, backlog: float = BACKLOG, **changes: Any
) -> tuple[Outcome, dict[str, Any]]:
    began = world(
        steps([(0, RATE)]),
        seconds=seconds,
        backlog_rows=backlog,
        prompt=False,
        grant_s=3.0,
        bucket_s=0.05,
    )
    segment = dataclasses.replace(began.segments[0], limit_rows=20_000 if backlog else None)
    began = dataclasses.replace(began, segments=(segment,))
    controller = new_controller(
        Assembly(
            target=Target(TARGET_S),
            bounds=Bounds(1, MOST),
            latency=LatencyOptions(catch_up_s=catch_up_s),
            **changes,
        )
    )
    if backlog:
        controller.recall(before(), began.starts_s)
    return simulate(began, controller), controller.learned()


@cache
def before() -> dict[str, Any]:
    """What the run learned that ended an hour before."""
    _, learned = run(catch_up_s=5.0, seconds=120.0, backlog=0.0)
    return {**learned, "at_s": world().starts_s - 3600.0}


def gone(records: tuple[Record, ...]) -> int:
    """The first tick at which no more rows wait than a pipeline on target has."""
    return next(
        number
        for number, record in enumerate(records)
        if number > 3 and record.measurement.backlog_rows < 1.4 * TARGET_S * RATE
    )


def assert_calm(records: tuple[Record, ...]) -> None:
    """No scale-in on the way, nothing poisoned afterwards, and the target is held again."""
    done = gone(records)
    for record in records[:done]:
        fewer = record.decision.cores is not None and (
            record.decision.cores < record.measurement.cores_asked
        )
        assert not (record.acted and fewer), record.decision.reason
    assert max(record.beliefs.get("forecast_rate", 0.0) for record in records) < 1.3 * RATE
    after = records[done + 20 :]
    assert len(after) > 60
    late = [r for r in after if r.measurement.latency and r.measurement.latency.mean_s > TARGET_S]
    assert len(late) <= 0.05 * len(after)
    assert after[-1].measurement.cores_granted <= 2, "the cores for the backlog are released"


def test_the_backlog_is_gone_within_the_stated_time() -> None:
    outcome, _ = run(catch_up_s=700.0, seconds=900.0)
    assert gone(outcome.records) <= 700
    assert_calm(outcome.records)
    most = max(record.measurement.cores_granted for record in outcome.records)
    assert most < MOST, "no more cores than the time asks for"
    assert not [n for r in outcome.records for n in r.decision.notes if "backlog" in n]


def test_what_all_cores_allow_is_said_beforehand() -> None:
    outcome, _ = run(catch_up_s=60.0, seconds=700.0)
    said = [n for r in outcome.records for n in r.decision.notes if "backlog" in n]
    found = re.search(r"needs about (.+?) on all 12 cores", said[0])
    assert found is not None, said[0]
    assert len(set(said)) <= 2, "one backlog is one sentence, or one more if it was wrong"
    assert gone(outcome.records) == pytest.approx(parse_duration(found[1]), rel=0.2)
    assert_calm(outcome.records)


def test_a_backlog_is_not_shed_unless_that_is_asked_for() -> None:
    kept, _ = run(catch_up_s=60.0, seconds=700.0, shed="model")
    assert kept.shed == 0.0
    assert_calm(kept.records)
    shed, _ = run(catch_up_s=60.0, seconds=300.0, shed="model", shed_backlog=True)
    assert shed.shed > 0.5 * BACKLOG
    assert gone(shed.records) < 0.5 * gone(kept.records)


def test_an_overload_during_a_backlog_is_still_shed() -> None:
    """The rate is more than all cores carry, so the backlog would never be gone."""
    began = world(steps([(0, 20_000.0)]), seconds=60.0, cores=12, backlog_rows=200_000.0)
    segment = dataclasses.replace(began.segments[0], limit_rows=20_000)
    began = dataclasses.replace(began, segments=(segment,))
    assembly = Assembly(target=Target(TARGET_S), bounds=Bounds(1, 12), shed="model")
    outcome = simulate(began, new_controller(assembly))
    assert outcome.shed > 0.0
