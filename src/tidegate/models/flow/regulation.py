"""What a task or a link of a flow network can carry, from first principles and by feedback.

Flink-ER starts from the network: the bandwidth left for data over the bytes of a row (eq. 9, 10).
What it does not see there, it learns from the latency (eq. 13, 14). We know one thing more, the
service rate of a task, which is a first principle as well.
"""

from tidegate.errors import AskedWrongly

_NEAR = 0.95
"""f is "about" c from this share on (algorithm 1)."""
_FAR_BELOW = 0.5
"""A latency is "far below" its constraint up to this share (algorithm 1)."""


def data_bandwidth(bandwidth_bytes_s: float, *taken_bytes_s: float) -> float:
    """N(data): bandwidth less what system, heartbeats, checkpoints and others take (eq. 9).

    Nothing calls this yet: the Flink-ER policy will, for the first capacity of a link.
    """
    return max(bandwidth_bytes_s - sum(taken_bytes_s), 0.0)


def link_capacity(data_bytes_s: float, row_bytes: float, links: int = 1) -> float:
    """Rows per second of one of the links into a task: they share its bandwidth (eq. 10).

    Nothing calls this yet: the Flink-ER policy will, for the first capacity of a link.
    """
    if row_bytes <= 0.0 or links < 1:
        raise AskedWrongly(
            f"rows of {row_bytes:g} bytes on {links} links have no capacity; give a size above 0"
            " and at least 1 link"
        )
    return data_bytes_s / (links * row_bytes)


def task_capacity(service_rate: float, links_rows_s: float = float("inf")) -> float:
    """Rows per second that a task takes: what it can work off, and what its links bring it.

    Nothing calls this yet: the Flink-ER policy will, where a link limits before the task does.
    """
    return min(service_rate, links_rows_s)


def latency_capacity(latency_s: float, at_once: float = 1.0) -> float:
    """Rows per second that a mean latency tells of (eq. 13).

    The paper's vertex has one tuple at a time; with `at_once` rows in it this is Little's law.
    """
    if latency_s <= 0.0:
        raise AskedWrongly(f"a latency of {latency_s:g} s tells of no capacity; give one above 0")
    return at_once / latency_s


def feedback_step(latency_s: float, constraint_s: float, at_once: float = 1.0) -> float:
    """eta, the step: how far the latency's rate is from the constraint's (eq. 14)."""
    return abs(latency_capacity(latency_s, at_once) - latency_capacity(constraint_s, at_once))


def regulated(
    capacity: float,
    flow: float,
    *,
    latency_s: float,
    constraint_s: float,
    at_once: float = 1.0,
) -> float:
    """One step of algorithm 1: less when the latency is above its constraint, more when it is far
    below it and the flow fills the capacity.

    Eq. 14's step is longer than the capacity itself once the latency is twice the constraint:
    it is cut off so that no step leads below zero.
    """
    step = feedback_step(latency_s, constraint_s, at_once)
    if latency_s > constraint_s and flow <= capacity:
        return max(capacity - step, 0.0)
    if latency_s < _FAR_BELOW * constraint_s and flow >= _NEAR * capacity:
        return capacity + step
    return capacity
