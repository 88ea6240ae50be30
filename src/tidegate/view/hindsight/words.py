"""What hindsight says, in sentences and rows of tables, for the terminal and the page alike."""

from tidegate.view.hindsight.causes import ABOVE, MISSED
from tidegate.view.hindsight.core_words import cores_words
from tidegate.view.hindsight.hindsight import Hindsight
from tidegate.view.hindsight.judged_decision import KINDS, JudgedDecision


def sentences(found: Hindsight) -> list[str]:
    """What would have been enough, what it cost, when the target was missed, what was wrong."""
    said = [_enough(found), _best(found), _missed(found), _decisions(found), _unjudged(found)]
    return [one for one in said if one]


def _enough(found: Hindsight) -> str:
    if found.why_unknown is not None:
        return f"It cannot be said how many cores would have been enough: {found.why_unknown}."
    part = ""
    if found.known_seconds < found.seconds - 1e-6:
        part = (
            f" That covers {found.known_seconds:,.0f} s of {found.seconds:,.0f} s: of the rest,"
            " what a batch costs is not known."
        )
    times = found.known_core_seconds / max(found.enough_core_seconds, 1e-9)
    return (
        f"{found.enough_core_seconds:,.0f} core-seconds would have been enough for the load that"
        f" came, with {cores_words(found.most_enough)} at most. {found.known_core_seconds:,.0f}"
        f" were used, {times:.2f} times as many.{part}"
    )


def _best(found: Hindsight) -> str:
    best = found.best
    if best is None or found.why_unknown is not None:
        return ""
    held = "" if best.within > 0.9995 else f" for {best.within:.1%} of the time"
    about = "about " if best.estimated else ""
    return (
        f"With the future known, {about}{best.core_seconds:,.0f} would have held the target{held}"
        " (the oracle)."
    )


def _missed(found: Hindsight) -> str:
    if not found.target or found.judged_seconds <= 0.0:
        return ""
    if not found.missed:
        return f"The target was held in all {found.judged_seconds:,.0f} s that had rows."
    why = ", ".join(
        f"{seconds:,.0f} s {MISSED[cause].words}{_named(MISSED[cause].option)}"
        for cause, seconds in found.missed.items()
    )
    return (
        f"The target was missed for {found.missed_s:,.0f} s of {found.judged_seconds:,.0f} s:"
        f" {why}."
    )


def _decisions(found: Hindsight) -> str:
    if not found.verdicts:
        if found.dry_run:
            return (
                "This was a dry run: nothing was changed, so no decision can be judged;"
                " `tidegate whatif` simulates what acting on them would have done."
            )
        return "No decision changed the number of cores, so there is none to judge."
    many = f"{found.judged} decision" if found.judged == 1 else f"{found.judged} decisions"
    if not found.judged:
        return ""
    if not found.wrong:
        if found.judged == 1:
            return "The one decision that changed the number of cores was right in hindsight."
        return f"The {many} that changed the number of cores were right in hindsight."
    kinds = ", ".join(f"{count} {KINDS[kind]}" for kind, count in found.by_kind().items())
    was = "was" if len(found.wrong) == 1 else "were"
    return f"{len(found.wrong)} of {many} {was} wrong in hindsight: {kinds}."


def _unjudged(found: Hindsight) -> str:
    unknown = [one for one in found.verdicts if one.unknown is not None]
    if not unknown:
        return ""
    reasons = ", ".join(dict.fromkeys(one.unknown or "" for one in unknown))
    many = "1 decision" if len(unknown) == 1 else f"{len(unknown)} decisions"
    return f"{many} cannot be judged: {reasons}."


def _named(option: str | None) -> str:
    return "" if option is None else f" (`{option}`)"


ABOVE_LABELS = ("core-seconds", "of all used", "why", "option")


def above_rows(found: Hindsight) -> list[tuple[str, str, str, str]]:
    """Core-seconds above enough: how many, their share, why, and the option that changes it."""
    return [
        (
            f"{number:,.0f}",
            f"{number / max(found.known_core_seconds, 1e-9):.1%}",
            ABOVE[cause].words,
            ABOVE[cause].option or "",
        )
        for cause, number in found.above.items()
    ]


WRONG_LABELS = ("second", "decision", "what was wrong", "option")


def wrong_rows(found: Hindsight) -> list[tuple[str, str, str, str]]:
    """The decisions that were wrong: when, what, why with what it cost, and the option."""
    return [
        (f"{one.at_s:,.0f}", one.what, _why(one), one.fault.option or "")
        for one in found.wrong
        if one.fault is not None
    ]


def _why(one: JudgedDecision) -> str:
    fault = one.fault
    assert fault is not None
    cost = []
    if fault.core_seconds > 0.0:
        cost.append(f"{fault.core_seconds:,.0f} core-seconds")
    if fault.missed_s > 0.0:
        cost.append(f"{fault.missed_s:,.0f} s above the target")
    said = f"{KINDS[fault.kind]}: {fault.why}"
    return f"{said}. It cost {' and '.join(cost)}." if cost else f"{said}."
