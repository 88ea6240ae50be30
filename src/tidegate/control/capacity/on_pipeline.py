"""Runs a pipeline by a policy that plans capacity: MST's policies 0 to 7, and the priced one.

The policy inside counts in minutes; here a step stands for a minute (`steps`). Capacity is learned
from micro-batches (`batch_samples`) in rows per second within the latency target, from nothing or
from a capacity that was measured before.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import numpy as np

from tidegate.control.capacity.batch_samples import BatchSamples, ShownCapacity
from tidegate.control.capacity.steps import StepFold
from tidegate.control.constraints import Constraints
from tidegate.control.decision import Decision, hold
from tidegate.control.measurement import Measurement
from tidegate.control.policy import Policy
from tidegate.forecast.remembering import finite
from tidegate.models.capacity.machines import CapacityModel
from tidegate.models.capacity.online import OnlineCapacity

UNKNOWN = "no batch has shown yet how much the cores can process"


class LearningCapacity(CapacityModel, Protocol):
    """A capacity model that may begin without a sample."""

    @property
    def known(self) -> bool:
        """Whether there is any sample, and so an answer."""
        ...


class CapacityOnPipeline:
    """Folds ticks into steps, lets the capacity learn, and asks the policy inside."""

    def __init__(
        self,
        inner: Policy,
        capacity: LearningCapacity,
        batches: BatchSamples,
        steps: StepFold,
        *,
        name: str,
        most_cores: int,
        online: OnlineCapacity | None = None,
    ) -> None:
        """`online` is the capacity if it learns from saturated batches (OL of table III). The
        priced policy learns from its minutes by itself."""
        self._inner = inner
        self._capacity = capacity
        self._batches = batches
        self._steps = steps
        self._name = name
        self._most_cores = most_cores
        self._online = online
        self._heard = False
        """Whether any row has come: ticks before the first one say nothing about the load."""
        self._beliefs: dict[str, float] = {}

    @property
    def name(self) -> str:
        """The name that a person selects it by."""
        return self._name

    @property
    def beliefs(self) -> dict[str, float]:
        """The capacity on the present cores, in rows per second, and its deviation."""
        return dict(self._beliefs)

    def decide(self, measurement: Measurement, constraints: Constraints) -> Decision:
        """Look at every tick; learn and decide at the end of a step."""
        self._heard |= measurement.arrival_rate > 0.0
        if not self._heard:
            return hold("no row has come yet")
        minutes = self._steps.add(measurement, self._batches.shown(measurement))
        decision = hold("no decision is due")
        if minutes and self._online is not None:
            for one in self._steps.samples:
                self._learn(one, self._online)
            if not self._online.known:
                return hold(UNKNOWN)
        for minute in minutes:
            found = self._inner.decide(minute, constraints)
            decision = found if decision.holds or not found.holds else decision
        self._believe(measurement)
        return self._explained(decision)

    def learned(self) -> dict[str, Any]:
        """The newest samples, with the target and the measured capacity that they go with.

        What was measured before the start is in its own file, which a restart reads again.
        """
        if self._online is None:
            return {}
        return {
            "mean_s": self._batches.mean_s,
            "samples": _plain(self._online.samples),
            "measured": _plain(self._online.measured),
        }

    def recall(self, learned: Mapping[str, Any], age_s: float) -> None:
        """Begin with the samples of an earlier run, if it had the same target.

        A capacity that was measured anew replaces them: whoever measures again has a reason.
        """
        if self._online is None or learned.get("mean_s") != self._batches.mean_s:
            return
        if learned.get("measured", []) != _plain(self._online.measured):
            return
        for cores, rows_per_s in learned.get("samples", ()):
            self._learn(ShownCapacity(int(cores), finite(rows_per_s), True), self._online)

    def _learn(self, shown: ShownCapacity, online: OnlineCapacity) -> None:
        if not 1 <= shown.cores <= self._most_cores or shown.rows_per_s <= 0.0:
            return
        if shown.saturated:
            online.observe(shown.cores, shown.rows_per_s)
        else:
            online.suggest(shown.cores, shown.rows_per_s)

    def _believe(self, measurement: Measurement) -> None:
        if self._capacity.known:
            mean, deviation = self._capacity_of(measurement.cores_granted)
            self._beliefs = {"capacity": mean, "capacity_sd": deviation}

    def _explained(self, decision: Decision) -> Decision:
        """Say what the cores that are asked for can do."""
        if decision.cores is None:
            return decision
        mean, deviation = self._capacity_of(decision.cores)
        reason = (
            f"{decision.reason}: {decision.cores} cores process {mean:,.0f} rows/s within the"
            f" target, give or take {deviation:,.0f}"
        )
        return dataclasses.replace(decision, reason=reason)

    def _capacity_of(self, cores: int) -> tuple[float, float]:
        """Mean and standard deviation of what so many cores process."""
        m = np.array([min(max(cores, 1), self._most_cores)])
        return float(self._capacity.mean(m)[0]), float(np.sqrt(self._capacity.variance(m)[0]))


def _plain(samples: Iterable[tuple[int, float]]) -> list[list[float]]:
    """Samples as plain JSON values."""
    return [list(one) for one in samples]
