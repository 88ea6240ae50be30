"""Three days on a cluster that grants cores in 90 s: the first day against the third (simulated).

The load has a daily and a weekly shape (`--trace FILE` takes a file of counts by the minute, from
its minute `--from 0` on). The default policy begins with nothing learned. In the second night the
controller is replaced by a new one, which begins with what the old one had learned. Cost is
compared with the oracle's, which knows the future and pays for cores from when they are granted.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.benching import Bench, Options, at_least, at_most
from tidegate.control.assemble import new_controller
from tidegate.control.assembly import Assembly
from tidegate.control.bounds import Bounds
from tidegate.control.decision import hold
from tidegate.control.measurement import Measurement
from tidegate.control.record import Record
from tidegate.control.target import Target
from tidegate.errors import AskedWrongly
from tidegate.models.microbatch.batch_cost import BatchCost
from tidegate.sim.microbatch.oracle import OracleSegment, oracle
from tidegate.sim.microbatch.pipeline import PipelineSimulation
from tidegate.sim.microbatch.world import SimulatedSegment, Stage, World
from tidegate.view.summary import summarise
from tidegate.workload.profile import Profile, steps
from tidegate.workload.trace import read_trace
from tidegate.workload.weeks import office_like

DAY_MINUTES = 24 * 60
TICK_S = 10.0
GRANT_S = 90.0
TARGET_S = 10.0
CORES = (1, 64)
FIXED_S, PER_TASK_S, WORK_S = 0.6, 0.004, 0.01
PEAK = 3500.0
"""The load is scaled so that its highest minute has this many rows per second."""
_FINE_S = 10
_DOWN_S = 60.0
"""How long no controller decides at the restart."""
_MONDAY_S = 1_699_833_600.0
"""Midnight (UTC) of a Monday."""


@dataclass(frozen=True, slots=True)
class Day:
    """One day of a run."""

    within: float
    """The share of its seconds that were within the target."""
    core_seconds: float
    changes: int


@dataclass(frozen=True, slots=True)
class Days:
    """The days of a run, and what its controller said after the restart."""

    days: tuple[Day, ...]
    learned_bytes: int
    notes: tuple[str, ...]
    """The notes of the first decision after the restart."""


def by_ten_seconds(counts: NDArray[np.float64]) -> Profile:
    """A load from counts by the minute, scaled to `PEAK` and without steps between the minutes."""
    rates = np.maximum(counts, 0.0) * PEAK / counts.max()
    at_s = np.arange(0, 60 * len(rates), _FINE_S)
    fine = np.interp(at_s, 60.0 * np.arange(len(rates)) + 30.0, rates)
    return steps(list(zip(at_s.astype(float).tolist(), fine.tolist(), strict=True)))


def run_days(
    load: Profile,
    seconds: float,
    *,
    restart_s: float,
    remember: bool = True,
    seed: int = 1,
    on_second: Callable[[float], None] = lambda _: None,
) -> Days:
    """Run the default policy, replace its controller at `restart_s`, and judge each day."""
    world = World(
        segments=(
            SimulatedSegment(
                fixed_s=FIXED_S,
                per_task_s=PER_TASK_S,
                stages=(Stage(name="work", work_s=WORK_S),),
            ),
        ),
        profile=load,
        seconds=seconds,
        cores=8,
        tick_s=TICK_S,
        bucket_s=0.1,
        grant_s=GRANT_S,
        noise=0.05,
        poisson=True,
        prompt=False,
        seed=seed,
        starts_s=_MONDAY_S,
    )
    assembly = Assembly(target=Target(TARGET_S), bounds=Bounds(*CORES), tick_s=TICK_S)
    body, controller = PipelineSimulation(world), new_controller(assembly)
    records: list[Record] = []
    size, notes, replaced = 0, (), False
    for tick in range(1, int(seconds / TICK_S) + 1):
        measurement = body.advance(tick * TICK_S)
        now_s = tick * TICK_S
        on_second(now_s)
        if not replaced and now_s > restart_s + _DOWN_S:
            text = json.dumps(controller.learned())
            controller, size, replaced = new_controller(assembly), len(text), True
            if remember:
                controller.recall(json.loads(text), measurement.at_s)
            record = controller.tick(measurement)
            notes = record.decision.notes
        elif restart_s < now_s <= restart_s + _DOWN_S:
            record = _undecided(tick, measurement)
        else:
            record = controller.tick(measurement)
        if record.acted:
            body.act(record.decision)
        records.append(record)
    return Days(by_day(records), size, notes)


def _undecided(tick: int, measurement: Measurement) -> Record:
    """A tick while no controller runs: it is judged and paid for like any other."""
    return Record(
        tick=tick,
        policy="none",
        target_s=TARGET_S,
        measurement=measurement,
        decision=hold("there is no controller"),
        acted=False,
    )


def by_day(records: Sequence[Record]) -> tuple[Day, ...]:
    """Each day by itself, judged as any run is: a second in which no batch ended counts, too."""
    days: dict[int, list[Record]] = {}
    for record in records:
        number = int((record.measurement.at_s - _MONDAY_S - 1e-6) // 86_400)
        days.setdefault(number, []).append(record)
    found = []
    for mine in days.values():
        summary = summarise(mine)
        found.append(Day(summary.within_target or 0.0, summary.core_seconds, summary.changes))
    return tuple(found)


def least(load: Profile, begin_s: float, seconds: float) -> float:
    """The oracle's core-seconds for a part of the load."""
    at_s = np.arange(0, int(seconds), _FINE_S)
    part = steps([(float(at), load.rate(begin_s + float(at))) for at in at_s])
    segment = OracleSegment(
        cost=BatchCost(fixed_s=FIXED_S, per_task_s=PER_TASK_S, work_s=WORK_S),
        imbalances=np.ones(CORES[1]),
    )
    cores = range(CORES[0], CORES[1] + 1)
    return oracle(part, seconds, [segment], Target(TARGET_S), cores).core_seconds


