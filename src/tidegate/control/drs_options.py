"""The options of the policies `drs` and `drs-fixed`, as they are written behind the name.

`drs(model=gigk, t_min=500ms, w=6, resplit=better)`: a policy with its options is one text, so that
`start`, the command line and records all hold it in the same way.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from tidegate.errors import AskedWrongly, nearest
from tidegate.units import format_duration, parse_duration

MODELS = ("mmk", "gigk")
RESPLITS = ("differs", "better")
POLICIES = ("drs", "drs-fixed")
T_MIN_SHARE = 0.45
"""T_min, where none is given, as a share of T_max: the 450 of 1000 ms of DRS's figure 9."""

_WRITTEN = re.compile(r"\s*([\w-]+)\s*\(([^()]*)\)\s*")


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
                shown.append(f"{name}={format_duration(value) if duration else value}")
        return ", ".join(shown)

    def t_min_below(self, t_max_s: float) -> float:
        """T_min for this T_max, which must be above it."""
        if self.t_min_s is None:
            return T_MIN_SHARE * t_max_s
        if self.t_min_s >= t_max_s:
            raise AskedWrongly(
                f"t_min={format_duration(self.t_min_s)}, but the target is"
                f" {format_duration(t_max_s)}; give a t_min below the target"
            )
        return self.t_min_s


def split_policy(text: str) -> tuple[str, str | None]:
    """The name of a policy and the text of its options; None without brackets."""
    found = _WRITTEN.fullmatch(text)
    return (found[1], found[2]) if found else (text.strip(), None)


def drs_options(policy: str) -> DrsOptions:
    """The options behind a policy's name; a wrong one is refused in a sentence."""
    name, written = split_policy(policy)
    if written is None:
        return DrsOptions()
    if name not in POLICIES:
        raise AskedWrongly(
            f"policy '{policy}': only {' and '.join(POLICIES)} take options; write '{name}'"
        )
    given: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in written.split(","))):
        key, equals, value = (each.strip() for each in part.partition("="))
        if not equals or not value:
            raise AskedWrongly(f"policy '{policy}': '{part}' is not an option; write name=value")
        if key in given:
            raise AskedWrongly(f"policy '{policy}': {key} is given twice; give it once")
        given[key] = value
    return _read(policy, name, given)


def _read(policy: str, name: str, given: Mapping[str, str]) -> DrsOptions:
    known = ("model", "w", "alpha") if name == "drs-fixed" else _NAMES
    found: dict[str, Any] = {}
    for key, value in given.items():
        if key not in known:
            raise AskedWrongly(
                f"policy '{policy}': {name} has no option '{key}'{nearest(key, known)}"
            )
        found["t_min_s" if key == "t_min" else key] = _value(policy, key, value)
    if "w" in given and "alpha" in given:
        raise AskedWrongly(f"policy '{policy}': w and alpha are two ways to smooth; give one")
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
    try:
        number = int(text) if key == "w" else float(text)
    except ValueError:
        number = -1
    if key == "w" and number < 1:
        raise AskedWrongly(f"policy '{policy}': w is a whole number of ticks from 1, not '{text}'")
    if key == "alpha" and not 0.0 <= number < 1.0:
        raise AskedWrongly(f"policy '{policy}': alpha is from 0 to below 1, not '{text}'")
    return number
