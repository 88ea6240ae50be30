"""The load that really came, tick by tick, as the batches of a run on target would have seen it."""

from collections.abc import Sequence

import numpy as np

from tidegate.control.measurement import Measurement

BATCHES = 1.5
"""A row's mean sojourn is so many batches, so a batch that is just on target lasts T / 1.5."""


def rates_that_came(ticks: Sequence[Measurement], batch_s: Sequence[float]) -> list[float]:
    """The arrival rate around each tick, averaged over a batch that is just on target.

    A batch takes all rows that came during the one before it. A spike that is shorter than that
    needs no more cores than the same rows spread over it.
    """
    spans = np.array([tick.interval_s for tick in ticks])
    rates = np.array([tick.arrival_rate for tick in ticks])
    # Ticks follow each other without a gap here: what nobody measured is not part of the load.
    edges = np.concatenate(([0.0], np.cumsum(spans)))
    rows = np.concatenate(([0.0], np.cumsum(spans * rates)))
    middles = edges[:-1] + spans / 2.0
    half = np.maximum(spans, np.asarray(batch_s)) / 2.0
    begin = np.maximum(middles - half, 0.0)
    end = np.minimum(middles + half, edges[-1])
    came = np.interp(end, edges, rows) - np.interp(begin, edges, rows)
    found = came / np.maximum(end - begin, 1e-9)
    return [float(rate) for rate in found]
