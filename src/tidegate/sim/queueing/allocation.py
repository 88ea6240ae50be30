"""Checks an allocation of cores against a network, and finds the operators it leaves unstable."""

from collections.abc import Mapping, Sequence

import numpy as np

from tidegate.errors import AskedWrongly, nearest
from tidegate.models.queueing.network import Network
from tidegate.models.queueing.stations import Queues


def allocation_vector(network: Network, allocation: Mapping[str, int]) -> tuple[int, ...]:
    """The cores in the order of the network's operators; every operator needs at least one."""
    for name in allocation:
        if name not in network.names:
            raise AskedWrongly(
                f"the allocation names an unknown operator '{name}'{nearest(name, network.names)}"
            )
    missing = [name for name in network.names if name not in allocation]
    if missing:
        raise AskedWrongly(
            f"the allocation gives no cores to {', '.join(repr(name) for name in missing)};"
            " every operator needs at least one"
        )
    for name, cores in allocation.items():
        if isinstance(cores, bool) or not isinstance(cores, int | np.integer) or cores < 1:
            raise AskedWrongly(
                f"operator '{name}' needs a whole number of cores of at least 1, not {cores!r}"
            )
    return tuple(int(allocation[name]) for name in network.names)


def unstable_stations(network: Network, allocation: Sequence[int]) -> dict[str, int]:
    """Operators that are unstable at the network's rate, with the fewest cores that suffice."""
    needed = Queues.of_network(network).stable_from
    return {
        name: int(fewest)
        for name, fewest, cores in zip(network.names, needed, allocation, strict=True)
        if cores < fewest
    }
