"""Flink-ER on micro-batches: hold while the flow fits the network, else widen the limiting cuts.

The pipeline is a flow network, in rows from outside (`models/flow/stages`). Capacities come from
the measured service rates and link bandwidths, and are corrected by the latency against its target
(algorithm 1). While augmenting paths have room for the arriving rows and the backlog, nothing is
scaled. Where a cut is filled to 85 % or more (eq. 11), tasks are added one by one, each to the
operator whose task opens the widest augmenting path (`models/flow/widening`), until the cut is at
70 %. The paper only adds tasks; this policy also removes them once fewer have been enough for a
while. On executors of several speeds, the rows of a map are dealt to its tasks by what each can
carry (`control/flow/dealer`).
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tidegate.control.bounds import Bounds
from tidegate.control.constraints import Constraints
from tidegate.control.decision import Decision, deal_words, hold
from tidegate.control.flow.dealer import Dealer
from tidegate.control.flow.feedback import SegmentFeedback
from tidegate.control.flow.view import FlowView
from tidegate.control.learning.cold_batches import StartUpLateness
from tidegate.control.measurement import Measurement
from tidegate.errors import AskedWrongly
from tidegate.models.flow.cuts import limiting_cuts
from tidegate.models.flow.limiting import LIMITING
from tidegate.models.flow.stages import FIRST, StageFlow, Vector
from tidegate.models.flow.widening import TaskLimits, widened

_AIM = 0.7
"""How full a cut should be after its operators got more tasks."""
_NORMAL_BACKLOG = 1.4
"""A backlog up to this many times lambda T is normal. A pipeline on target holds lambda T rows by
Little's law, and up to 4/3 of that just before a batch ends."""


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
        self._feedback = SegmentFeedback(target_s)
        self._start_up = StartUpLateness(target_s)
        self._dealer = Dealer()
        self._changed_s = -np.inf
        self._wishes: deque[tuple[float, Vector]] = deque()
        self._beliefs: dict[str, float] = {}

    @property
    def beliefs(self) -> dict[str, float]:
        """The rate that can be carried and the room it leaves, in rows per second from outside."""
        return dict(self._beliefs)

    def decide(self, measurement: Measurement, constraints: Constraints) -> Decision:
        """Hold or release tasks while the load and its backlog fit; else widen every full cut.

        Where executors differ in speed, the rows of maps are dealt by it. That comes first, because
        it takes no core: nothing is scaled by what was measured with the old deal.
        """
        deals = self._dealer.deals(measurement)
        if deals:
            self._changed_s = measurement.at_s
        decision = self._scaled(measurement, constraints)
        said = [f"dealing the rows of `{n}` {deal_words(one)}" for n, one in deals.items()]
        return replace(decision, reason="; ".join([decision.reason, *said]), deal=deals)

    def _scaled(self, measurement: Measurement, constraints: Constraints) -> Decision:
        self._allowed = constraints.allowed
        start_up = self._start_up.notice(measurement)
        flow = self._view.update(measurement)
        rate = measurement.arrival_rate
        if flow is None:
            unknown = "the operators' rates are not known yet"
            return hold(unknown if start_up is None else f"{start_up}; {unknown}")
        settling = measurement.at_s - self._changed_s < self._settle_s
        if rate <= 0.0 or not flow.loads.any():
            return self._silent(flow, measurement, settling)
        piled_up = self._piled_up(measurement)
        if not settling and start_up is None:  # else rows are late that waited for a cold batch
            self._correct(measurement, flow, piled_up)
        usable = self._feedback.usable(self._view.segments)
        # The flow to carry: the arriving rows, and the backlog spread over the catch-up time.
        more = 1.0 + piled_up / self._catch_up_s
        wanted = replace(flow, demand=flow.demand * more[flow.segments])
        self._remember(measurement.at_s, wanted, usable)
        network = wanted.network(rate, usable)
        path = network.carrying(rate).improving().path(1e-9 * rate)
        room = 0.0 if path is None else path.room
        self._beliefs = {
            "capacity_rate": rate / float(flow.loads.max()),
            "usable": float(usable.min()),
            "room_rate": room,
        }
        if settling:
            return hold("the last change is settling")
        if self._spare_tasks(flow, measurement):
            fitted = self._fitted(wanted, measurement, usable)
            if not fitted.holds:
                return fitted
        if room > 0.0 and rate < LIMITING * (rate + room):
            said = f"there is room for {room:,.0f} rows/s more"
            return self._let_go(flow, measurement, said)
        cuts = limiting_cuts(network, rate)
        behind = sorted({number - FIRST for cut in cuts for number in cut.first_operators})
        return self._widened(wanted, measurement, behind, usable)

    def _piled_up(self, measurement: Measurement) -> Vector:
        """Each segment's backlog beyond the normal one, in seconds of the segment's load."""
        waiting = {one.name: one.backlog_rows for one in measurement.segments}
        seconds = [
            waiting.get(name, 0.0) / rate - _NORMAL_BACKLOG * self._target_s if rate > 0.0 else 0.0
            for name, rate in zip(self._view.segments, self._view.rates, strict=True)
        ]
        return np.maximum(np.array(seconds, dtype=np.float64), 0.0)

    def _correct(self, measurement: Measurement, flow: StageFlow, piled_up: Vector) -> None:
        view = self._view
        # Rows of any segment may have waited in the backlog of another one.
        resting = view.segments if piled_up.any() else ()
        self._feedback.correct(measurement, view.segments, view.rates, flow.loads, resting=resting)

    def _limits(self) -> TaskLimits:
        """What the operators and the bounds allow."""
        operators, cores = self._view.operators, self._allowed.most
        least = np.array([max(one.least_tasks, 1) for one in operators], dtype=np.float64)
        most = [
            cores if one.most_tasks is None else min(one.most_tasks, cores) for one in operators
        ]
        return TaskLimits(least, np.maximum(np.array(most, dtype=np.float64), least), float(cores))

    def _remember(self, at_s: float, wanted: StageFlow, usable: Vector) -> None:
        """Remember the fewest tasks that would carry the flow of this tick."""
        limits = self._limits()
        wish = wanted.fewest_tasks(_AIM * usable, limits.least, limits.most)
        if self._wishes and len(self._wishes[-1][1]) != len(wish):
            self._wishes.clear()
        self._wishes.append((at_s, wish))
        while at_s - self._wishes[0][0] > self._scale_in_after_s + 1e-6:
            self._wishes.popleft()

    def _spare_tasks(self, flow: StageFlow, measurement: Measurement) -> bool:
        """Whether there are more tasks at a time than cores, and some of them may be given up.

        Tasks that the user fixed may outnumber the cores, and so may segments. No division of the
        cores helps there: the tasks wait for each other, whatever is decided.
        """
        there = max(measurement.cores_asked, measurement.cores_granted)
        fewest = replace(flow, tasks=self._limits().least).widths.sum()
        return bool(flow.widths.sum() > max(there, fewest))

    def _fitted(self, wanted: StageFlow, measurement: Measurement, usable: Vector) -> Decision:
        """Divide the cores that there are among segments that began with too many tasks.

        Tasks without a core of their own wait for each other, and then no capacity is right.
        """
        limits = replace(self._limits(), cores=float(measurement.cores_asked))
        tasks = widened(
            replace(wanted, tasks=limits.least),
            measurement.arrival_rate,
            usable,
            segments=range(len(usable)),
            loads=np.full(len(usable), 1e-9),
            limits=limits,
        )
        why = f"{wanted.widths.sum():.0f} tasks at a time have {measurement.cores_asked} cores"
        decision = self._change(wanted, measurement, tasks, why)
        if not decision.holds:
            self._changed_s = measurement.at_s
        return decision

    def _widened(
        self, wanted: StageFlow, measurement: Measurement, behind: Sequence[int], usable: Vector
    ) -> Decision:
        tasks = widened(
            wanted,
            measurement.arrival_rate,
            usable,
            segments=behind,
            loads=_AIM * usable,
            limits=self._limits(),
        )
        filled = ", ".join(
            f"the way to `{self._view.operators[wanted.first_behind(segment)].name}` is"
            f" {wanted.loads[segment] / usable[segment]:.0%} full"
            for segment in behind
        )
        decision = self._change(wanted, measurement, tasks, filled)
        if decision.holds:
            return hold(f"{filled}, and no operator behind it may have more tasks")
        self._changed_s = measurement.at_s
        return decision

    def _silent(self, flow: StageFlow, measurement: Measurement, settling: bool) -> Decision:
        """Nothing arrives, so there is no flow to carry: release what only rows were for."""
        if settling or measurement.backlog_rows > 0.0:
            return hold("no rows arrive; the last change settles, or rows still wait")
        self._remember(measurement.at_s, flow, self._feedback.usable(self._view.segments))
        return self._let_go(flow, measurement, "no rows arrive")

    def _let_go(self, flow: StageFlow, measurement: Measurement, said: str) -> Decision:
        watched_s = measurement.at_s - self._wishes[0][0]
        if watched_s < self._scale_in_after_s - measurement.step_s - 1e-6:
            return hold(said)
        enough = np.max([wish for _, wish in self._wishes], axis=0)
        tasks = np.minimum(flow.tasks, enough)
        cores = self._allowed.clamp(int(replace(flow, tasks=tasks).widths.sum()))
        if cores >= measurement.cores_asked:
            return hold(said)
        why = f"{said}, and fewer tasks have been enough for {self._scale_in_after_s:g} s"
        decision = self._change(flow, measurement, tasks, why)
        if not decision.holds:
            self._changed_s = measurement.at_s
        return decision

    def _change(
        self, flow: StageFlow, measurement: Measurement, tasks: Vector, why: str
    ) -> Decision:
        """Ask for these tasks; stages take turns, so a segment needs the cores of its widest."""
        widths = replace(flow, tasks=tasks).widths
        cores = self._allowed.clamp(int(widths.sum()))
        there = min(cores, measurement.cores_granted)
        if (measurement.grant_s or 0.0) <= 2.0 * measurement.step_s:
            there = cores  # they are granted by the next batch
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
