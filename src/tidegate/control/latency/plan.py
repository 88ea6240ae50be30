"""Plans the fewest cores that hold the target at the planned load.

Every segment is a micro-batch station. `fewest_cores` finds the fewest for the latency aimed at, a
mean or a percentile of the sojourn through all segments. A backlog may need more of them to drain
in time. The reserve for surges comes on top.
"""

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from tidegate.control.allocation.allocate import (
    CoreAllocation,
    Infeasible,
    assign,
)
from tidegate.control.bounds import Bounds
from tidegate.control.latency.calibration import NEAR_FLOOR, Calibration
from tidegate.control.latency.catch_up import cores_to_catch_up, time_to_catch_up_s
from tidegate.control.latency.fewest_cores import CorePath, PredictedOutOfReach, predicted_s
from tidegate.control.latency.load_ahead import LoadAhead
from tidegate.control.latency.options import LatencyOptions
from tidegate.control.latency.surge_reserve import absorbed, surge_latency_s, with_reserve
from tidegate.control.latency.surges import PRICE, SurgeHistory
from tidegate.control.learning.pipeline_model import PipelineModel
from tidegate.control.measurement import Measurement, SegmentMeasurement
from tidegate.control.operator_tasks import most_of
from tidegate.control.target import Target
from tidegate.models.microbatch.batch_cost import SOJOURN_BATCHES
from tidegate.models.microbatch.station import MicroBatchStation
from tidegate.units import format_duration

_TRIED = (0.25, 0.5, 1.0)
"""Shares of the configured surge's growth for which a reserve is tried."""
_ANY = 1 << 20
"""More cores than there ever are: finds what the target would need without a maximum."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Cores for each segment, and what a person should know about them."""

    cores: dict[str, int]
    latency_s: float
    """The model's mean latency, before calibration."""
    notes: tuple[str, ...] = ()
    limit: str | None = None
    """A sentence for the user if the maximum keeps the pipeline from its target."""
    surge: float = 1.0
    """The plan has a reserve for a load that jumps by this factor; 1: none."""

    @property
    def total(self) -> int:
        """Cores of all segments."""
        return sum(self.cores.values())


