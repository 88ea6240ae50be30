"""The options of the policies `drs` and `drs-fixed`, as they are written behind the name.

`drs(model=gigk, t_min=500ms, w=6, resplit=better)`: see `control/policy_text.py`.
"""

from dataclasses import dataclass, fields
from typing import Any

from tidegate.control.policy_text import number_of, split_policy, written_options
from tidegate.errors import AskedWrongly
from tidegate.units import exact_duration, parse_duration

MODELS = ("mmk", "gigk")
RESPLITS = ("differs", "better")
POLICIES = ("drs", "drs-fixed")
T_MIN_SHARE = 0.45
"""T_min, where none is given, as a share of T_max: the 450 of 1000 ms of DRS's figure 9."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrsOptions:
    """What DRS's configuration reader reads (IV-A), beyond target, bounds and T_ra."""

    model: str = "mmk"
    """Operators as M/M/k or GI/G/k queues."""
    t_min_s: float | None = None
    """Below this latency cores are released; None: 0.45 of the target."""
    w: int = 6
    """Measurements are the mean of so many ticks."""
    alpha: float | None = None
    """Instead of the mean of a window: the weight of older measurements, from 0 to below 1."""
    resplit: str = "differs"
    """Split the same cores again when the best split `differs`, as in the paper, or only when the
    model says that it is 5 % `better`."""

    @property
    def ticks(self) -> int:
        """Ticks over which measurements are smoothed: the window, or that of the same mean age."""
        return self.w if self.alpha is None else max(round(1.0 / (1.0 - self.alpha)), 1)

    def __str__(self) -> str:
        shown = []
        for one in fields(self):
            value = getattr(self, one.name)
            if value != one.default:
                duration = one.name == "t_min_s"
                name = "t_min" if duration else one.name
                shown.append(f"{name}={exact_duration(value) if duration else value}")
        return ", ".join(shown)

    def t_min_below(self, t_max_s: float) -> float:
        """T_min for this T_max, which must be above it."""
        if self.t_min_s is None:
            return T_MIN_SHARE * t_max_s
        if self.t_min_s >= t_max_s:
            raise AskedWrongly(
                f"t_min={exact_duration(self.t_min_s)}, but the target is"
                f" {exact_duration(t_max_s)}; give a t_min below the target"
            )
        return self.t_min_s


def drs_options(policy: str) -> DrsOptions:
    """The options behind a policy's name; a wrong one is refused in a sentence.

    A policy that is not DRS has DRS's defaults, which nobody reads.
    """
    name, _ = split_policy(policy)
    if name not in POLICIES:
        return DrsOptions()
    given = written_options(policy, ("model", "w", "alpha") if name == "drs-fixed" else _NAMES)
    if "w" in given and "alpha" in given:
        raise AskedWrongly(f"policy '{policy}': w and alpha are two ways to smooth; give one")
    found = {
        "t_min_s" if key == "t_min" else key: _value(policy, key, text)
        for key, text in given.items()
    }
    return DrsOptions(**found)


_NAMES = ("model", "t_min", "w", "alpha", "resplit")


def _value(policy: str, key: str, text: str) -> Any:
    choices = {"model": MODELS, "resplit": RESPLITS}.get(key)
    if choices is not None:
        if text not in choices:
            raise AskedWrongly(f"policy '{policy}': {key} is {' or '.join(choices)}, not '{text}'")
        return text
    if key == "t_min":
        return parse_duration(text)
    if key == "w":
        whole = "a whole number of ticks from 1"
        return number_of(policy, key, text, int, lambda ticks: ticks >= 1, whole)
    below = "from 0 to below 1"
    return number_of(policy, key, text, float, lambda alpha: 0.0 <= alpha < 1.0, below)
