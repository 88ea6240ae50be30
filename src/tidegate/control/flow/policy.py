"""Flink-ER on micro-batches: hold while the flow fits the network, else widen the limiting cuts.

The pipeline is a flow network, in rows from outside (`models/flow/stages`). Capacities come from
the measured service rates and are regulated by the latency against its target (algorithm 1). While
augmenting paths have room for the arriving rows and the backlog, nothing is scaled: a map stage's
rows are dealt evenly to all its tasks, which is what a maximum flow through tasks of equal speed
does. Where a cut is filled to 85 % or more (eq. 11), the operators behind it get the fewest tasks
that bring it below that again. The paper only adds tasks; this policy also removes them once fewer
have been enough for a while.
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
"""How full a cut should be after its operators got more tasks."""
_LEAST_USABLE = 0.3
"""The least share of a capacity that the feedback leaves: a latency that is still too high then is
not for more tasks to mend."""
_RECOVERY = 0.01
"""The share of a capacity that is restored with every tick whose latency is far below target."""
_NORMAL_BACKLOG = 1.4
"""A backlog up to this many times lambda T is normal. A pipeline on target holds lambda T rows by
Little's law, and up to 4/3 of that just before a batch ends."""
_LATENCIES = 5


class FlowPolicy:
    """The policy that the module describes. Called once a tick; deterministic."""

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
                f"a target of {target_s:g} s with a catch-up time of {catch_up_s:g} s is not"
                " possible; give durations above 0"
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
        """The rate that can be carried and the room it leaves, in rows per second from outside."""
        return dict(self._beliefs)

    def decide(self, measurement: Measurement, constraints: Constraints) -> Decision:
        """Hold or release tasks while the load and its backlog fit; else widen every full cut."""
        self._allowed = constraints.allowed
        flow = self._view.update(measurement)
        rate = measurement.arrival_rate
        if flow is None or rate <= 0.0 or not flow.loads.any():
            return hold("the operators' rates are not known yet, or no rows arrive")
        piled_up = self._piled_up(measurement)
        settling = measurement.at_s - self._changed_s < self._settle_s
        if not settling and not piled_up.any():
            self._feed_back(measurement, rate, float(flow.loads.max()))
        # The flow to carry: the arriving rows, and the backlog spread over the catch-up time.
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
        """Each segment's backlog beyond the normal one, in seconds of the segment's load."""
        waiting = {one.name: one.backlog_rows for one in measurement.segments}
        seconds = [
            waiting.get(name, 0.0) / rate - _NORMAL_BACKLOG * self._target_s if rate > 0.0 else 0.0
            for name, rate in zip(self._view.segments, self._view.rates, strict=True)
        ]
        return np.maximum(np.array(seconds, dtype=np.float64), 0.0)

    def _feed_back(self, measurement: Measurement, rate: float, load: float) -> None:
        """Apply algorithm 1 to the share of the capacity that can be used within the target.

        The share never falls below the load that is being carried: that would contradict the
        measurement.
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
        """The fewest tasks that carry the flow, within the limits of the operators and cores."""
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
            return hold(f"{filled}, and no operator may have more tasks")
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
        why = f"{room}, and fewer tasks have been enough for {self._scale_in_after_s:g} s"
        decision = self._change(flow, measurement, tasks, why)
        if not decision.holds:
            self._changed_s = measurement.at_s
        return decision

    def _change(
        self, flow: StageFlow, measurement: Measurement, tasks: Vector, why: str
    ) -> Decision:
        """Ask for these tasks; stages take turns, so a segment needs the cores of its widest."""
        cores = self._allowed.clamp(int(_widths(flow, tasks).sum()))
        there = min(cores, measurement.cores_granted)
        if (measurement.grant_s or 0.0) <= 2.0 * measurement.step_s:
            there = cores  # they are granted by the next batch
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
    """The number of tasks of each segment's widest stage."""
    widths = np.zeros(int(flow.segments.max()) + 1)
    np.maximum.at(widths, flow.segments, tasks)
    return widths
