"""Whether a scale-in was right: not so early that the cores were needed again, and not late."""

from tidegate.view.hindsight.causes import ABOVE
from tidegate.view.hindsight.core_change import ChangedCores
from tidegate.view.hindsight.core_layers import layers
from tidegate.view.hindsight.core_words import cores_words, was
from tidegate.view.hindsight.judged_decision import Fault
from tidegate.view.hindsight.past_tick import PastTick

_SAME_LOAD = 1.15
"""A load that has grown by no more than this factor is the same."""


def early_in(change: ChangedCores) -> Fault | None:
    """The fault of a scale-in whose cores were needed again soon."""
    after = change.following(change.soon_s)
    again = next(
        (tick for tick in after if tick.need is not None and tick.need.enough > change.after), None
    )
    if again is None or again.need is None:
        return None
    missed = [tick for tick in after if tick.missed and tick.short]
    back = next((tick for tick in after if _scales_out(tick, change.after)), None)
    if not missed and back is None:
        return None
    missed_s = sum(tick.seconds for tick in after if tick.missed and tick.at_s >= again.at_s)
    then = back if back is not None and (not missed or back.at_s <= missed[0].at_s) else missed[0]
    since_s = then.at_s - change.at.at_s
    what = "the cores had to be asked for again" if then is back else "the target was missed"
    first = f"{what} after {since_s:,.0f} s"
    before = change.at.need.rate if change.at.need else change.at.record.measurement.arrival_rate
    if again.need.rate > _SAME_LOAD * before:
        why = f"{first}: the load rose from {before:,.0f} to {again.need.rate:,.0f} rows/s"
    else:
        cores = cores_words(change.after)
        why = f"{first}, at the same load: {cores} {was(change.after)} not enough for it"
    return Fault(kind="early_in", why=why, option="scale_in_after", missed_s=missed_s)


def _scales_out(tick: PastTick, cores: int) -> bool:
    wanted = tick.record.decision.cores
    return tick.record.acted and wanted is not None and wanted > cores


def late_in(change: ChangedCores) -> Fault | None:
    """The fault of a scale-in that came long after the cores had been enough.

    Time in which rows that had piled up were worked off does not count: they needed the cores.
    """
    held: list[PastTick] = []
    for tick in reversed(change.ticks[: change.place + 1]):
        enough = tick.need is not None and tick.need.enough <= change.after
        if not enough or tick.granted < change.before or tick.catching_up:
            break
        held.append(tick)
    held_s = sum(tick.seconds for tick in held)
    if held_s <= change.soon_s:
        return None
    core_seconds = sum((tick.granted - change.after) * tick.seconds for tick in held)
    by_cause: dict[str, float] = {}
    for tick in held:
        for name, above in layers(tick).items():
            by_cause[name] = by_cause.get(name, 0.0) + above * tick.seconds
    cause = ABOVE[max(by_cause, key=lambda name: by_cause[name])]
    cores = cores_words(change.after)
    why = f"{cores} had been enough for {held_s:,.0f} s; mostly {cause.words}"
    return Fault(kind="late_in", why=why, option=cause.option, core_seconds=core_seconds)
