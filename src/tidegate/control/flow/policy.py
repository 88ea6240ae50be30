"""Flink-ER on micro-batches: while there is room, send what has piled up; else widen the cuts.

The pipeline is a flow network in rows from outside (`models/flow/stages`). Capacities come from the
measured service rates and are regulated by the latency against its target (algorithm 1). While
augmenting paths have room for what comes and what has piled up, nothing is scaled: a map stage's
rows are dealt evenly to all its tasks, which is what a maximum flow through tasks of equal speed
does. Where a cut is filled to 85 % or more (eq. 11), the operators behind it get the fewest tasks
that bring it down again. The paper only adds; here tasks also go once fewer were enough for a
while.
"""

from collections import deque

import numpy as np

from tidegate.control.bounds import Bounds
from tidegate.control.constraints import Constraints
from tidegate.control.decision import Decision, hold
from tidegate.control.flow.bottleneck import FlowView
from tidegate.control.measurement import Measurement
from tidegate.errors import AskedWrongly
from tidegate.models.flow.limiting import LIMITING
from tidegate.models.flow.network import limiting_cuts
from tidegate.models.flow.regulation import regulated
from tidegate.models.flow.stages import FIRST, StageFlow, Vector

_AIM = 0.7
"""What a cut is filled to once its operators have more tasks."""
_LEAST_USABLE = 0.3
"""The feedback leaves so much of a capacity at least: what lies below is not for tasks to mend."""
_RECOVERY = 0.01
"""So much of a capacity comes back with every tick whose latency is far below the target."""
_NORMAL_BACKLOG = 1.4
"""Rows in a pipeline at its target are lambda T (Little), up to 4/3 of it before a batch ends."""
_LATENCIES = 5


