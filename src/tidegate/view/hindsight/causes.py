"""Why a run had more cores than enough, or missed its target: each cause in words, and its option.

The option is the one of `start` and `attach` that a person changes if the cause costs too much.
Causes that are part of the default policy have none.
"""

from dataclasses import dataclass

from tidegate.control.approval import REFUSED
from tidegate.control.record import Record


@dataclass(frozen=True, slots=True)
class KnownCause:
    """One cause, as a sentence ends with it."""

    words: str
    option: str | None = None


ABOVE = {
    "minimum": KnownCause("the minimum of cores that was given", "cores"),
    "floors": KnownCause("a minimum of the schedule", "floors"),
    "backlog": KnownCause("working off rows that had piled up", "catch_up"),
    "cost": KnownCause("batches were expected to take longer than they did"),
    "forecast": KnownCause("a higher load was forecast than came"),
    "reserve": KnownCause("a reserve for surges and for errors of the model"),
    "waiting": KnownCause(
        "waiting, in case the load comes back, before cores are released", "scale_in_after"
    ),
    "between_changes": KnownCause("the least time between two changes", "between_changes"),
    "cooldown": KnownCause("a cooldown after the last change"),
    "excluded": KnownCause("a time in which nothing may change", "excluded"),
    "first_change": KnownCause("the least time before the first change", "first_change"),
    "approve": KnownCause("your function `approve` refused to release them", "approve"),
    "dry_run": KnownCause("nothing is changed in a dry run", "dry_run"),
    "learning": KnownCause("what a batch costs was not learned yet"),
    "policy": KnownCause("the policy asked for them", "policy"),
    "releasing": KnownCause("already given back, but not gone yet"),
}
"""Causes of cores above enough, in the order in which they are looked for."""

MISSED = {
    "maximum": KnownCause("more cores were needed than the maximum", "cores"),
    "share": KnownCause("other pipelines of the application had the cores"),
    "out_of_reach": KnownCause("no number of cores holds this target", "target"),
    "short": KnownCause("fewer cores than enough"),
    "backlog": KnownCause("working off rows that had piled up before"),
    "cold": KnownCause("first batches, while code is loaded and compiled"),
    "slow": KnownCause("batches that took longer than the model expects"),
    "unknown": KnownCause("while it is not known what a batch costs"),
}
"""Causes of seconds above the target."""

_HELD_BACK = {
    "no changes within": "excluded",
    "cooling down": "cooldown",
    REFUSED: "approve",
    "dry run": "dry_run",
}


def held_back_cause(record: Record) -> str | None:
    """The cause that held a decision back; None if nothing did."""
    said = record.held_back
    if said is None:
        return None
    for name in ("first_change", "between_changes"):
        if f"({name})" in said:
            return name
    return next((cause for begin, cause in _HELD_BACK.items() if said.startswith(begin)), "policy")
