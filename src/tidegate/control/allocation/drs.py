"""DRS's two schedulers (IV-B), with operators as M/M/k or GI/G/k stations.

`drs-fixed` splits K_max cores in the best way. `drs` scales out above T_max, scales in below T_min,
and in between splits its cores again when the best split differs (or, as an option, when it is
better). The controller enforces T_ra, the least time between changes. The measured sojourn beyond
the modelled one is what the queueing model does not include, here a micro-batch's fixed cost
(`Unseen`). It is learned and added to what the model says of other cores.
"""

import dataclasses
import math
from collections.abc import Mapping

import numpy as np

from tidegate.control.allocation.allocate import (
    CoreAllocation,
    Infeasible,
    LatencyOutOfReach,
    assign,
    provision,
)
from tidegate.control.allocation.hosted import only_stations
from tidegate.control.allocation.unseen import Unseen
from tidegate.control.bounds import Bounds
from tidegate.control.constraints import Constraints
from tidegate.control.decision import Decision, hold
from tidegate.control.drs_options import DrsOptions
from tidegate.control.learning.cold_batches import StartUpLateness
from tidegate.control.learning.offered_rates import OfferedRates
from tidegate.control.learning.smoothing import Smoothing, smoother
from tidegate.control.measurement import Measurement, OperatorMeasurement
from tidegate.errors import AskedWrongly
from tidegate.models.queueing.stations import Queues
from tidegate.units import format_duration

_WORTH_IT = 0.95
"""With `resplit=better`, a new split must lower the modelled latency to at most this share."""


class _Stations:
    """Operators as queueing stations, with smoothed rates and variabilities (IV-A).

    Of a pipeline that works in micro-batches, lambda_0 is smoothed, and lambda_i is the ratio that
    many batches have shown times lambda_0 (`OfferedRates`).
    """

    def __init__(self, options: DrsOptions) -> None:
        self._model = options.model
        self._smoothing = Smoothing(smoother(options.alpha, options.w))
        self._offered = OfferedRates()
        self._outside = 0.0
        self._arriving: dict[str, float] = {}
        self._serving: dict[str, float] = {}
        """mu_i of each operator that has worked."""
        self._known = 0
        """Ticks since the last operator got its first rows."""
        self._heard = 0
        """Operators that have had rows."""
        self._longest_s = 0.0
        self._needed = options.ticks

    def of(self, measurement: Measurement) -> Queues | None:
        """The stations; None until their rates are smoothed over their window.

        A chain of segments fills one after the other, so a decision on first rates would give the
        cores to the operators that got rows first. But an operator may never get rows, as one that
        only raises alarms. Once no other operator got its first rows for the window and the time
        that two batches take, the silent ones count as without load: they keep their least tasks.
        """
        smooth = self._smoothing.update
        self._offered.learn(measurement)
        if measurement.arrival_rate > 0.0 or self._outside > 0.0:
            self._outside = smooth("outside", measurement.arrival_rate)
        arriving, serving, varying = [], [], []
        for operator in measurement.operators:
            name = operator.name
            # Until its first rate is known it is zero, which must not weigh in the mean.
            if operator.arrival_rate > 0.0 or name in self._arriving:
                self._arriving[name] = smooth(f"{name}.arrival", operator.arrival_rate)
            offered = self._offered.rate(name, operator.segment, self._outside)
            arriving.append(self._arriving.get(name, 0.0) if offered is None else offered)
            if operator.service_rate > 0.0:  # in a tick in which no batch ended it is not known
                self._serving[name] = smooth(f"{name}.service", operator.service_rate)
            serving.append(self._serving.get(name, 0.0))
            scv = (operator.arrival_scv + operator.service_scv) / 2.0
            varying.append(scv if self._model == "gigk" else 1.0)
        heard = len(self._arriving.keys() & self._serving.keys())
        self._known = self._known + 1 if heard == self._heard else 1
        self._heard = heard
        if self._outside <= 0.0 or heard == 0 or self._known < self._wait(measurement):
            return None
        if any(came > 0.0 >= served for came, served in zip(arriving, serving, strict=True)):
            return None  # its first batch has not ended yet
        # Without rows it does not matter how fast it would serve them.
        usual = max(self._serving.values())
        serving = [rate if rate > 0.0 else usual for rate in serving]
        return Queues.of(arriving, serving, variability=varying, external_rate=self._outside)

    def _wait(self, measurement: Measurement) -> int:
        """How many ticks the same operators must have had rows before that is all of them."""
        durations = [one.duration_s for part in measurement.segments for one in part.batches]
        self._longest_s = max(durations, default=self._longest_s)
        if self._heard == len(measurement.operators):
            return self._needed
        return self._needed + math.ceil(2.0 * self._longest_s / max(measurement.step_s, 1e-3))