class FlowPolicy:
    """See the module's text. Called once a tick, deterministic."""

    name = "flow"

    def __init__(
        self,
        target_s: float,
        *,
        catch_up_s: float = 5.0,
        scale_in_after_s: float = 10.0,
        settle_s: float = 2.0,
    ) -> None:
        if min(target_s, catch_up_s) <= 0.0 or min(scale_in_after_s, settle_s) < 0.0:
            raise AskedWrongly(
                f"a target of {target_s:g} s and a catch-up of {catch_up_s:g} s cannot be held;"
                " give durations above 0"
            )
        self._target_s = target_s
        self._allowed = Bounds()
        self._catch_up_s = catch_up_s
        self._scale_in_after_s = scale_in_after_s
        self._settle_s = settle_s
        self._view = FlowView()
        self._usable = 1.0
        self._latencies: deque[float] = deque(maxlen=_LATENCIES)
        self._changed_s = -np.inf
        self._wishes: deque[tuple[float, Vector]] = deque()
        self._beliefs: dict[str, float] = {}

    @property
    def beliefs(self) -> dict[str, float]:
        """In rows per second from outside: what can be carried and what room that leaves."""
        return dict(self._beliefs)

    def decide(self, measurement: Measurement, constraints: Constraints) -> Decision:
        """Room for what comes and has piled up: hold, or let go; else more behind every cut."""
        self._allowed = constraints.allowed
        flow = self._view.update(measurement)
        rate = measurement.arrival_rate
        if flow is None or rate <= 0.0 or not flow.loads.any():
            return hold("no operator's rates are known yet, or nothing arrives")
        piled_up = self._piled_up(measurement)
        settling = measurement.at_s - self._changed_s < self._settle_s
        if not settling and not piled_up.any():
            self._feed_back(measurement, rate, float(flow.loads.max()))
        # What is to be carried: the rows that come, and those that piled up within the catch-up.
        wanted = StageFlow(
            flow.segments,
            flow.demand * (1.0 + piled_up / self._catch_up_s)[flow.segments],
            flow.tasks,
        )
        wish = self._fewest(wanted)
        self._remember(measurement.at_s, wish)
        usable_rate = rate * self._usable
        most = usable_rate / float(wanted.loads.max())  # the least cut of the network below
        self._beliefs = {
            "capacity_rate": rate / float(flow.loads.max()),
            "usable": self._usable,
            "room_rate": max(most - rate, 0.0),
        }
        if settling:
            return hold("the last change is settling")
        if rate < LIMITING * most:
            return self._let_go(flow, measurement, most)
        cuts = limiting_cuts(wanted.network(usable_rate), rate)
        behind = sorted({number - FIRST for cut in cuts for number in cut.first_operators})
        return self._widened(wanted, measurement, behind, wish)

    def _piled_up(self, measurement: Measurement) -> Vector:
        """Of each segment: seconds of its load that wait beyond what is normal at the target."""
        waiting = {one.name: one.backlog_rows for one in measurement.segments}
        seconds = [
            waiting.get(name, 0.0) / rate - _NORMAL_BACKLOG * self._target_s if rate > 0.0 else 0.0
            for name, rate in zip(self._view.segments, self._view.rates, strict=True)
        ]
        return np.maximum(np.array(seconds, dtype=np.float64), 0.0)

    def _feed_back(self, measurement: Measurement, rate: float, load: float) -> None:
        """Algorithm 1 on the share of the capacity that the target lets be used.

        Never below what is being carried: that would contradict the measurement.
        """
        if measurement.latency is None:
            return
        self._latencies.append(measurement.latency.mean_s)
        latency_s = float(np.median(self._latencies))
        capacity = rate / load
        if latency_s <= 0.5 * self._target_s:
            self._usable = min(self._usable + _RECOVERY, 1.0)
        usable = regulated(
            self._usable * capacity,
            rate,
            latency_s=latency_s,
            constraint_s=self._target_s,
            at_once=rate * latency_s,
        )
        least = max(_LEAST_USABLE, min(load, self._usable))
        self._usable = float(np.clip(usable / capacity, least, 1.0))

    def _fewest(self, wanted: StageFlow) -> Vector:
        """The fewest tasks for what is to be carried, within the limits of operators and cores."""
        operators = self._view.operators
        least = np.array([max(one.least_tasks, 1) for one in operators], dtype=np.float64)
        cap = self._allowed.most
        most = np.array(
            [cap if one.most_tasks is None else min(one.most_tasks, cap) for one in operators],
            dtype=np.float64,
        )
        tasks = wanted.fewest_tasks(_AIM * self._usable, least, np.maximum(most, least))
        widths = _widths(wanted, tasks)
        if widths.sum() > cap:
            shares = np.maximum(np.floor(cap * widths / widths.sum()), 1.0)
            tasks = np.maximum(np.minimum(tasks, shares[wanted.segments]), least)
        return tasks

    def _remember(self, at_s: float, wish: Vector) -> None:
        if self._wishes and len(self._wishes[-1][1]) != len(wish):
            self._wishes.clear()
        self._wishes.append((at_s, wish))
        while at_s - self._wishes[0][0] > self._scale_in_after_s + 1e-6:
            self._wishes.popleft()

    def _widened(
        self, wanted: StageFlow, measurement: Measurement, behind: list[int], wish: Vector
    ) -> Decision:
        tasks = wanted.tasks.copy()
        for segment in behind:
            part = wanted.segments == segment
            tasks[part] = np.maximum(tasks[part], wish[part])
            if (tasks[part] == wanted.tasks[part]).all():
                tasks[wanted.first_behind(segment)] += 1.0
        names = [self._view.operators[wanted.first_behind(segment)].name for segment in behind]
        loads = wanted.loads[behind] / self._usable
        filled = ", ".join(
            f"the cut before `{name}` is filled to {load:.0%}"
            for name, load in zip(names, loads, strict=True)
        )
        decision = self._change(wanted, measurement, tasks, filled)
        if decision.holds:
            return hold(f"{filled}, and there are no more tasks to give")
        self._changed_s = measurement.at_s
        return decision

    def _let_go(self, flow: StageFlow, measurement: Measurement, most: float) -> Decision:
        room = f"there is room for {max(most - measurement.arrival_rate, 0.0):,.0f} rows/s more"
        watched_s = measurement.at_s - self._wishes[0][0]
        if watched_s < self._scale_in_after_s - measurement.step_s - 1e-6:
            return hold(room)
        enough = np.max([wish for _, wish in self._wishes], axis=0)
        tasks = np.minimum(flow.tasks, enough)
        if _widths(flow, tasks).sum() >= measurement.cores_asked:
            return hold(room)
        why = f"{room}, and fewer tasks were enough for {self._scale_in_after_s:g} s"
        decision = self._change(flow, measurement, tasks, why)
        if not decision.holds:
            self._changed_s = measurement.at_s
        return decision

    def _change(
        self, flow: StageFlow, measurement: Measurement, tasks: Vector, why: str
    ) -> Decision:
        """Stages take turns, so a segment needs the cores of its widest one."""
        cores = self._allowed.clamp(int(_widths(flow, tasks).sum()))
        there = min(cores, measurement.cores_granted)
        if (measurement.grant_s or 0.0) <= 2.0 * measurement.step_s:
            there = cores  # they come with the next batch
        widths = _widths(flow, tasks)
        shares = np.maximum(np.floor(widths * min(there / widths.sum(), 1.0)), 1.0)
        wanted = {
            one.name: max(int(min(count, shares[segment])), one.least_tasks)
            for one, count, segment in zip(
                self._view.operators, tasks, flow.segments.tolist(), strict=True
            )
        }
        changed = {
            one.name: wanted[one.name]
            for one in self._view.operators
            if wanted[one.name] != one.tasks
            and (one.most_tasks is None or wanted[one.name] <= one.most_tasks)
        }
        shown = ", ".join(f"{name} {count}" for name, count in changed.items())
        asked = f"{cores} cores" + (f", {shown}" if shown else "")
        return Decision(
            reason=f"{why}: {asked}",
            cores=None if cores == measurement.cores_asked else cores,
            tasks=changed,
        )


def _widths(flow: StageFlow, tasks: Vector) -> Vector:
    """The widest stage of each segment."""
    widths = np.zeros(int(flow.segments.max()) + 1)
    np.maximum.at(widths, flow.segments, tasks)
    return widths
