"""What the model of a pipeline has learned survives JSON and a restart, and fades with age."""

import dataclasses
import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.pipeline_worlds import controller
from tidegate.control.learning.pipeline_model import PipelineModel
from tidegate.control.measurement import (
    BatchMeasurement,
    Measurement,
    SegmentMeasurement,
)
from tidegate.control.record import Record
from tidegate.control.remembering import Remembering
from tidegate.sim.microbatch.pipeline import PipelineSimulation
from tidegate.sim.microbatch.world import SimulatedSegment, Stage, World
from tidegate.workload.profile import sine

WEEK_S = 7 * 86_400.0


def world(seed: int, noise: float, segments: int = 2) -> World:
    return World(
        segments=tuple(
            SimulatedSegment(
                name="main" if number == 0 else f"s{number}",
                fixed_s=0.2,
                per_task_s=0.01,
                gather_s=1e-5,
                stages=(Stage(name=f"o{number}", work_s=1e-3),),
                after=None if number == 0 else ("main" if number == 1 else f"s{number - 1}"),
            )
            for number in range(segments)
        ),
        profile=sine(1500.0, 1000.0, 40.0),
        seconds=60.0,
        cores=8,
        noise=noise,
        seed=seed,
    )


def run(model: PipelineModel, seed: int = 1, noise: float = 0.05) -> Measurement:
    """Let a model learn from a minute of a simulated pipeline; return the last measurement."""
    simulation = PipelineSimulation(world(seed, noise))
    for second in range(1, 61):
        measurement = simulation.advance(float(second))
        model.learn(measurement)
    return measurement


def predictions(model: PipelineModel, measurement: Measurement) -> list[float]:
    found = []
    for cores in (2, 5, 9):
        stations = model.stations(
            measurement,
            1.2 * measurement.arrival_rate,
            dict.fromkeys((one.name for one in measurement.segments), cores),
        )
        assert stations is not None
        for station in stations:
            found += [station.latency(cores), station.noise, station.imbalance]
            found += [station.cost.fixed_s, station.cost.per_task_s, station.cost.work_s]
    return [*found, model.shed_row_s, model.kept_share]


def restarted(model: PipelineModel, age_s: float) -> PipelineModel:
    fresh = PipelineModel()
    fresh.recall(json.loads(json.dumps(model.learned(), allow_nan=False)), age_s)
    return fresh


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(1, 1000), noise=st.floats(0.0, 0.15), tells=st.booleans())
def test_the_predictions_are_the_same_after_a_restart(seed: int, noise: float, tells: bool) -> None:
    model = PipelineModel()
    simulation = PipelineSimulation(world(seed, noise))
    for second in range(1, 61):
        measurement = simulation.advance(float(second))
        if not tells:
            measurement = untold(measurement)
        model.learn(measurement)
    after = restarted(model, 0.0)
    assert predictions(after, measurement) == pytest.approx(
        predictions(model, measurement), rel=1e-4, abs=1e-9
    )


def untold(measurement: Measurement) -> Measurement:
    """The measurement without the parts of durations, as an attached query gives it."""
    segments = tuple(
        dataclasses.replace(
            one, batches=tuple(dataclasses.replace(batch, parts_s={}) for batch in one.batches)
        )
        for one in measurement.segments
    )
    return dataclasses.replace(measurement, segments=segments)


def test_what_was_learned_is_bounded_and_a_second_restart_keeps_it() -> None:
    model = PipelineModel()
    measurement = run(model)
    kept = json.dumps(model.learned())
    assert len(kept) < 60_000
    twice = restarted(restarted(model, 0.0), 0.0)
    assert twice.learned()["segments"].keys() == model.learned()["segments"].keys()
    assert predictions(twice, measurement) == pytest.approx(
        predictions(model, measurement), rel=1e-4, abs=1e-9
    )
    first = restarted(model, 0.0)
    run(first, seed=2)
    assert len(json.dumps(first.learned())) < 60_000
    assert predictions(first, measurement) == pytest.approx(
        predictions(model, measurement), rel=0.3, abs=0.2
    )


def test_the_first_batch_after_a_long_time_outweighs_what_is_old() -> None:
    """The work per row has doubled since: a fresh memory learns it sooner."""
    model = PipelineModel()
    last = run(model, noise=0.0)
    soon, late = restarted(model, 0.0), restarted(model, 8 * WEEK_S)
    slower = dataclasses.replace(last, segments=tuple(_slower(one) for one in last.segments))
    for tick in range(4):
        at_s = last.at_s + 10.0 + tick
        measurement = dataclasses.replace(
            slower,
            at_s=at_s,
            segments=tuple(_later(one, at_s, tick) for one in slower.segments),
        )
        soon.learn(measurement)
        late.learn(measurement)
    old, kept, fresh = (_overhead_s(one, last) for one in (model, soon, late))
    assert old < kept < fresh