class DrsFixed:
    """Optimisation (6): the lowest latency with K_max cores."""

    name = "drs-fixed"

    def __init__(self, cores: int, options: DrsOptions | None = None) -> None:
        if cores < 1:
            raise AskedWrongly(f"drs-fixed needs at least 1 core, not {cores}")
        self._cores = cores
        self._stations = _Stations(options or DrsOptions())

    def decide(self, measurement: Measurement, constraints: Constraints) -> Decision:
        """Run algorithm 1 on the present rates; change only if the split differs."""
        measurement = only_stations(measurement)
        queues = self._stations.of(measurement)
        if queues is None:
            return hold("no operator's rates are known yet")
        best, notes = _split(queues, measurement, self._cores)
        tasks = _tasks(measurement, best)
        if not tasks and measurement.cores_asked == self._cores:
            return Decision(reason="the cores already have their best split", notes=notes)
        return Decision(
            reason=f"the best split of {self._cores} cores is {_shown(measurement, best)}",
            cores=None if measurement.cores_asked == self._cores else self._cores,
            tasks=tasks,
            notes=notes,
            expected_latency_s=_finite(best.latency_s),
        )


class Drs:
    """Optimisation (8): the fewest cores with a latency of at most T_max."""

    name = "drs"

    def __init__(self, t_max_s: float, t_min_s: float, options: DrsOptions | None = None) -> None:
        if not 0.0 <= t_min_s < t_max_s:
            raise AskedWrongly(
                f"T_min is {t_min_s:g} s and T_max {t_max_s:g} s; give a T_min below T_max"
            )
        self._t_max_s, self._t_min_s = t_max_s, t_min_s
        self._allowed = Bounds()
        options = options or DrsOptions()
        self._stations = _Stations(options)
        self._better_only = options.resplit == "better"
        self._latency = smoother(options.alpha, options.w)()
        self._start_up = StartUpLateness(t_max_s)
        self._unseen = Unseen()
        self._unseen_s = 0.0
        self._measured_s: float | None = None

    @property
    def beliefs(self) -> dict[str, float]:
        """The part of the latency that the queueing model does not include."""
        return {"unseen_s": self._unseen_s}

    def decide(self, measurement: Measurement, constraints: Constraints) -> Decision:
        """Scale out above T_max, scale in below T_min, and split again in between."""
        self._allowed = constraints.allowed
        start_up = self._start_up.notice(measurement)
        measurement = only_stations(measurement)
        if start_up is not None:  # rows that waited for a cold batch: their sojourn misleads
            measurement = dataclasses.replace(measurement, latency=None)
        queues = self._stations.of(measurement)
        if measurement.latency is not None:
            self._measured_s = self._latency.update(measurement.latency.mean_s)
        measured_s = self._measured_s
        if queues is None or (measured_s is None and start_up is None):
            unknown = "no sojourn or no operator's rates are known yet"
            return hold(unknown if start_up is None else f"{start_up}; {unknown}")
        have = np.array([operator.tasks for operator in measurement.operators])
        total = int(have.sum())
        keeps_up = bool((have > queues.load).all())
        modelled_s = float(queues.network_latency(have)) if keeps_up else np.inf
        self._unseen.learn(queues, measurement)
        self._unseen_s = self._unseen.of(queues, measurement, have)
        overloaded = not np.isfinite(self._unseen_s)
        if measured_s is None or start_up is not None:
            if not overloaded:
                return hold(f"{start_up}; {total} cores serve the load")
            measured_s = 0.0
        shown = start_up or f"{format_duration(measured_s)} measured"
        if measured_s > self._t_max_s or overloaded:
            best, notes = self._fewest(queues, measurement)
            if best.total <= total:
                best, more = _split(queues, measurement, min(total + 1, self._allowed.most))
                notes += more
            why = f"{shown}, more than the target of {format_duration(self._t_max_s)}"
            if measured_s <= self._t_max_s:
                why = f"{shown}, but the load is more than {total} cores serve"
            return self._change(queues, measurement, best, why, notes)
        if measured_s < self._t_min_s:
            best, notes = self._fewest(queues, measurement)
            if best.total < total:
                why = f"{shown}, less than t_min, {format_duration(self._t_min_s)}"
                return self._change(queues, measurement, best, why, notes)
            return Decision(reason=f"{shown}, and no core can be released", notes=notes)
        best, notes = _split(queues, measurement, total)
        worth_it = not self._better_only or best.latency_s <= _WORTH_IT * modelled_s
        if worth_it and _tasks(measurement, best) and best.latency_s < modelled_s:
            return self._change(
                queues, measurement, best, f"{shown}, but another split is better", notes
            )
        return Decision(reason=f"{shown}, between t_min and the target", notes=notes)

    def _fewest(
        self, queues: Queues, measurement: Measurement
    ) -> tuple[CoreAllocation, tuple[str, ...]]:
        """Run algorithm 2 for T_max less what the model does not see; all cores if nothing is left.

        What it does not see depends on the cores, so cores are added until both fit T_max.
        """
        notes: tuple[str, ...] = ()
        least, most = _limits(measurement.operators)
        try:
            best = provision(queues, self._t_max_s, least=least, most=most)
            while best.total <= self._allowed.most:
                if self._expected_s(queues, measurement, best) <= self._t_max_s:
                    return best, notes
                more = assign(queues, best.total + 1, least=least, most=most)
                if more.total == best.total:
                    break  # no operator may have more tasks
                best = more
            if best.total > self._allowed.most:
                best, notes = _split(queues, measurement, self._allowed.most)
            floor_s = self._expected_s(queues, measurement, best)
            notes += self._out_of_reach(floor_s)
            return best, notes
        except LatencyOutOfReach as error:
            notes = self._out_of_reach(error.latency_reachable_s)
        except Infeasible as error:
            notes = (str(error),)
        best, more_notes = _split(queues, measurement, self._allowed.most)
        return best, notes + more_notes

    def _expected_s(self, queues: Queues, measurement: Measurement, best: CoreAllocation) -> float:
        return best.latency_s + self._unseen.of(queues, measurement, best.cores)

    def _out_of_reach(self, floor_s: float) -> tuple[str, ...]:
        if not np.isfinite(floor_s):
            return ()
        return (
            f"the target of {format_duration(self._t_max_s)} is below the lowest possible latency"
            f" of {format_duration(floor_s, round_up=True)}; latency is as low as it can be",
        )

    def _change(
        self,
        queues: Queues,
        measurement: Measurement,
        best: CoreAllocation,
        why: str,
        notes: tuple[str, ...],
    ) -> Decision:
        cores = self._allowed.clamp(best.total)
        return Decision(
            reason=f"{why}: {cores} cores, divided into {_shown(measurement, best)}",
            cores=None if cores == measurement.cores_asked else cores,
            tasks=_tasks(measurement, best),
            notes=notes,
            expected_latency_s=_finite(self._expected_s(queues, measurement, best)),
        )


