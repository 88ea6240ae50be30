"""A whole recording in hindsight: what would have been enough, what it cost, and what was wrong.

`look_back` computes it. The result is apart, because commands import it and should begin quickly.
"""

from dataclasses import dataclass
from typing import Any

from tidegate.view.figures import rounded
from tidegate.view.hindsight.causes import ABOVE, MISSED
from tidegate.view.hindsight.judged_decision import KINDS, JudgedDecision, Kind


@dataclass(frozen=True, slots=True)
class Best:
    """The least core-seconds with the future known, as an oracle found them."""

    core_seconds: float
    within: float
    """The share of the time in which even those hold the target."""
    estimated: bool = False
    """Whether it is an estimate, for several segments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hindsight:
    """The sums over all ticks, and the verdicts. Cores and causes cover the known ticks alone."""

    seconds: float
    known_seconds: float
    """Seconds of ticks of which it is known how many cores were enough."""
    core_seconds: float
    """Core-seconds that were granted, in all."""
    known_core_seconds: float
    """Those of the known ticks: enough, plus those above it, minus those below it."""
    enough_core_seconds: float
    most_enough: int
    """The most cores that any tick needed."""
    above: dict[str, float]
    """Core-seconds above enough, by cause (`causes.ABOVE`), largest first."""
    below_core_seconds: float
    """Core-seconds that were missing where there were fewer cores than enough."""
    judged_seconds: float
    """Seconds that had a target, and rows to judge by it."""
    missed: dict[str, float]
    """Seconds above the target, by cause (`causes.MISSED`), largest first."""
    verdicts: tuple[JudgedDecision, ...]
    dry_run: bool
    target: bool
    """Whether any tick had a target."""
    enough_by_tick: tuple[int | None, ...]
    """The cores that were enough, for each record; None where that is not known."""
    best: Best | None = None
    """What an oracle needs for the same load; None where that was not looked for."""

    @property
    def above_core_seconds(self) -> float:
        """All core-seconds above enough."""
        return sum(self.above.values())

    @property
    def missed_s(self) -> float:
        """All seconds above the target."""
        return sum(self.missed.values())

    @property
    def wrong(self) -> tuple[JudgedDecision, ...]:
        """The decisions that were wrong, in their order."""
        return tuple(one for one in self.verdicts if one.fault is not None)

    @property
    def judged(self) -> int:
        """How many decisions can be judged."""
        return sum(one.unknown is None for one in self.verdicts)

    def by_kind(self) -> dict[Kind, int]:
        """How many decisions were wrong in which way."""
        kinds = [one.fault.kind for one in self.verdicts if one.fault is not None]
        return {kind: kinds.count(kind) for kind in KINDS if kind in kinds}

    @property
    def why_unknown(self) -> str | None:
        """Why it is not known how many cores were enough; None if it is."""
        if self.known_seconds > 0.0:
            return None
        if not self.target:
            return (
                "these records have no target, so there is nothing that cores could be enough for"
            )
        return "no batch with rows has ended, so what a batch costs could not be learned"

    def document(self) -> dict[str, Any]:
        """For JSON; docs/hindsight.md says what each key means."""
        best = self.best
        return {
            "known": self.why_unknown is None,
            "why_unknown": self.why_unknown,
            "dry_run": self.dry_run,
            "seconds": round(self.seconds, 3),
            "known_seconds": round(self.known_seconds, 3),
            "core_seconds": round(self.core_seconds, 1),
            "known_core_seconds": round(self.known_core_seconds, 1),
            "enough_core_seconds": round(self.enough_core_seconds, 1),
            "above_core_seconds": round(self.above_core_seconds, 1),
            "below_core_seconds": round(self.below_core_seconds, 1),
            "most_enough": self.most_enough,
            "oracle_core_seconds": rounded(best.core_seconds if best else None, 1),
            "oracle_within_target": rounded(best.within if best else None, 4),
            "oracle_estimated": best.estimated if best else None,
            "above": [
                {
                    "cause": cause,
                    "core_seconds": round(number, 1),
                    "words": ABOVE[cause].words,
                    "option": ABOVE[cause].option,
                }
                for cause, number in self.above.items()
            ],
            "judged_seconds": round(self.judged_seconds, 3),
            "missed_seconds": round(self.missed_s, 3),
            "missed": [
                {
                    "cause": cause,
                    "seconds": round(number, 3),
                    "words": MISSED[cause].words,
                    "option": MISSED[cause].option,
                }
                for cause, number in self.missed.items()
            ],
            "decisions": len(self.verdicts),
            "decisions_judged": self.judged,
            "decisions_wrong": len(self.wrong),
            "wrong_by_kind": self.by_kind(),
            "verdicts": [_verdict(one) for one in self.verdicts],
        }


def _verdict(one: JudgedDecision) -> dict[str, Any]:
    fault = one.fault
    judgement = "unknown" if one.unknown else "right" if fault is None else "wrong"
    return {
        "at_s": round(one.at_s, 3),
        "what": one.what,
        "judgement": judgement,
        "kind": fault.kind if fault else None,
        "why": fault.why if fault else one.unknown,
        "option": fault.option if fault else None,
        "core_seconds": rounded(fault.core_seconds if fault else None, 1),
        "missed_seconds": rounded(fault.missed_s if fault else None, 3),
    }