def _slower(segment: SegmentMeasurement) -> SegmentMeasurement:
    batch = BatchMeasurement(
        batch_id=5,
        rows=1000,
        tasks=8,
        imbalance=1.0,
        duration_s=0.2 + 0.08 + 0.125 + 0.3,
        ended_s=0.0,
        parts_s={"slowest": 0.125, "starting": 0.08},
    )
    return dataclasses.replace(segment, batches=(batch,))


def _later(segment: SegmentMeasurement, at_s: float, tick: int) -> SegmentMeasurement:
    batch = dataclasses.replace(segment.batches[0], ended_s=at_s, batch_id=5 + tick)
    return dataclasses.replace(segment, batches=(batch,))


def _overhead_s(model: PipelineModel, measurement: Measurement) -> float:
    cost = model.segment("main").cost
    assert cost is not None
    return cost.overhead_s(8)


def test_a_segment_that_is_gone_ages_until_it_is_forgotten_and_a_new_one_is_learned() -> None:
    """It may come back, as a query that is attached later; but not after months."""
    model = PipelineModel()
    last = run(model)
    after = restarted(model, 0.0)
    alone = dataclasses.replace(
        last, segments=(last.segments[0], dataclasses.replace(last.segments[1], name="new"))
    )
    after.learn(alone)
    assert {name.split(".")[0] for name in after.beliefs()} >= {"main"}
    assert not any(name.startswith("s1.") for name in after.beliefs())
    assert after.segment("main").cost is not None
    later = dataclasses.replace(alone, at_s=alone.at_s + 3 * WEEK_S)
    after.learn(later)
    kept = after.learned()["segments"]
    assert kept["s1"] == model.learned()["segments"]["s1"]
    back, gone = restarted(after, 0.0), restarted(after, 2 * WEEK_S)
    assert back.segment("s1").cost is not None and gone.segment("s1").cost is None
    assert gone.segment("main").cost is not None


def test_a_restart_before_the_first_batch_loses_nothing() -> None:
    """Attached queries may start long after the loop, which keeps what it has every few seconds."""
    model = PipelineModel()
    last = run(model)
    waiting = restarted(model, 60.0)
    waiting.learn(dataclasses.replace(last, at_s=last.at_s + 70.0, segments=(), operators=()))
    again = restarted(waiting, 5.0)
    assert predictions(again, last) == pytest.approx(predictions(model, last), rel=1e-2, abs=1e-3)


def test_a_segment_with_other_operators_trusts_what_it_recalls_less() -> None:
    model = PipelineModel()
    last = run(model, noise=0.0)
    same, other = restarted(model, 0.0), restarted(model, 0.0)
    for number, after in enumerate((same, other)):
        for tick in range(6):
            at_s = last.at_s + 10.0 + tick
            segments = tuple(_later(_slower(one), at_s, tick) for one in last.segments)
            operators = tuple(
                dataclasses.replace(op, name=op.name + ("" if number == 0 else "-new"))
                for op in last.operators
            )
            after.learn(
                dataclasses.replace(last, at_s=at_s, segments=segments, operators=operators)
            )
    assert _overhead_s(model, last) < _overhead_s(same, last) < _overhead_s(other, last)


def test_a_controller_keeps_the_model() -> None:
    first = controller()
    simulation = PipelineSimulation(world(1, 0.05, segments=1))
    for second in range(1, 61):
        measurement = simulation.advance(float(second))
        first.tick(measurement)
    kept = json.loads(json.dumps(first.learned()))
    second_run = controller()
    second_run.recall(kept, measurement.at_s + 5.0)
    later = dataclasses.replace(measurement, at_s=measurement.at_s + 10.0, segments=())
    assert isinstance(PipelineModel(), Remembering)
    quiet = dataclasses.replace(
        later, segments=tuple(dataclasses.replace(s, batches=()) for s in measurement.segments)
    )
    record = second_run.tick(quiet)
    assert record.beliefs["main.w_s"] == pytest.approx(1e-3, rel=0.1)


def test_records_of_batches_without_parts_are_still_read() -> None:
    record = controller().tick(PipelineSimulation(world(1, 0.0, segments=1)).advance(3.0))
    document: dict[str, Any] = json.loads(record.to_json())
    assert Record.from_json(json.dumps(document)).measurement == record.measurement
    for segment in document["measurement"]["segments"]:
        del segment["loops"]
        for batch in segment["batches"]:
            del batch["parts_s"]
    old = Record.from_json(json.dumps(document)).measurement
    assert all(not batch.parts_s for segment in old.segments for batch in segment.batches)


def test_nothing_learned_is_nothing_to_recall() -> None:
    model = PipelineModel()
    model.recall({}, math.inf)
    assert model.beliefs() == {}
