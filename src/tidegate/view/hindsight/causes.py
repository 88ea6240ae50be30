"""Why a run had more cores than enough, or missed its target: each cause in words, and its option.

The option is the one of `start` and `attach` that a person changes if the cause costs too much.
Causes that are part of the default policy have none.
"""

from dataclasses import dataclass

from tidegate.control.approval import REFUSED
from tidegate.control.record import Record


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause, as a sentence ends with it."""

    words: str
    option: str | None = None


ABOVE = {
    "minimum": Cause("the minimum of cores that was given", "cores"),
    "floors": Cause("a minimum of the schedule", "floors"),
    "backlog": Cause("working off rows that had piled up", "catch_up"),
    "cost": Cause("batches were expected to take longer than they did"),
    "forecast": Cause("a higher load was forecast than came"),
    "reserve": Cause("a reserve for surges and for errors of the model"),
    "waiting": Cause(
        "waiting, in case the load comes back, before cores are released", "scale_in_after"
    ),
    "between_changes": Cause("the least time between two changes", "between_changes"),
    "cooldown": Cause("a cooldown after the last change"),
    "excluded": Cause("a time in which nothing may change", "excluded"),
    "first_change": Cause("the least time before the first change", "first_change"),
    "approve": Cause("your function `approve` refused to release them", "approve"),
    "dry_run": Cause("nothing is changed in a dry run", "dry_run"),
    "learning": Cause("what a batch costs was not learned yet"),
    "policy": Cause("the policy asked for them", "policy"),
    "releasing": Cause("already given back, but not gone yet"),
}
"""Causes of cores above enough, in the order in which they are looked for."""

MISSED = {
    "maximum": Cause("more cores were needed than the maximum", "cores"),
    "share": Cause("other pipelines of the application had the cores"),
    "out_of_reach": Cause("no number of cores holds this target", "target"),
    "short": Cause("fewer cores than enough"),
    "backlog": Cause("working off rows that had piled up before"),
    "cold": Cause("first batches, while code is loaded and compiled"),
    "slow": Cause("batches that took longer than the model expects"),
    "unknown": Cause("while it is not known what a batch costs"),
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
    if "first change after" in said:
        return "first_change"
    if "T_ra is" in said:
        return "between_changes"
    return next((cause for begin, cause in _HELD_BACK.items() if said.startswith(begin)), "policy")
