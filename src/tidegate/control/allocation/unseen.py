"""The part of the sojourn that a queueing network does not include, and how it grows with the load.

In Storm it is the network's transfer, a constant (DRS V-B). In micro-batches it is a batch's fixed
cost: a batch takes what came while the one before it ran, so n = lambda T and T = a + rho T, and
rows stay in proportion to T = a / (1 - rho). A constant learned at a low load would promise far too
much for a high one. So what is learned is the factor of the sum of 1 / (1 - rho) over segments.
"""

import numpy as np
import numpy.typing as npt

from tidegate.control.learning.smoothing import Alpha
from tidegate.control.measurement import Measurement
from tidegate.models.queueing.stations import Queues

_REMEMBERED = 0.9
_STEADY = (0.6, 1.6)
"""Little's law holds within these factors; beyond them a backlog grows, or is worked off."""


class Unseen:
    """Learned from measured and modelled sojourns; `learn` is called once a tick."""

    def __init__(self) -> None:
        self._factor = Alpha(_REMEMBERED)

    @property
    def factor_s(self) -> float:
        """Seconds for each unit of `_growth`."""
        return self._factor.value or 0.0

    def learn(self, queues: Queues, measurement: Measurement) -> None:
        """Compare the measured sojourn with the modelled one of the same cores."""
        if measurement.latency is None or not _steady(measurement, measurement.latency.mean_s):
            return
        cores = np.array([operator.tasks for operator in measurement.operators])
        growth = _growth(queues, measurement, cores)
        if np.isfinite(growth) and (cores > queues.load).all():
            modelled_s = float(queues.network_latency(cores))
            self._factor.update(max(measurement.latency.mean_s - modelled_s, 0.0) / growth)

    def of(self, queues: Queues, measurement: Measurement, cores: npt.ArrayLike) -> float:
        """What comes on top of the modelled sojourn with these cores; infinite in overload."""
        growth = _growth(queues, measurement, cores)
        return self.factor_s * growth if np.isfinite(growth) else float("inf")


def _steady(measurement: Measurement, latency_s: float) -> bool:
    """Whether the rows that are there have the latency that was measured, by Little's law.

    While a backlog is worked off, the rows that come out have waited far longer than those that
    come in will, and their latency says nothing about the cores.
    """
    if not measurement.segments:
        return True
    waits_s = sum(
        one.backlog_rows / one.arrival_rate
        for one in measurement.segments
        if one.arrival_rate > 0.0
    )
    return _STEADY[0] * latency_s <= waits_s <= _STEADY[1] * latency_s


def _growth(queues: Queues, measurement: Measurement, cores: npt.ArrayLike) -> float:
    """The sum of 1 / (1 - rho) over segments; one for a pipeline that has none.

    The operators of a segment work one after the other in each batch, so their loads add up.
    """
    if not measurement.segments:
        return 1.0
    busy = dict.fromkeys((segment.name for segment in measurement.segments), 0.0)
    rhos = queues.load / np.asarray(cores, dtype=np.float64)
    for operator, rho in zip(measurement.operators, rhos.tolist(), strict=True):
        busy[operator.segment] = busy.get(operator.segment, 0.0) + rho
    if max(busy.values()) >= 1.0:
        return float("inf")
    return sum(1.0 / (1.0 - rho) for rho in busy.values())
