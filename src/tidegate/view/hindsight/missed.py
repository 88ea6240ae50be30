"""Why ticks missed their target: too few cores, what these left behind, or slow batches."""

from collections.abc import Sequence

from tidegate.view.hindsight.past_tick import PastTick

_RECENT = 3
"""A first batch shows in the latency of so many ticks."""


def missed_causes(ticks: Sequence[PastTick]) -> list[str | None]:
    """The cause of each tick of one run that missed its target (`causes.MISSED`), else None.

    Misses that follow each other have one origin: rows that piled up while cores were short are
    worked off later, when the cores are enough.
    """
    found: list[str | None] = []
    before: str | None = None
    for place, tick in enumerate(ticks):
        before = _cause(ticks, place, before) if tick.missed else None
        found.append(before)
    return found


def _cause(ticks: Sequence[PastTick], place: int, before: str | None) -> str:
    tick = ticks[place]
    need = tick.need
    if need is None:
        return "unknown"
    if not need.reachable:
        return "out_of_reach"
    if need.wanted > need.enough and tick.granted >= need.enough:
        share = tick.record.share
        return "share" if share is not None and share < tick.settings.bounds.most else "maximum"
    if tick.short:
        return "short"
    if before in ("cold", "slow"):
        return before
    if before is not None:
        return "backlog"
    if any(one.first_batches for one in ticks[max(place + 1 - _RECENT, 0) : place + 1]):
        return "cold"
    recent_short = any(one.short for one in ticks[max(place - _RECENT, 0) : place])
    return "backlog" if recent_short or tick.piled_up else "slow"