def _limits(operators: tuple[OperatorMeasurement, ...]) -> tuple[list[int], list[int]]:
    least = [max(operator.least_tasks, 1) for operator in operators]
    most = [1 << 30 if op.most_tasks is None else op.most_tasks for op in operators]
    return least, most


def _split(
    queues: Queues, measurement: Measurement, cores: int
) -> tuple[CoreAllocation, tuple[str, ...]]:
    """Run algorithm 1; where the cores cannot keep up, split them in proportion to the load."""
    least, most = _limits(measurement.operators)
    try:
        return assign(queues, cores, least=least, most=most), ()
    except Infeasible as error:
        notes = (str(error),)
    share = queues.load / max(float(queues.load.sum()), 1e-12)
    given = np.clip(np.floor(share * cores).astype(np.int64), least, most)
    for index in np.argsort(-share):
        spare = cores - int(given.sum())
        given[index] = min(given[index] + max(spare, 0), most[index])
    return CoreAllocation(given, int(given.sum()), float("inf")), notes


def _tasks(measurement: Measurement, best: CoreAllocation) -> Mapping[str, int]:
    return {
        operator.name: int(count)
        for operator, count in zip(measurement.operators, best.cores, strict=True)
        if int(count) != operator.tasks
    }


def _shown(measurement: Measurement, best: CoreAllocation) -> str:
    return ", ".join(
        f"{operator.name} {int(count)}"
        for operator, count in zip(measurement.operators, best.cores, strict=True)
    )


def _finite(latency_s: float) -> float | None:
    return latency_s if np.isfinite(latency_s) else None
