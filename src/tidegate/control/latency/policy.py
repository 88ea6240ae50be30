"""The default on a pipeline of micro-batches: the fewest cores that hold a latency target.

Every segment is a micro-batch station learned online; the load is forecast to the horizon (the
observed time to grant cores plus one batch) with a calibrated margin; `provision` gives the fewest
cores that hold the target there. More cores are asked for at once and as many as needed; fewer only
after `scale_in_after_s` in which no tick needed more, never while a backlog is being caught up, and
in one step. A scale-in that had to be taken back at the same load makes the next one wait twice as
long.
"""

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from tidegate.control.allocation.allocate import (
    Allocation,
    Infeasible,
    LatencyOutOfReach,
    assign,
    provision,
)
from tidegate.control.capacity.cycle import Bounds
from tidegate.control.decision import Decision, hold
from tidegate.control.latency.catch_up import cores_to_catch_up
from tidegate.control.latency.load_ahead import Coming, ComingLoad
from tidegate.control.latency.scale_in import ScaleIn
from tidegate.control.latency.surge_reserve import leap_latency_s, ready_for
from tidegate.control.learning.segment_model import SegmentModel
from tidegate.control.measurement import Latency, Measurement, SegmentMeasurement
from tidegate.control.operator_tasks import most_of, tasks_on
from tidegate.errors import AskedWrongly
from tidegate.models.microbatch.station import MicroBatchStation
from tidegate.units import format_duration