def counts_of(options: Options, minutes: int) -> NDArray[np.float64]:
    """The counts to run on: the generated week, or those of a file."""
    given = options.extra.get("trace")
    if given is None:
        return office_like()[:minutes]
    counts = read_trace(Path(given), fewest_rows=minutes)
    try:
        begin = int(options.extra.get("from", "0"))
    except ValueError:
        begin = -1
    if not 0 <= begin <= len(counts) - minutes:
        raise AskedWrongly(
            f"--from {options.extra.get('from')} is not possible; give a minute from 0 to"
            f" {len(counts) - minutes}, so that {minutes} minutes follow it"
        )
    return counts[begin : begin + minutes]


def run(options: Options) -> Bench:
    """Run three days (a quick run: two), and compare the first with the last."""
    counts = counts_of(options, (2 if options.quick else 3) * DAY_MINUTES)
    load, seconds = by_ten_seconds(counts), 60.0 * len(counts)
    options.progress.expect(seconds)
    options.progress.doing(f"{seconds / 3600:.0f} hours, with a restart in the second night")
    found = run_days(
        load, seconds, restart_s=86_400 + 2 * 3600.0, on_second=options.progress.reached
    )
    results: list[dict[str, Any]] = []
    for number, day in enumerate(found.days):
        bound = least(load, 86_400.0 * number, 86_400.0)
        results.append(
            {
                "day": number + 1,
                "within_target": round(day.within, 4),
                "core_hours": round(day.core_seconds / 3600, 1),
                "oracle_core_hours": round(bound / 3600, 1),
                "cost_over_oracle": round(day.core_seconds / bound, 4),
                "changes": day.changes,
            }
        )
        options.say(f"day {number + 1}: {results[-1]}")
    last = results[-1]
    return Bench(
        "days",
        [*results, {"learned_bytes": found.learned_bytes, "after the restart": found.notes}],
        [
            at_least("the last day, seconds within target", last["within_target"], 0.99),
            at_most("the last day, cost over the oracle's", last["cost_over_oracle"], 1.15),
        ],
    )
