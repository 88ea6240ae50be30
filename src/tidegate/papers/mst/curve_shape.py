"""How a throughput curve scales: one number for its shape, so that curves of two units compare."""

from collections.abc import Mapping

import numpy as np

from tidegate.sim.capacity.applications import APPLICATIONS


def exponent(rates: Mapping[int, float]) -> float:
    """The p of tau = c m^p that fits best: 1 is linear scaling, 0 is none."""
    cores, found = (
        np.log(np.array(list(column), dtype=np.float64))
        for column in zip(*rates.items(), strict=True)
    )
    return float(np.polyfit(cores, found, 1)[0])


def modelled(name: str, cores: list[int]) -> dict[int, float]:
    """The modelled curve of an application at these numbers of machines, in MB/s."""
    mean = APPLICATIONS[name].mean()
    return {count: float(mean[count - 1]) for count in cores}
