"""The flow networks of a run that are worth a look: one for each operator that was the bottleneck.

Each is drawn at the tick at which its operator was fullest, because that is where its cut shows.
"""

from collections.abc import Sequence

from tidegate.control.bottleneck import Bottleneck
from tidegate.control.flow.graph import FlowGraphs
from tidegate.control.record import Record
from tidegate.view.networks import NetworkMoment

MOST = 4
"""So many networks at most; those whose cuts were fullest."""


def networks_of(
    records: Sequence[Record],
    found: Sequence[Bottleneck | None],
    start_s: float,
    at_s: float | None = None,
) -> tuple[NetworkMoment, ...]:
    """The networks of some ticks, oldest first; `at_s` asks for the tick at one moment instead.

    `found` has the bottleneck of each record.
    """
    chosen = _fullest(found) if at_s is None else {_nearest(records, start_s + at_s)}
    graphs = FlowGraphs()
    drawn = []
    for place, record in enumerate(records[: max(chosen, default=-1) + 1]):
        if record.measurement.stale is not None:
            continue
        if place not in chosen:
            graphs.skip(record.measurement)
        elif (graph := graphs.draw(record.measurement)) is not None:
            drawn.append(NetworkMoment(record.measurement.at_s - start_s, graph))
    return tuple(drawn)


def _fullest(found: Sequence[Bottleneck | None]) -> set[int]:
    """For each operator that was the bottleneck, the tick at which it was fullest."""
    best: dict[str, tuple[float, int]] = {}
    for place, one in enumerate(found):
        if one is not None and one.load > best.get(one.operator, (0.0, 0))[0]:
            best[one.operator] = (one.load, place)
    return {place for _, place in sorted(best.values(), reverse=True)[:MOST]}


def _nearest(records: Sequence[Record], at_s: float) -> int:
    return min(range(len(records)), key=lambda place: abs(records[place].measurement.at_s - at_s))
