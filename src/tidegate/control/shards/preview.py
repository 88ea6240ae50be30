"""Whether to count the rows of each micro-batch by shard before they are routed.

A route is learned from the batches before. When other keys become hot, one batch runs on a route
that was made for the old ones. A micro-batch has all its rows before it routes the first one, which
a system that routes tuple by tuple (Elasticutor 3.1) has not. So a *preview* can count them, and
the route then suits this very batch. That takes a Spark job for every batch, so it has to pay: it
is on while the batches would lose more time on the routes learned before than a preview takes.
"""

from dataclasses import dataclass, field

import numpy as np

from tidegate.control.measurement import Measurement, OperatorMeasurement
from tidegate.control.shards.balance import balance, imbalance
from tidegate.control.shards.route import Route, rerouted

FIRST_COST_S = 0.1
"""What a preview is thought to take before one was measured."""
WORTH_IT = 1.5
"""Previews begin when they are expected to save this many times what they take. They end when they
save less than they take, so they are not switched on and off for small differences."""
BATCHES = 8
"""Over about so many batches the loss is averaged."""
FORGOTTEN = 256
"""In about so many batches without a preview it is forgotten what previews took."""


@dataclass(slots=True)
class PreviewGain:
    """What previews of one operator save, and what they take; both in seconds of a batch."""

    saved_s: float = 0.0
    cost_s: float = FIRST_COST_S
    _told: int = 0
    """How often the time of previews was told."""
    _tried: bool = False
    """Whether the rows of the last tick were counted."""
    _learned: Route = ()
    """The route that suits the rows of the last tick: what the next batch has without a preview."""

    def observe(self, operator: OperatorMeasurement, batches: int) -> None:
        """Learn from the batches of one tick."""
        self._learn_cost(operator.preview_s)
        route, rows, tasks = operator.route, operator.shard_rows, operator.tasks
        if tasks < 2:
            self._average(0.0, batches)  # one task has all the rows, whatever the route
            return
        if len(route) != len(rows) or np.max(route) >= tasks:
            return
        best = balance(rows, route, tasks)
        learned, self._learned = self._learned, rerouted(route, best.moves, tasks)
        if len(learned) != len(route) or np.max(learned) >= tasks:
            return
        without = imbalance(rows, learned, tasks)
        self._average(max(without - best.after, 0.0) * operator.busy_s / tasks / batches, batches)

    def _average(self, lost_s: float, batches: int) -> None:
        self.saved_s += (lost_s - self.saved_s) * (1.0 - (1.0 - 1.0 / BATCHES) ** batches)

    def _learn_cost(self, took_s: float | None) -> None:
        """The first preview is not counted: Spark compiles what it runs for the first time.

        What was thought before weighs as much as one preview, so that a wrong guess does not make
        many batches pay for previews that save less than they take. While there are none, what was
        learned fades, so that they are tried again one day.
        """
        if took_s is None:
            self.cost_s += (FIRST_COST_S - self.cost_s) / FORGOTTEN
        elif self._tried:
            self._told += 1
            self.cost_s += (took_s - self.cost_s) / min(self._told + 1, BATCHES)
        self._tried = took_s is not None

    def pays(self, *, on: bool) -> bool:
        """Whether previews are worth their time; `on`: whether there are any now."""
        return self.saved_s > (1.0 if on else WORTH_IT) * self.cost_s


@dataclass(slots=True)
class Previews:
    """Decides for which operators of a pipeline rows are counted before they are routed."""

    _gains: dict[str, PreviewGain] = field(default_factory=dict)

    def observe(self, measurement: Measurement) -> None:
        """Learn from a tick, for each operator that can be previewed."""
        batches = {segment.name: len(segment.batches) for segment in measurement.segments}
        for operator in measurement.operators:
            count = batches.get(operator.segment, 0)
            if operator.preview is not None and count and np.any(operator.shard_rows):
                self._gains.setdefault(operator.name, PreviewGain()).observe(operator, count)

    def changes(self, measurement: Measurement) -> tuple[dict[str, bool], list[str]]:
        """The operators whose previews are to begin or to end, and why, in words."""
        found: dict[str, bool] = {}
        said: list[str] = []
        for operator in measurement.operators:
            gain = self._gains.get(operator.name)
            if gain is None or operator.preview is None:
                continue
            pays = gain.pays(on=operator.preview)
            if pays != operator.preview:
                found[operator.name] = pays
                said.append(_words(operator.name, gain, begins=pays))
        return found, said


def _words(name: str, gain: PreviewGain, *, begins: bool) -> str:
    if begins:
        return (
            f"counting the rows of '{name}' before they are routed: its hot keys change so often"
            f" that batches lose {gain.saved_s:.2f} s on average, and counting takes about"
            f" {gain.cost_s:.2f} s"
        )
    return (
        f"no longer counting the rows of '{name}' before they are routed: that would save"
        f" {gain.saved_s:.2f} s of a batch and takes {gain.cost_s:.2f} s"
    )
