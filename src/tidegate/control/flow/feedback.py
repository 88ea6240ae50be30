"""Corrects the capacities of a pipeline's segments by their latencies (Flink-ER algorithm 1).

The paper corrects the capacity of every edge by the latency of the vertex behind it. On Spark the
operators of a segment are stages of one batch: a row waits for the batch, not for a stage. So the
edges into one segment are corrected together, by the latency of that segment (eq. 13, 14).

A segment's constraint is what the others leave of the target, and at least its even part of it. So
some segment is above its constraint exactly while the whole pipeline is above the target.
"""

from collections import deque
from collections.abc import Collection, Sequence

import numpy as np

from tidegate.control.measurement import Measurement
from tidegate.models.flow.regulation import regulated
from tidegate.models.flow.stages import Vector

_LEAST_USABLE = 0.3
"""The least share of a capacity that the feedback leaves: a latency that is still too high then is
not for more tasks to mend."""
_RECOVERY = 0.01
"""The share of a capacity that is restored with every tick whose latency is far below target."""
_FAR_BELOW = 0.5
_LATENCIES = 5
"""The median of so many ticks counts: one slow batch is no reason for more tasks."""

_SHORTEST_S = 1e-3
"""The shortest latency that counts. Stamps of another machine may be ahead of this one's clock."""


class SegmentFeedback:
    """The share of each segment's capacity that can be used within the target."""

    def __init__(self, target_s: float) -> None:
        self._target_s = target_s
        self._usable: dict[str, float] = {}
        self._seen: dict[str, deque[tuple[float, float]]] = {}
        """Latencies of each segment with their constraints."""

    def usable(self, segments: Sequence[str]) -> Vector:
        """The shares of these segments; 1 where nothing was corrected."""
        return np.array([self._usable.get(name, 1.0) for name in segments], dtype=np.float64)

    def correct(
        self,
        measurement: Measurement,
        segments: Sequence[str],
        rates: Sequence[float],
        loads: Vector,
        *,
        resting: Collection[str] = (),
    ) -> None:
        """One step of algorithm 1 for each segment whose rows came out during the tick.

        Segments that are `resting` drain a backlog: their latency says nothing about their tasks.
        """
        for name, rate, load in zip(segments, rates, loads.tolist(), strict=True):
            told = self._latency(measurement, name, len(segments))
            if told is None or name in resting or rate <= 0.0 or load <= 0.0:
                continue
            seen = self._seen.setdefault(name, deque(maxlen=_LATENCIES))
            seen.append(told)
            latency_s, constraint_s = np.median(np.array(seen), axis=0).tolist()
            self._usable[name] = _corrected(
                self._usable.get(name, 1.0), rate, load, latency_s, constraint_s
            )

    def _latency(
        self, measurement: Measurement, name: str, segments: int
    ) -> tuple[float, float] | None:
        """A segment's latency and its constraint; the pipeline's, where only that is measured."""
        if measurement.latency is None:
            return None
        total_s = max(measurement.latency.mean_s, _SHORTEST_S)
        known = {one.name: one.latency for one in measurement.segments}
        if segments == 1 or all(latency is None for latency in known.values()):
            return total_s, self._target_s
        own = known.get(name)
        if own is None:
            return None
        own_s = max(own.mean_s, _SHORTEST_S)
        left_s = self._target_s - max(total_s - own_s, 0.0)
        return own_s, max(left_s, self._target_s / segments)


def _corrected(
    usable: float, rate: float, load: float, latency_s: float, constraint_s: float
) -> float:
    """The share after one step. It is never below the load that is being carried.

    A share below that would contradict the measurement.
    """
    capacity = rate / load
    least = max(_LEAST_USABLE, min(load, usable))
    if latency_s <= _FAR_BELOW * constraint_s:
        usable = min(usable + _RECOVERY, 1.0)
    stepped = regulated(
        usable * capacity,
        rate,
        latency_s=latency_s,
        constraint_s=constraint_s,
        at_once=rate * latency_s,
    )
    return float(np.clip(stepped / capacity, least, 1.0))
