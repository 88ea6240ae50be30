"""CPU use of servers like PlanetLab's nodes: busy or idle for hours, with bursts in between.

The level drifts (a first-order autoregression in logits, so that it stays between 0 and 100),
single samples spike, and a node is idle now and then. The real series have a sample every five
minutes; an experiment plays them faster.
"""

import csv
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tidegate.errors import AskedWrongly
from tidegate.workload.counter import uniforms, words

Series = npt.NDArray[np.float64]
"""CPU use in per cent, with a row per sample and a column per node."""

_WANDER = 0.9
_NOISE = 0.55
_BURST = 0.06
_IDLE = 0.02


def cpu_series(nodes: int = 10, samples: int = 288, seed: int = 0) -> Series:
    """Generate a series; the same arguments give the same series."""
    if nodes < 1 or samples < 1:
        raise AskedWrongly(f"{nodes} nodes and {samples} samples; give at least one of each")
    numbers = np.arange(nodes * samples, dtype=np.int64)
    noise, bursts, idles = (
        uniforms(words(numbers, seed, stream=stream)).reshape(samples, nodes) for stream in range(3)
    )
    centre = -2.0 + 2.5 * uniforms(words(np.arange(nodes, dtype=np.int64), seed, stream=3))
    level = centre.copy()
    idle = np.zeros(nodes, dtype=np.bool_)
    series = np.empty((samples, nodes))
    for sample in range(samples):
        level += (1.0 - _WANDER) * (centre - level) + _NOISE * (2.0 * noise[sample] - 1.0)
        burst = np.where(bursts[sample] < _BURST, 3.0, 0.0)
        idle ^= idles[sample] < _IDLE
        series[sample] = np.where(idle, 0.0, 100.0 / (1.0 + np.exp(-(level + burst))))
    return np.asarray(np.round(series))


def read_cpu_series(path: str) -> Series:
    """Read a series from a CSV file: a header, a column `sample`, and one column per node."""
    file = Path(path)
    if not file.is_file():
        raise AskedWrongly(f"there is no file '{path}'; give a CSV file with a column per node")
    try:
        with file.open(newline="", encoding="utf-8") as lines:
            rows = list(csv.reader(lines))
    except (UnicodeDecodeError, csv.Error, OSError) as error:
        raise AskedWrongly(
            f"'{path}' cannot be read as CSV ({error}); give a CSV file with a column per node"
        ) from None
    if len(rows) < 2 or len(rows[0]) < 2 or rows[0][0] != "sample":
        raise AskedWrongly(
            f"'{path}' does not begin with a header 'sample,node0,...' and rows below it; give a "
            "CSV file of that form"
        )
    if any(len(row) != len(rows[0]) for row in rows):
        raise AskedWrongly(f"'{path}' has rows of different lengths; give a cell for every node")
    try:
        values = np.array([[float(cell) for cell in row[1:]] for row in rows[1:]])
    except ValueError as error:
        raise AskedWrongly(f"'{path}' has a cell that is not a number ({error}); fix it") from None
    if not ((values >= 0.0) & (values <= 100.0)).all():
        raise AskedWrongly(f"'{path}' has values outside 0 to 100; give per cent of the CPU")
    return values
