"""A person's say in a decision: who is asked may let it pass, change it or refuse it."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from tidegate.control.decision import Decision
from tidegate.control.measurement import Measurement

Approve: TypeAlias = Callable[[Decision, Measurement], Decision | str]
"""Takes a decision and its measurement; returns what to do instead, the same decision for yes, or
a few words on why nothing may be done."""

REFUSED = "refused by approve"
"""How the reason of a refusal begins in a record."""


@dataclass(frozen=True, slots=True)
class Approved:
    """What became of a decision."""

    decision: Decision
    held_back: str | None = None
    """Why it is not acted on; None if it is, or if it changes nothing."""
    proposed: Decision | None = None
    """The decision as it was made, if another one was approved instead."""


def approved_by(approve: Approve, decision: Decision, measurement: Measurement) -> Approved:
    """Ask, and make sense of the answer. A change to nothing is a refusal."""
    answer = approve(decision, measurement)
    if isinstance(answer, str):
        return Approved(decision, f"{REFUSED}: {answer}")
    if answer == decision:
        return Approved(decision)
    if answer.holds:
        return Approved(decision, f"{REFUSED}: {answer.reason}")
    known = {operator.name for operator in measurement.operators}
    named = {*answer.tasks, *answer.moves, *answer.deal, *answer.preview}
    unknown = sorted(named - known - {*decision.tasks, *decision.moves})
    if unknown:
        return Approved(decision, f"{REFUSED}: it names '{unknown[0]}', which is no operator")
    keep = None if answer.keep is None else min(max(answer.keep, 0.0), 1.0)
    notes = (*answer.notes, _words(decision, answer))
    return Approved(dataclasses.replace(answer, keep=keep, notes=notes), None, decision)


def _words(before: Decision, after: Decision) -> str:
    if before.cores == after.cores:
        return "changed by approve"
    cores = ["no change of" if one.cores is None else str(one.cores) for one in (after, before)]
    return f"changed by approve: {cores[0]} cores instead of {cores[1]}"