PERCENTILES = (50, 95, 99)
STEADY_RATIO = {None: 1.0, 50: 1.0, 95: 1.95 / 1.5, 99: 1.99 / 1.5}
"""Percentile over mean in the steady state, where a sojourn is uniform between D and 2 D."""
_NORMAL_BACKLOG = 1.4
"""Rows in a pipeline at its target are lambda T (Little), up to 4/3 of it before a batch ends."""
_ANY = 1 << 20
"""More cores than there are: to find out what the target needs, and the pipeline's floor."""
_NEAR_FLOOR = 1.05
"""Where the target is out of reach: the fewest cores this close to the lowest latency."""
_QUIET_S = 6.0
"""How long nothing must have happened until the measured latency, which is of the last seconds, is
that of the present tasks and load."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyOptions:
    """What a user may want otherwise; docs/decisions.md explains each."""

    percentile: int | None = None
    """Which percentile of the sojourn the target is for; None: its mean."""
    catch_up_s: float = 5.0
    """Time within which a backlog is to be gone."""
    scale_in_after_s: float = 10.0
    """How long fewer cores must have been enough before they are let go; three times the observed
    time to grant them when that is longer."""
    aim: float = 0.8
    """Share of the target that a change plans for; the rest is the band in which nothing moves."""
    coverage: float = 0.9
    """Share of horizons whose load the margin is to cover."""
    leap: float = 2.0
    """A load so many times as high from one batch to the next is to be met in that very batch; 1
    plans for no leap."""
    least_saving: float = 0.15
    """Share of the cores that a scale-in must save, one core at least."""
    assumed_grant_s: float = 0.0
    """Time to grant cores until it has been observed."""

    def __post_init__(self) -> None:
        if self.percentile is not None and self.percentile not in PERCENTILES:
            raise AskedWrongly(
                f"a target on percentile {self.percentile} is not possible; give 50, 95 or 99, or"
                " none for the mean"
            )
        positive = (self.catch_up_s, self.aim, 1.0 - self.aim + 1e-12, 1.0 - self.coverage)
        if not 1.0 <= self.leap < math.inf:
            raise AskedWrongly(f"a leap of {self.leap:g} is none; give a factor from 1 up")
        if min(positive) <= 0.0 or min(self.scale_in_after_s, self.coverage) < 0.0:
            raise AskedWrongly(
                "catch_up_s must be above 0, scale_in_after_s at least 0, and aim and coverage"
                " between 0 and 1"
            )


@dataclass(frozen=True, slots=True)
class _Plan:
    """An allocation to segments, and what is to be said about it."""

    cores: dict[str, int]
    latency_s: float
    notes: tuple[str, ...] = ()
    limit: str | None = None
    """Said only when the maximum keeps the pipeline from its target."""
    leap: float = 1.0
    """The leap of the load that it is ready for."""

    @property
    def total(self) -> int:
        return sum(self.cores.values())


class LatencyPolicy:
    """See the module's text. Called once a tick, deterministic."""

    name = "tidegate"

    def __init__(
        self,
        target_s: float,
        bounds: Bounds,
        options: LatencyOptions | None = None,
        *,
        coming: ComingLoad | None = None,
    ) -> None:
        if not 0.0 < target_s < math.inf:
            raise AskedWrongly(f"the latency target must be a positive duration, not {target_s} s")
        self._target_s = target_s
        self._given = self._bounds = bounds
        self._options = options or LatencyOptions()
        self._coming = coming
        self._models: dict[str, SegmentModel] = {}
        self._bias = 1.0
        self._ratio = STEADY_RATIO[self._options.percentile]
        self._patience = ScaleIn(self._options.scale_in_after_s, self._options.least_saving)
        self._floor_s = 0.0
        self._restless_s = -math.inf
        self._quiet_rate = 0.0
        self._beliefs: dict[str, float] = {}

    @property
    def beliefs(self) -> dict[str, float]:
        """What the last decision was based on, for its record."""
        return dict(self._beliefs)

    def decide(self, measurement: Measurement) -> Decision:
        """Learn, look ahead, compare what is there with what is needed."""
        self._bounds = self._given.within(measurement.cores_allowed)
        if self._coming is None:
            self._coming = ComingLoad(coverage=self._options.coverage, tick_s=measurement.step_s)
        self._coming.observe(measurement.arrival_rate, measurement.at_s)
        for segment in measurement.segments:
            self._models.setdefault(segment.name, SegmentModel()).learn(measurement, segment)
        self._patience.notice(measurement)
        horizon_s = self._horizon_s(measurement)
        coming = self._coming.within(math.ceil(horizon_s / max(measurement.step_s, 1e-3)))
        self._beliefs = {
            "forecast_rate": coming.rate,
            "margin": coming.margin,
            "horizon_s": horizon_s,
        }
        present = self._stations(measurement, 1.0)
        if present is None or not measurement.segments:
            return self._explore(measurement, coming)
        self._learn_ratios(measurement, present)
        self._learn_floor(present)
        self._note_beliefs()
        return self._compare(measurement, coming)

    # ------------------------------------------------------------------ what is known

    def _horizon_s(self, measurement: Measurement) -> float:
        """The observed time to grant cores, and the batch that is running until then."""
        grant_s = measurement.grant_s
        if grant_s is None:
            grant_s = self._options.assumed_grant_s
        batches = [batch for segment in measurement.segments for batch in segment.batches]
        batch_s = max((batch.duration_s for batch in batches), default=measurement.step_s)
        return grant_s + batch_s

    def _stations(
        self, measurement: Measurement, factor: float, cores: dict[str, int] | None = None
    ) -> list[MicroBatchStation] | None:
        """Every segment at `factor` times its present rate, as balanced as so many cores can be.

        None while a segment is unknown; without `cores` they are the present tasks.
        """
        outside = max(measurement.arrival_rate, 1e-9)
        stations = []
        for segment in measurement.segments:
            visits = segment.arrival_rate / outside if measurement.arrival_rate > 0.0 else 1.0
            station = self._models[segment.name].station(
                segment.arrival_rate * factor,
                visits,
                segment.trigger_s,
                cores=None if cores is None else cores[segment.name],
            )
            if station is None:
                return None
            stations.append(station)
        return stations

    def _learn_ratios(self, measurement: Measurement, present: list[MicroBatchStation]) -> None:
        """Measured over modelled mean, and percentile over mean, in quiet times only."""
        latency = measurement.latency
        moved = abs(measurement.arrival_rate - self._quiet_rate) > 0.1 * self._quiet_rate
        if moved or not self._quiet(measurement):
            self._restless_s = measurement.at_s
            self._quiet_rate = measurement.arrival_rate
        if latency is None or latency.mean_s <= 0.0:
            return
        if measurement.at_s - self._restless_s < _QUIET_S:
            return
        modelled_s = self._modelled_s(measurement, present)
        if not 0.0 < modelled_s < math.inf:
            return
        bias = min(max(latency.mean_s / modelled_s, 0.6), 2.5)
        # Upwards faster than downwards: too low a bias breaks the target, too high costs a core.
        self._bias += (0.15 if bias > self._bias else 0.05) * (bias - self._bias)
        steady = STEADY_RATIO[self._options.percentile]
        if self._options.percentile is not None:
            ratio = self._measured_s(latency) / latency.mean_s
            ratio = min(max(ratio, 0.7 * steady), 2.5 * steady)
            self._ratio += 0.1 * (ratio - self._ratio)

    def _modelled_s(self, measurement: Measurement, stations: list[MicroBatchStation]) -> float:
        """The model's mean latency of the tasks there are."""
        return sum(
            station.visit_ratio * station.latency(max(segment.tasks, 1))
            for station, segment in zip(stations, measurement.segments, strict=True)
        )

    def _measured_s(self, latency: Latency) -> float:
        """What the target is compared with."""
        by_percentile = {
            None: latency.mean_s,
            50: latency.p50_s,
            95: latency.p95_s,
            99: latency.p99_s,
        }
        return by_percentile[self._options.percentile]

    @property
    def _reach(self) -> float:
        """What the target speaks of, over the model's mean."""
        return self._bias * self._ratio

    def _late(self, measurement: Measurement, segment: SegmentMeasurement) -> bool:
        """Whether more rows wait than a pipeline at its target holds."""
        mean_s = self._goal_s / self._ratio
        return segment.backlog_rows > _NORMAL_BACKLOG * mean_s * segment.arrival_rate + 1.0

    @property
    def _goal_s(self) -> float:
        """The target, or what can be held where the target is below the floor."""
        return max(self._target_s, _NEAR_FLOOR**2 * self._floor_s * self._ratio)

    def _learn_floor(self, present: list[MicroBatchStation]) -> None:
        """The mean latency below which no number of cores brings the pipeline."""
        try:
            provision(present, 1e-9)
        except LatencyOutOfReach as error:
            self._floor_s = error.latency_reachable_s * self._bias

    def _behind(self, measurement: Measurement) -> bool:
        return any(self._late(measurement, segment) for segment in measurement.segments)

    def _quiet(self, measurement: Measurement) -> bool:
        """No backlog, and no change of tasks within the last batches."""
        return self._settled(measurement) and not self._behind(measurement)

    def _settled(self, measurement: Measurement) -> bool:
        return all(self._models[one.name].settled >= 2 for one in measurement.segments)

    def _note_beliefs(self) -> None:
        self._beliefs["bias"] = self._bias
        self._beliefs["percentile_ratio"] = self._ratio
        for name, model in self._models.items():
            if model.cost is not None:
                self._beliefs[f"{name}.a0_s"] = model.cost.fixed_s
                self._beliefs[f"{name}.a1_s"] = model.cost.per_task_s
                self._beliefs[f"{name}.w_s"] = model.cost.work_s
                self._beliefs[f"{name}.imbalance"] = model.imbalance

    # ------------------------------------------------------------------ what is needed

    def _plan(self, measurement: Measurement, coming: Coming) -> _Plan:
        """The fewest cores that hold the aim at the planned rate and catch up in time."""
        factor = coming.planned / measurement.arrival_rate if measurement.arrival_rate > 0 else 1.0
        plan = self._plan_with(measurement, coming, factor, None)
        # More tasks are harder to balance: plan again with the imbalance that the plan would have.
        for _ in range(2):
            again = self._plan_with(measurement, coming, factor, plan.cores)
            if again.total <= plan.total:
                break
            plan = again
        return self._ready(measurement, factor, plan)

    def _ready(self, measurement: Measurement, factor: float, plan: _Plan) -> _Plan:
        """The plan with the cores that a leap of the load needs, where there are so many."""
        stations = self._stations(measurement, factor, plan.cores)
        if plan.limit is not None or self._options.leap <= 1.0 or stations is None:
            return plan
        allocation, leap = ready_for(
            stations,
            Allocation(np.array(list(plan.cores.values())), plan.total, plan.latency_s),
            goal_s=self._target_s / self._reach,
            leap=self._options.leap,
            most=[most_of(measurement, name, _ANY) for name in plan.cores],
            budget=self._bounds.most,
        )
        cores = {name: int(k) for name, k in zip(plan.cores, allocation.cores, strict=True)}
        return dataclasses.replace(plan, cores=cores, latency_s=allocation.latency_s, leap=leap)

    def _plan_with(
        self,
        measurement: Measurement,
        coming: Coming,
        factor: float,
        cores: dict[str, int] | None,
    ) -> _Plan:
        stations = self._stations(measurement, factor, cores)
        assert stations is not None  # asked only once every segment is known
        names = [segment.name for segment in measurement.segments]
        most = [most_of(measurement, name, _ANY) for name in names]
        mean_s = self._options.aim * self._target_s / self._reach
        least = [
            self._to_catch_up(measurement, segment, station, min(limit, self._bounds.most))
            for segment, station, limit in zip(measurement.segments, stations, most, strict=True)
        ]
        notes: tuple[str, ...] = ()
        limit = None
        try:
            allocation = provision(stations, mean_s, least=least, most=most)
        except LatencyOutOfReach as error:
            floor_s = error.latency_reachable_s * self._reach
            if floor_s > self._target_s and self._settled(measurement):
                notes = (self._floor_note(floor_s),)
            lowest_s = error.latency_reachable_s * _NEAR_FLOOR
            allocation = provision(stations, lowest_s, least=least, most=most)
        except Infeasible:
            allocation = _overloaded(stations, most)
        if allocation.total > self._bounds.most:
            limit = (
                f"{allocation.total} cores are needed for {coming.planned:,.0f} rows/s, but"
                f" {self._bounds.most} are the maximum"
            )
            allocation = self._within_maximum(stations, most)
        chosen = {name: int(k) for name, k in zip(names, allocation.cores, strict=True)}
        return _Plan(self._at_least(chosen, most), allocation.latency_s, notes, limit)

    def _loses_leap(
        self, measurement: Measurement, coming: Coming, cores: dict[str, int], leap: float
    ) -> bool:
        """Whether a leap that could be met breaks the target on these cores, beyond the band."""
        factor = coming.planned / measurement.arrival_rate if measurement.arrival_rate > 0 else 1.0
        stations = self._stations(measurement, factor, cores)
        if leap <= 1.0 or stations is None or not self._settled(measurement):
            return False
        late_s = leap_latency_s(stations, list(cores.values()), leap)
        return late_s * self._reach * self._options.aim > self._target_s

    def _to_catch_up(
        self,
        measurement: Measurement,
        segment: SegmentMeasurement,
        station: MicroBatchStation,
        most: int,
    ) -> int:
        """The fewest cores with which the segment is back at its target within `catch_up_s`.

        Asked for when it is late, and when it soon will be: until the batch that runs is over more
        rows come, half a batch of them on average.
        """
        model = self._models[segment.name]
        tasks = max(segment.tasks, 1)
        late = self._late(measurement, segment)
        if not late and station.latency(tasks) * self._reach <= self._goal_s:
            return 1
        running_s = station.cost.duration_s(segment.backlog_rows, tasks, station.imbalance)
        coming_rows = 0.0 if late else 0.5 * station.arrival_rate * running_s
        return cores_to_catch_up(
            station.cost,
            rate=station.arrival_rate,
            imbalance=model.imbalances(most),
            backlog_rows=segment.backlog_rows + coming_rows,
            steady_s=self._goal_s / self._reach / 1.5,
            within_s=self._options.catch_up_s,
        )

    def _within_maximum(self, stations: list[MicroBatchStation], most: list[int]) -> Allocation:
        """The best split of all the cores there may be."""
        try:
            return assign(stations, self._bounds.most, most=np.minimum(most, self._bounds.most))
        except Infeasible:
            return _by_load(stations, self._bounds.most, most)

    def _at_least(self, cores: dict[str, int], most: list[int]) -> dict[str, int]:
        """The minimum of cores, the spare ones to the segments in turn."""
        spare = self._bounds.least - sum(cores.values())
        limits = dict(zip(cores, most, strict=True))
        while spare > 0 and any(cores[name] < limits[name] for name in cores):
            for name in cores:
                if spare > 0 and cores[name] < limits[name]:
                    cores[name] += 1
                    spare -= 1
        return cores

    def _floor_note(self, floor_s: float) -> str:
        what = "mean" if self._options.percentile is None else f"p{self._options.percentile}"
        return (
            f"the target of {format_duration(self._target_s)} is below this pipeline's floor: the"
            f" lowest {what} latency that any number of cores gives is"
            f" {format_duration(floor_s, round_up=True)}; it runs at its best"
        )

    # ------------------------------------------------------------------ what to do

    def _compare(self, measurement: Measurement, coming: Coming) -> Decision:
        plan = self._plan(measurement, coming)
        current = {segment.name: max(segment.tasks, 1) for segment in measurement.segments}
        behind = self._behind(measurement)
        expected_s = self._expected_s(measurement, coming, current)
        if math.isfinite(expected_s):
            self._beliefs["expected_s"] = expected_s * self._ratio
        self._beliefs["needed_cores"] = float(plan.total)
        self._patience.remember(measurement, plan.total)
        asked = measurement.cores_asked
        waiting = measurement.cores_granted < asked
        if waiting and plan.total <= asked:
            return self._said(hold(f"{asked} cores are asked for and on their way"), plan)
        short = expected_s * self._ratio > self._goal_s or behind
        if short and plan.limit is not None:
            plan = dataclasses.replace(plan, notes=(*plan.notes, plan.limit))
        wanting = plan.total > asked
        risky = wanting and not short and self._loses_leap(measurement, coming, current, plan.leap)
        if wanting and (short or risky):
            if risky:
                why = f"a load {plan.leap:.3g} times as high would be lost before it is seen"
            elif behind:
                why = f"{measurement.backlog_rows:,.0f} rows wait"
            elif math.isfinite(expected_s):
                why = f"{self._shown(expected_s)} expected at {coming.planned:,.0f} rows/s"
            else:
                have = sum(current.values())
                why = f"{have} cores cannot keep up with {coming.planned:,.0f} rows/s"
            return self._change(measurement, plan, f"{why}, target {self._target()}")
        if behind:
            use = self._use_granted(measurement, plan)
            return use or self._said(hold("catching up: no core is let go meanwhile"), plan)
        if short and plan.cores != current and plan.total == asked:
            return self._change(measurement, plan, "the same cores split otherwise are faster")
        use = self._use_granted(measurement, plan)
        if use is not None:
            return use
        return self._scale_in(measurement, plan, expected_s)

    def _scale_in(self, measurement: Measurement, plan: _Plan, expected_s: float) -> Decision:
        """Fewer cores, when no tick of the waiting time needed more."""
        fits = f"{self._shown(expected_s)} expected, target {self._target()}"
        objection = self._patience.objection(measurement, self._bounds.least, fits)
        if objection is not None:
            return self._said(hold(objection), plan)
        latency = measurement.latency
        if latency is not None and self._measured_s(latency) > self._goal_s:
            return self._said(hold("above the target: no core is let go"), plan)
        needed = self._patience.needed
        if plan.total < needed:
            plan = self._enlarged(measurement, plan, needed)
        wait_s = self._patience.wait_s(measurement)
        return self._change(
            measurement, plan, f"{plan.total} cores have been enough for {wait_s:.0f} s"
        )

    def _enlarged(self, measurement: Measurement, plan: _Plan, cores: int) -> _Plan:
        """The plan with so many cores in total: what the waiting time needed at most."""
        stations = self._stations(measurement, 1.0)
        assert stations is not None
        names = list(plan.cores)
        most = [most_of(measurement, name, self._bounds.most) for name in names]
        try:
            allocation = assign(stations, cores, least=list(plan.cores.values()), most=most)
        except Infeasible:
            return plan
        chosen = {name: int(k) for name, k in zip(names, allocation.cores, strict=True)}
        return _Plan(chosen, allocation.latency_s, plan.notes)

    def _use_granted(self, measurement: Measurement, plan: _Plan) -> Decision | None:
        """Cores have come that the tasks do not use yet."""
        current = sum(segment.tasks for segment in measurement.segments)
        granted = min(measurement.cores_granted, measurement.cores_asked)
        if current >= granted or not measurement.operators:
            return None
        wider = self._enlarged(measurement, self._shrunk(measurement), granted)
        tasks = tasks_on(measurement, wider.cores)
        if not tasks:
            return None
        return Decision(
            reason=f"{granted} cores are granted: use them",
            tasks=tasks,
            notes=plan.notes,
            expected_latency_s=_finite(wider.latency_s * self._bias),
        )

    def _shrunk(self, measurement: Measurement) -> _Plan:
        """The tasks as they are, as a plan to enlarge."""
        return _Plan({one.name: max(one.tasks, 1) for one in measurement.segments}, math.inf)

    def _change(self, measurement: Measurement, plan: _Plan, why: str) -> Decision:
        """Ask for the plan's cores; tasks follow at once where cores come within a tick."""
        cores = plan.total
        grows = cores > measurement.cores_granted
        slow = measurement.grant_s is not None and measurement.grant_s > 2 * measurement.step_s
        tasks = {} if grows and slow else tasks_on(measurement, plan.cores)
        wanted = None if cores == measurement.cores_asked else cores
        if wanted is None and not tasks:
            return self._said(hold(f"{cores} cores already, and no task to change: {why}"), plan)
        mean_s = plan.latency_s * self._bias
        return Decision(
            reason=f"{why}: {cores} cores give {self._shown(mean_s)}",
            cores=wanted,
            tasks=tasks,
            notes=plan.notes,
            expected_latency_s=_finite(mean_s),
        )

    def _said(self, decision: Decision, plan: _Plan) -> Decision:
        return Decision(reason=decision.reason, notes=plan.notes)

    def _explore(self, measurement: Measurement, coming: Coming) -> Decision:
        """Before the model is known: only rows that wait are a reason, and throughput the size.

        Rows have gathered for as long as a first batch took, unseen: the next has as many times
        more cores as that was too long.
        """
        ended = [batch for segment in measurement.segments for batch in segment.batches]
        longest_s = max((batch.duration_s for batch in ended), default=0.0)
        late = self._bounds.clamp(math.ceil(measurement.cores_asked * longest_s / self._target_s))
        if longest_s > self._target_s and late > measurement.cores_asked:
            return Decision(
                reason=f"a first batch took {format_duration(longest_s)}, target {self._target()}:"
                f" {late} cores for what has gathered since",
                cores=late,
                tasks=self._spread(measurement, late),
            )
        latency = measurement.latency
        above = latency is not None and self._measured_s(latency) > self._target_s
        if not (measurement.saturated and above and measurement.processed_rate > 0.0):
            return hold("learning what a batch costs")
        per_core = measurement.processed_rate / max(measurement.cores_granted, 1)
        wanted_rate = coming.planned + measurement.backlog_rows / self._options.catch_up_s
        cores = self._bounds.clamp(math.ceil(wanted_rate / per_core))
        if cores <= measurement.cores_asked:
            return hold("learning what a batch costs; the cores asked for keep up")
        return Decision(
            reason=f"saturated at {per_core:,.0f} rows/s a core: {wanted_rate:,.0f} need {cores}",
            cores=cores,
            tasks=self._spread(measurement, cores),
        )

    def _spread(self, measurement: Measurement, cores: int) -> dict[str, int]:
        """Tasks on so many cores, the same for every segment: which needs more is not known yet."""
        each = max(cores // max(len(measurement.segments), 1), 1)
        return tasks_on(measurement, {one.name: each for one in measurement.segments})

    # ------------------------------------------------------------------ what is expected, and words

    def _expected_s(self, measurement: Measurement, coming: Coming, cores: dict[str, int]) -> float:
        """The mean latency expected of the present tasks at the planned rate."""
        factor = coming.planned / measurement.arrival_rate if measurement.arrival_rate > 0 else 1.0
        stations = self._stations(measurement, factor, cores) or []
        parts = [
            station.visit_ratio * station.latency(k)
            for station, k in zip(stations, cores.values(), strict=True)
        ]
        return sum(parts) * self._bias

    def _shown(self, mean_s: float) -> str:
        """The expected latency, of the kind the target is for."""
        value = mean_s * self._ratio
        if not value < math.inf:
            return "a growing latency"
        what = "mean" if self._options.percentile is None else f"p{self._options.percentile}"
        return f"{what} {format_duration(value)}"

    def _target(self) -> str:
        return format_duration(self._target_s)


def _overloaded(stations: list[MicroBatchStation], most: list[int]) -> Allocation:
    """A segment cannot keep up within its own maximum: every one as wide as it may or needs."""
    cores = np.array(
        [min(station.stable_from, limit) for station, limit in zip(stations, most, strict=True)]
    )
    return Allocation(cores, int(cores.sum()), math.inf)


def _by_load(stations: list[MicroBatchStation], cores: int, most: list[int]) -> Allocation:
    """Too few cores to keep up with everything: in proportion to the load."""
    load = np.array([max(station.load, 1e-9) for station in stations])
    given = np.maximum(np.floor(cores * load / load.sum()).astype(np.int64), 1)
    given = np.minimum(given, most)
    for index in np.argsort(-load):
        given[index] = min(given[index] + max(cores - int(given.sum()), 0), most[index])
    return Allocation(given, int(given.sum()), math.inf)


def _finite(seconds: float) -> float | None:
    return seconds if math.isfinite(seconds) else None
