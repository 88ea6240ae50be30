"""The capacity of a task or link of a flow network, computed at first and then by feedback.

Flink-ER starts from the bandwidth that is left for data, divided by the size of a row (eq. 9, 10),
and then corrects the capacity by the measured latency (eq. 13, 14). Tidegate also measures the
service rate of a task, which limits it as well.
"""

import math

from tidegate.errors import AskedWrongly

_NEAR = 0.95
"""From this share of c on, f counts as "about" c (algorithm 1)."""
_FAR_BELOW = 0.5
"""Up to this share of its constraint, a latency counts as "far below" it (algorithm 1)."""


def data_bandwidth(bandwidth_bytes_s: float, *taken_bytes_s: float) -> float:
    """N(data): the bandwidth minus that of the system, heartbeats, checkpoints etc. (eq. 9)."""
    return max(bandwidth_bytes_s - sum(taken_bytes_s), 0.0)


def link_capacity(data_bytes_s: float, row_bytes: float, links: int = 1) -> float:
    """Rows per second of one link into a task; all its links share the bandwidth (eq. 10)."""
    if row_bytes <= 0.0 or links < 1:
        raise AskedWrongly(
            f"rows of {row_bytes:g} bytes on {links} links have no capacity; give a size above 0"
            " and at least 1 link"
        )
    return data_bytes_s / (links * row_bytes)


def task_capacity(service_rate: float, links_rows_s: float = math.inf) -> float:
    """Rows per second that a task can take, by its service rate and the rate of its links.

    A Spark task first receives its rows, which are sorted behind the shuffle, and then works on
    them. The two take turns, so their times for a row add up. In a pipelined engine they overlap,
    and the smaller rate would be the capacity.
    """
    if min(service_rate, links_rows_s) <= 0.0:
        return 0.0
    return 1.0 / (1.0 / service_rate + 1.0 / links_rows_s)


def latency_capacity(latency_s: float, at_once: float = 1.0) -> float:
    """The rows per second that correspond to a mean latency (eq. 13).

    The paper's vertex holds one tuple at a time; with `at_once` rows in it this is Little's law.
    """
    if latency_s <= 0.0:
        raise AskedWrongly(f"a latency of {latency_s:g} s gives no capacity; give one above 0")
    return at_once / latency_s


def feedback_step(latency_s: float, constraint_s: float, at_once: float = 1.0) -> float:
    """eta, the step size: the distance of the latency's rate from the constraint's (eq. 14)."""
    return abs(latency_capacity(latency_s, at_once) - latency_capacity(constraint_s, at_once))


def regulated(
    capacity: float,
    flow: float,
    *,
    latency_s: float,
    constraint_s: float,
    at_once: float = 1.0,
) -> float:
    """The capacity after one step of algorithm 1.

    It falls when the latency is above its constraint, and rises when the latency is far below it
    and the flow fills the capacity. The step of eq. 14 can exceed the capacity; it is clamped so
    that the result is never below zero.
    """
    step = feedback_step(latency_s, constraint_s, at_once)
    if latency_s > constraint_s and flow <= capacity:
        return max(capacity - step, 0.0)
    if latency_s < _FAR_BELOW * constraint_s and flow >= _NEAR * capacity:
        return capacity + step
    return capacity