class Planner:
    """Plans the cores of one pipeline from its model and calibration; it keeps no state itself."""

    def __init__(
        self,
        target: Target,
        options: LatencyOptions,
        model: PipelineModel,
        calibration: Calibration,
        surges: SurgeHistory | None = None,
    ) -> None:
        self._surges = surges or SurgeHistory()
        self._target = target
        self._options = options
        self._model = model
        self._calibration = calibration

    def plan(self, measurement: Measurement, ahead: LoadAhead, allowed: Bounds) -> Plan:
        """The fewest cores that hold the target at the planned rate and drain a backlog in time.

        The reserve for surges is included.
        """
        planned = ahead.planned
        plan = self._plan_with(measurement, planned, None, allowed)
        # More tasks are harder to balance, so plan again with the imbalance on the planned cores.
        for _ in range(2):
            again = self._plan_with(measurement, planned, plan.cores, allowed)
            if again.total <= plan.total:
                break
            plan = again
        return self._with_reserve(measurement, planned, plan, allowed)

    def expected_s(
        self, measurement: Measurement, ahead: LoadAhead, cores: dict[str, int]
    ) -> float:
        """The mean latency to expect on these cores at the planned rate, calibrated."""
        return self._expected_s(measurement, ahead, cores, None) * self._calibration.bias

    def expected_as_target_s(
        self, measurement: Measurement, ahead: LoadAhead, cores: dict[str, int]
    ) -> float:
        """The latency to expect on these cores, of the kind that the target is for."""
        share = self._calibration.share
        return self._expected_s(measurement, ahead, cores, share) * self._calibration.factor

    def _expected_s(
        self,
        measurement: Measurement,
        ahead: LoadAhead,
        cores: dict[str, int],
        share: float | None,
    ) -> float:
        stations = self._model.stations(measurement, ahead.planned, cores)
        return predicted_s(stations, list(cores.values()), share) if stations else 0.0

    def loses_surge(
        self, measurement: Measurement, ahead: LoadAhead, cores: dict[str, int], surge: float
    ) -> bool:
        """Whether a surge would break the target on these cores, by more than the band.

        `surge` is the factor that the plan has a reserve for, so the surge could be met.
        """
        stations = self._model.stations(measurement, ahead.planned, cores)
        if surge <= 1.0 or stations is None or not self._model.settled(measurement):
            return False
        late_s = surge_latency_s(stations, list(cores.values()), surge)
        aim = self._options.aim_at(measurement.grant_s)
        return late_s * self._calibration.reach * aim > self._target.latency_s

    @property
    def _goal_s(self) -> float:
        """The target, as a mean latency of the model."""
        return self._target.latency_s / self._calibration.reach

    def _risk(self, measurement: Measurement, reach: float, cores: int) -> float:
        """The price of a second in which surges beyond the factor `reach` may begin."""
        missed_s = self._options.grant_s(measurement.grant_s) + self._options.catch_up_s
        return missed_s * PRICE * cores * self._surges.rate(reach)

    def enlarged(self, measurement: Measurement, plan: Plan, cores: int, allowed: Bounds) -> Plan:
        """The plan with so many cores in total; the additional ones go where they help most."""
        stations = self._model.stations(measurement)
        assert stations is not None
        names = list(plan.cores)
        most = [most_of(measurement, name, allowed.most) for name in names]
        try:
            allocation = assign(stations, cores, least=list(plan.cores.values()), most=most)
        except Infeasible:
            # Too few to keep up still drain more than fewer would.
            allocation = _by_load(stations, cores, most)
            if any(allocation.cores < list(plan.cores.values())):
                return plan
        chosen = {name: int(k) for name, k in zip(names, allocation.cores, strict=True)}
        return Plan(chosen, predicted_s(stations, list(chosen.values()), None), plan.notes)

    def _with_reserve(
        self, measurement: Measurement, planned: float, plan: Plan, allowed: Bounds
    ) -> Plan:
        """The plan with the reserve for a surge, as far as the maximum of cores allows it.

        Surges up to the configured factor are always thought of. Where this stream has leapt
        further more than once, so are surges as far as that, and the price decides.
        """
        stations = self._model.stations(measurement, planned, plan.cores)
        if plan.limit is not None or self._options.surge_factor <= 1.0 or stations is None:
            return plan
        goal_s = self._goal_s
        most = [most_of(measurement, name, _ANY) for name in plan.cores]
        plain = CoreAllocation(np.array(list(plan.cores.values())), plan.total, plan.latency_s)
        chosen, surge = plain, absorbed(stations, list(plan.cores.values()), goal_s)
        least_risk = risk = self._risk(measurement, surge, plan.total)
        usual, largest = self._options.surge_factor, self._surges.repeated()
        tried = [1.0 + share * (usual - 1.0) for share in _TRIED]
        if largest > usual:
            tried += [math.sqrt(usual * largest), largest]
        for factor in tried:
            if least_risk < 1.0:
                break  # not even one core is worth it
            reserve = with_reserve(
                stations, plain, goal_s=goal_s, surge=factor, most=most, budget=allowed.most
            ).allocation
            reach = absorbed(stations, [int(k) for k in reserve.cores], goal_s)
            least_risk = self._risk(measurement, reach, plan.total)
            if reserve.total + least_risk < chosen.total + risk:
                chosen, surge, risk = reserve, reach, least_risk
        cores = {name: int(k) for name, k in zip(plan.cores, chosen.cores, strict=True)}
        return dataclasses.replace(
            plan,
            cores=cores,
            latency_s=predicted_s(stations, list(cores.values()), None),
            surge=1.0 if chosen is plain else min(surge, tried[-1]),
        )

    def _plan_with(
        self,
        measurement: Measurement,
        planned: float,
        cores: dict[str, int] | None,
        allowed: Bounds,
    ) -> Plan:
        """The fewest cores at the planned rate from outside."""
        stations = self._model.stations(measurement, planned, cores)
        assert stations is not None  # asked only once every segment is known
        names = [segment.name for segment in measurement.segments]
        most = [most_of(measurement, name, _ANY) for name in names]
        aim = self._options.aim_at(measurement.grant_s)
        goal_s = aim * self._target.latency_s / self._calibration.factor
        share = self._calibration.share
        grant_s = self._options.grant_s(measurement.grant_s)
        least = [
            self._to_catch_up(segment, station, min(limit, allowed.most), grant_s)
            for segment, station, limit in zip(measurement.segments, stations, most, strict=True)
        ]
        notes: tuple[str, ...] = ()
        limit = None
        path = CorePath(stations, share, least=least, most=most)
        try:
            allocation = path.fewest(goal_s)
        except PredictedOutOfReach as error:
            floor_s = error.latency_reachable_s * self._calibration.factor
            if floor_s > self._target.latency_s and self._model.settled(measurement):
                notes = (self._floor_note(floor_s),)
            # The path remembers the allocation behind the error, so this one is within reach.
            allocation = path.fewest(error.latency_reachable_s * NEAR_FLOOR)
        except Infeasible:
            allocation = _overloaded(stations, most)
        if allocation.total > allowed.most:
            limit = (
                f"{allocation.total} cores are needed for {planned:,.0f} rows/s, but the maximum is"
                f" {allowed.most}"
            )
            allocation = _within_maximum(stations, most, allowed.most)
        chosen = {name: int(k) for name, k in zip(names, allocation.cores, strict=True)}
        return Plan(_at_least(chosen, most, allowed.least), allocation.latency_s, notes, limit)

    def _to_catch_up(
        self, segment: SegmentMeasurement, station: MicroBatchStation, most: int, grant_s: float
    ) -> int:
        """The fewest cores with which the segment is back on target within `catch_up_s`.

        It is 1 for a segment that is on target and will stay there. A segment that is not late yet
        but will be counts with a larger backlog: rows keep arriving until the running batch ends,
        half a batch of them on average. Where cores take longer to be granted than a backlog may
        last, a load that is forecast is met by cores that come in time, not by catching up.
        """
        tasks = max(segment.tasks, 1)
        late = self._calibration.late(segment)
        goal_s, reach = self._calibration.goal_s, self._calibration.reach
        if not late and station.latency(tasks) * reach <= goal_s:
            return 1
        slow = grant_s > self._options.catch_up_s
        if slow and not late:
            return 1
        running_s = station.cost.duration_s(segment.backlog_rows, tasks, station.imbalance)
        arriving = 0.0 if late else 0.5 * station.arrival_rate * running_s
        model = self._model.segment(segment.name)
        waiting = segment.backlog_rows + arriving
        limit_rows = _limit_rows(segment)
        within_s = max(self._options.catch_up_s, 0.5 * grant_s if slow else 0.0)
        if limit_rows is not None:
            # Many batches follow each other here, so an error of the model adds up.
            within_s *= self._options.aim
        return cores_to_catch_up(
            model.cost or station.cost,
            rate=station.arrival_rate,
            imbalance=model.imbalance.up_to(most, max(waiting, model.imbalance.rows)),
            backlog_rows=waiting,
            steady_s=goal_s / reach / SOJOURN_BATCHES,
            within_s=within_s,
            limit_rows=limit_rows,
        )

    def backlog_s(self, measurement: Measurement, cores: int) -> float:
        """How long the longest batch lasts that takes the rows of a segment that wait now.

        Behind a read limit it takes no more than that, and the next one may have other tasks.
        `cores` are divided among the segments as their tasks are.
        """
        stations = self._model.stations(measurement)
        assert stations is not None  # asked only once every segment is known
        in_all = max(sum(segment.tasks for segment in measurement.segments), 1)
        longest_s = 0.0
        for segment, station in zip(measurement.segments, stations, strict=True):
            own = max(segment.tasks * cores // in_all, 1)
            rows = min(segment.backlog_rows, _limit_rows(segment) or math.inf)
            lasts_s = station.cost.duration_s(rows, own, station.imbalance)
            longest_s = max(longest_s, lasts_s)
        return longest_s

    def catch_up_s(self, measurement: Measurement, allowed: Bounds) -> float:
        """How long the backlog of the segments that are late lasts on all cores; 0 without one."""
        stations = self._model.stations(measurement)
        assert stations is not None  # asked only once every segment is known
        others = len(measurement.segments) - 1
        longest_s = 0.0
        for segment, station in zip(measurement.segments, stations, strict=True):
            if not self._calibration.late(segment):
                continue
            most = most_of(measurement, segment.name, max(allowed.most - others, 1))
            model = self._model.segment(segment.name)
            taken_s = time_to_catch_up_s(
                model.cost or station.cost,
                most,
                rate=station.arrival_rate,
                imbalance=float(model.imbalance.on(most)),
                backlog_rows=segment.backlog_rows,
                steady_s=self._calibration.goal_s / self._calibration.reach / SOJOURN_BATCHES,
                limit_rows=_limit_rows(segment),
            )
            longest_s = max(longest_s, taken_s)
        return longest_s

    def _floor_note(self, floor_s: float) -> str:
        return (
            f"the target of {self._target} is below this pipeline's floor: the lowest"
            f" {self._target.kind} latency that any number of cores gives is"
            f" {format_duration(floor_s, round_up=True)}; it runs at its best"
        )


def _limit_rows(segment: SegmentMeasurement) -> float | None:
    """Rows that a batch of the segment may take; None: all that there are."""
    limit = None if segment.lag is None else segment.lag.limit_rows
    return None if limit is None else max(float(limit), 1.0)


def _within_maximum(
    stations: list[MicroBatchStation], most: list[int], cores: int
) -> CoreAllocation:
    """The best split of all the cores that are allowed."""
    try:
        return assign(stations, cores, most=np.minimum(most, cores))
    except Infeasible:
        return _by_load(stations, cores, most)


def _at_least(cores: dict[str, int], most: list[int], least: int) -> dict[str, int]:
    """Raise the plan to the minimum of cores; the segments get the spare ones in turn."""
    spare = least - sum(cores.values())
    limits = dict(zip(cores, most, strict=True))
    while spare > 0 and any(cores[name] < limits[name] for name in cores):
        for name in cores:
            if spare > 0 and cores[name] < limits[name]:
                cores[name] += 1
                spare -= 1
    return cores


def _overloaded(stations: list[MicroBatchStation], most: list[int]) -> CoreAllocation:
    """The plan for when a segment cannot keep up within its own maximum of tasks.

    Every segment gets the fewest cores that are stable, or its maximum where that is lower.
    """
    cores = np.array(
        [min(station.stable_from, limit) for station, limit in zip(stations, most, strict=True)]
    )
    return CoreAllocation(cores, int(cores.sum()), math.inf)


def _by_load(stations: list[MicroBatchStation], cores: int, most: list[int]) -> CoreAllocation:
    """Divide too few cores among the segments in proportion to their load."""
    load = np.array([max(station.load, 1e-9) for station in stations])
    given = np.maximum(np.floor(cores * load / load.sum()).astype(np.int64), 1)
    given = np.minimum(given, most)
    for index in np.argsort(-load):
        given[index] = min(given[index] + max(cores - int(given.sum()), 0), most[index])
    return CoreAllocation(given, int(given.sum()), math.inf)
