"""What the nodes send: CPU readings at rates that go up and down in steps of ten seconds."""

import numpy as np
import numpy.typing as npt

from tidegate.workload.cpu import Series
from tidegate.workload.keys import Keys
from tidegate.workload.profile import Profile, steps
from tidegate.workload.rows import RowColumns, rows_between

RATES = (50.0, 100.0, 150.0, 100.0)
"""Rows per second of each node, `STEP_S` each, repeated."""
STEP_S = 10.0
PERIOD_S = STEP_S * len(RATES)
SAMPLE_S = 1.0
"""Time between samples. The real series has one every five minutes, too few for a short run."""


def node_rates(nodes: int) -> Profile:
    """The rate profile of all nodes together."""
    changes = [(number * STEP_S, nodes * rate) for number, rate in enumerate(RATES)]
    return steps(changes, period_s=PERIOD_S)


def node_keys(nodes: int) -> Keys:
    """Which node each row is from."""
    return Keys(nodes)


def sent_rows(nodes: int, seed: int, count: int) -> RowColumns:
    """The first rows that the nodes send."""
    return rows_between(node_rates(nodes), node_keys(nodes), seed, 0, count)


def readings_of(
    series: Series, at_us: npt.NDArray[np.int64], node: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """The reading of each row, by its node and the microsecond (since the epoch) of its arrival."""
    samples, nodes = series.shape
    sample = (at_us // round(SAMPLE_S * 1e6)) % samples
    return np.asarray(series[sample, node % nodes])
