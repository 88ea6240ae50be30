"""How the rows that wait are dealt to the tasks of a map (Flink-ER algorithm 2).

Any task of a map may take any row, so a maximum flow through its tasks can be followed: each task
gets rows in proportion to what it can carry. A deal that fills one task while others have room
leaves augmenting paths, and sending rows along them gives the better deal. Tasks that are equally
fast get equal parts.
"""

from collections.abc import Sequence

import numpy as np

from tidegate.errors import AskedWrongly
from tidegate.models.flow.network import Flow, FlowNetwork, Vector

_TASKS = 2
"""The number of the map in its network; 0 and 1 are the source and the sink."""
SLOTS = 32
"""Slots for each task of a map whose rows are dealt by shares: so finely shares are kept."""


def stage_network(capacities: Sequence[float]) -> FlowNetwork:
    """A map as a network: from the source to each task and on to the sink."""
    count = len(capacities)
    sink = count + 1
    ways = [(0, task + 1, float(rate)) for task, rate in enumerate(capacities)]
    ways += [(task + 1, sink, np.inf) for task in range(count)]
    return FlowNetwork.of(ways, source=0, sink=sink, operators=[0, *[_TASKS] * count, 1])


def route_weights(flow: Flow, operator: int = _TASKS) -> Vector:
    """The shares of a flow that the tasks of an operator get, in the order of its vertices."""
    network = flow.network
    tasks = np.flatnonzero(network.operators == operator)
    taken = np.zeros(len(network.operators))
    np.add.at(taken, network.heads, flow.carried)
    total = taken[tasks].sum()
    if total <= 0.0:
        return np.full(len(tasks), 1.0 / max(len(tasks), 1))
    return np.asarray(taken[tasks] / total, dtype=np.float64)


def redealt(shares: Sequence[float], capacities: Sequence[float]) -> tuple[Vector, float]:
    """Better shares than these, and how much more the tasks carry with them (0.25: 25 %).

    With the present shares the flow is largest when the fullest task is full. From there, what the
    others have room for is sent along augmenting paths.
    """
    rates, parts = np.asarray(capacities, np.float64), np.asarray(shares, np.float64)
    if len(rates) != len(parts) or not (rates > 0.0).all() or not parts.sum() > 0.0:
        raise AskedWrongly("a deal needs a share and a capacity above 0 for each task")
    parts = parts / parts.sum()
    used = parts > 1e-12
    filled = float((rates[used] / parts[used]).min())
    carried = np.minimum(parts * filled, rates)
    network = stage_network(rates.tolist())
    best = Flow(network, np.concatenate([carried, carried])).raised()
    return route_weights(best), best.value / filled - 1.0


def slot_route(shares: Sequence[float], slots: int) -> tuple[int, ...]:
    """The task of each slot; rows are dealt to slots in turn.

    Each next slot goes to the task that would be done with it first. No other number of slots for
    each task is done earlier, and the slots of a task lie apart.
    """
    parts = np.asarray(shares, np.float64)
    if not len(parts) or not (parts >= 0.0).all() or not parts.sum() > 0.0:
        raise AskedWrongly("a deal needs shares of at least 0, and one above 0")
    given = np.zeros(len(parts))
    route = []
    with np.errstate(divide="ignore"):
        for _ in range(slots):
            task = int(np.argmin((given + 1.0) / parts))
            given[task] += 1.0
            route.append(task)
    return tuple(route)
