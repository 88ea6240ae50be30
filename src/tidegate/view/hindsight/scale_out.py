"""Whether a scale-out was right: in time, and needed."""

from collections.abc import Mapping

from tidegate.view.hindsight.causes import ABOVE
from tidegate.view.hindsight.core_change import ChangedCores
from tidegate.view.hindsight.core_words import cores_words, was
from tidegate.view.hindsight.judged_decision import Fault
from tidegate.view.hindsight.past_tick import PastTick

_HIGHER = 1.1
"""A load within this factor of the forecast is as forecast."""
_RECENT = 3
"""A first batch may be the reason of decisions so many ticks later."""
_SURGE = "a surge to "
"""How the reason of a scale-out begins that is made for the reserve alone."""


def late_out(change: ChangedCores, causes: Mapping[int, str]) -> Fault | None:
    """The fault of a scale-out that came too late, so that the target was missed.

    `causes` has the cause of each tick that missed its target, by its place.
    """
    ticks, begin = change.ticks, _short_since(change)
    granted = _granted_at(change)
    if begin is None:
        return None
    last = granted if granted is not None else change.until
    end_s = ticks[last].at_s + change.soon_s
    missed_s = sum(
        tick.seconds
        for place, tick in enumerate(ticks)
        if begin <= place and tick.at_s <= end_s and causes.get(place) in ("short", "backlog")
    )
    if missed_s <= 0.0:
        return None
    why, option = _why_late(change, begin, granted)
    return Fault(kind="late_out", why=why, option=option, missed_s=missed_s)


def _short_since(change: ChangedCores) -> int | None:
    """Where the shortage began that this decision was to end; None if there was none.

    Either more cores were needed already when it was decided, or they were needed before they
    were granted.
    """
    ticks, place = change.ticks, change.place
    need = ticks[place].need
    if need is not None and need.enough > change.before:
        while place > 0 and _needs_more(ticks[place - 1], change.before):
            place -= 1
        return place
    for later in range(place + 1, change.until + 1):
        tick = ticks[later]
        if tick.granted >= change.after:
            return None
        enough = 0 if tick.need is None else tick.need.enough
        if tick.short and change.before < enough <= change.after:
            return later
    return None


def _needs_more(tick: PastTick, cores: int) -> bool:
    return tick.need is not None and tick.need.enough > cores and tick.asked == cores


def _granted_at(change: ChangedCores) -> int | None:
    """The place of the first tick that had the cores; None if none had them while asked for."""
    for place in range(change.place + 1, len(change.ticks)):
        tick = change.ticks[place]
        if tick.granted >= change.after:
            return place
        if tick.asked < change.after:
            return None
    return None


def _why_late(change: ChangedCores, begin: int, granted: int | None) -> tuple[str, str | None]:
    """Why it came late, and the option that would help: the first reason that the records show."""
    ticks, decided = change.ticks, change.place
    last = change.until if granted is None else granted
    needs = [tick.need for tick in ticks[begin : max(last, decided) + 1] if tick.need is not None]
    enough = min(max(need.enough for need in needs), change.after)
    rate = max(need.rate for need in needs)
    cores = f"{cores_words(enough)} {was(enough)}"
    wanted = f"{cores} needed from second {change.second(begin):,.0f} on"
    if begin == 0 and decided <= 1 + _RECENT:
        return f"{wanted}, and the run began with {cores_words(change.before)}", "cores"
    held = [tick for tick in ticks[begin:decided] if tick.held_back is not None]
    if held:
        cause = ABOVE[held[0].held_back or "policy"]
        held_s = sum(tick.seconds for tick in held)
        return f"{wanted}; it was held back for {held_s:,.0f} s: {cause.words}", cause.option
    waited_s = max(ticks[decided].at_s - ticks[begin].at_s, 0.0)
    grant_s = ticks[last].at_s - ticks[decided].at_s
    usual_s = 2.0 * ticks[decided].record.measurement.step_s
    if grant_s > max(usual_s, waited_s):
        came = "came" if granted is not None else "had not come"
        asked = f"asked for at second {change.at.at_s - change.start_s:,.0f}"
        return f"{wanted}; {asked}, they {came} {grant_s:,.0f} s later", "floors"
    before = ticks[max(begin - 1, 0)].record.beliefs
    forecast = before.get("forecast_rate", 0.0) * before.get("margin", 1.0)
    if 0.0 < forecast < rate / _HIGHER:
        rose = f"the load rose faster than forecast: {forecast:,.0f} rows/s were forecast"
        return f"{wanted}; {rose}, {rate:,.0f} came", "floors"
    then = ticks[begin].need
    if then is not None and then.believed is not None and then.believed < then.enough:
        return f"{wanted}; batches took longer than was learned until then", None
    if waited_s > usual_s:
        return f"{wanted}; it was decided {waited_s:,.0f} s later", "policy"
    return f"{wanted}; it was decided as soon as that was seen", "floors"


def needless_out(change: ChangedCores, causes: Mapping[int, str]) -> Fault | None:
    """The fault of a scale-out that nothing needed: the cores before were enough all along."""
    after = change.following(change.soon_s)
    around = [change.at, *after]
    if any(tick.need is not None and tick.need.enough > change.before for tick in around):
        return None
    recent = range(max(change.place + 1 - _RECENT, 0), change.place + 1)
    origin = {causes.get(place) for place in recent}
    waiting = change.at.piled_up and "cold" not in origin
    if waiting or origin & {"short", "backlog", "maximum", "share", "out_of_reach"}:
        return None  # it was to work off rows that had piled up
    core_seconds = sum(
        max(min(tick.granted, change.after) - change.before, 0) * tick.seconds
        for tick in change.in_force()
        if tick.at_s <= change.at.at_s + change.soon_s
    )
    why, option = _why_needless(change, after, origin)
    return Fault(kind="needless_out", why=why, option=option, core_seconds=core_seconds)


def _why_needless(
    change: ChangedCores, after: list[PastTick], origin: set[str | None]
) -> tuple[str, str | None]:
    decided, ticks = change.at, change.ticks
    recent = ticks[max(change.place + 1 - _RECENT, 0) : change.place + 1]
    costs_known = "needed_cores" in decided.record.beliefs
    least, by_schedule = decided.settings.least(decided.record)
    if change.before < least:
        cause = ABOVE["floors" if by_schedule else "minimum"]
        return f"it was asked for by {cause.words}", cause.option
    if any(tick.first_batches for tick in recent) or "cold" in origin:
        return (
            "first batches ran long while code was loaded and compiled, which is no cost of"
            " their rows",
            "first_change",
        )
    beliefs = decided.record.beliefs
    forecast = beliefs.get("forecast_rate", 0.0) * beliefs.get("margin", 1.0)
    came = max((tick.need.rate for tick in [decided, *after] if tick.need), default=0.0)
    if decided.record.decision.reason.startswith(_SURGE):
        return "it was a reserve for a surge, and no surge came", None
    if forecast > _HIGHER * came:
        return (
            f"the load that was forecast did not come: {forecast:,.0f} rows/s were forecast,"
            f" {came:,.0f} came at most",
            None,
        )
    need = decided.need
    if need is not None and need.believed is not None and need.believed > change.before:
        return "batches were believed to take longer than they did", None
    if "slow" in origin:
        return "single batches took longer than the model expects", None
    if not costs_known:
        return f"policy `{decided.record.policy}` asked for them", "policy"
    return "for the margin and the reserve that the policy keeps, which were not used", None
