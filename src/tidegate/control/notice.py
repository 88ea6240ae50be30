"""A notice: something that a person should hear of, when it begins and when it ends.

`control/notices/` finds them, and records keep them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

TARGET_MISSED = "target_missed"
AT_MAXIMUM = "at_maximum"
CONTROL_FAILED = "control_failed"
SHEDDING = "shedding"
NO_EFFECT = "no_effect"
NOT_GRANTED = "not_granted"
KINDS = (TARGET_MISSED, AT_MAXIMUM, CONTROL_FAILED, SHEDDING, NO_EFFECT, NOT_GRANTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """The beginning or the end of what a person should hear of. Each beginning has one end."""

    kind: str
    """One of `target_missed`, `at_maximum`, `control_failed`, `shedding`, `no_effect` and
    `not_granted`."""
    ended: bool
    """False: it begins. True: it is over."""
    since_s: float
    """When it began to be so, in seconds since the epoch; at its end, the same again."""
    at_s: float
    """When that was noticed."""
    what: str
    """One sentence for a person, without the pipeline's name and without its end."""
    why: str = ""
    """The reason of the decision at that time, if there was one."""
    figures: Mapping[str, float] = field(default_factory=dict)
    """The numbers behind it: `latency_s`, `target_s`, `cores_granted`, ..."""

    @property
    def lasted_s(self) -> float:
        """How long it has been so."""
        return max(self.at_s - self.since_s, 0.0)

    def text(self, pipeline: str) -> str:
        """The sentence with the pipeline's name: what a chat shows."""
        return f"{pipeline}: {self.what}"

    def document(self, pipeline: str) -> dict[str, Any]:
        """The notice as plain JSON values, for a webhook."""
        return {
            "text": self.text(pipeline),
            "pipeline": pipeline,
            "kind": self.kind,
            "state": "ended" if self.ended else "began",
            "since": _time(self.since_s),
            "at": _time(self.at_s),
            "lasted_s": round(self.lasted_s, 3),
            "why": self.why,
            "figures": dict(self.figures),
        }


def _time(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).isoformat(timespec="milliseconds")
