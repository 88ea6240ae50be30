"""Lets a policy that only decides on cores run a pipeline: every stage gets as many tasks."""

import dataclasses
import math

from tidegate.control.constraints import Constraints
from tidegate.control.decision import Decision, hold
from tidegate.control.learning.smoothing import Smoothing, Window
from tidegate.control.measurement import Measurement
from tidegate.control.operator_tasks import busy_of, split, tasks_on
from tidegate.control.policy import Policy
from tidegate.control.wrapper import Wrapper

_BUSY_TICKS = 15
"""Cores are divided among segments by their work of so many ticks: in some of them no batch of a
segment ends."""


class OnPipeline(Wrapper):
    """Calls the inner policy every `every_s`; the numbers of tasks follow the granted cores."""

    def __init__(self, inner: Policy, *, every_s: float = 1.0, name: str | None = None) -> None:
        super().__init__(inner)
        self._every_s = every_s
        self._name = name or inner.name
        self._asked_s = -math.inf
        self._busy = Smoothing(lambda: Window(_BUSY_TICKS))

    @property
    def name(self) -> str:
        """The given name, or the inner policy's."""
        return self._name

    def decide(self, measurement: Measurement, constraints: Constraints) -> Decision:
        """The inner decision with tasks added, or tasks for newly granted cores."""
        decision = hold("no decision is due")
        if measurement.at_s - self._asked_s >= self._every_s - 1e-6:
            self._asked_s = measurement.at_s
            decision = self._inner.decide(measurement, constraints)
        asked = measurement.cores_asked if decision.cores is None else decision.cores
        usable = min(asked, measurement.cores_granted)
        if asked > usable and (measurement.grant_s or 0.0) <= 2.0 * measurement.step_s:
            usable = asked  # they will be granted by the next batch
        busy = {n: self._busy.update(n, value) for n, value in busy_of(measurement).items()}
        tasks = tasks_on(measurement, split(busy, usable))
        return dataclasses.replace(decision, tasks=tasks)
