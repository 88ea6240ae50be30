"""Distributions of times with mean one, by name and squared coefficient of variation (scv).

The models know a distribution only by its scv (DRS eq. 5), so an scv alone is enough to get one.
"""

import math
from dataclasses import dataclass
from typing import Literal, get_args

from tidegate.errors import AskedWrongly, nearest

Kind = Literal["deterministic", "exponential", "uniform", "lognormal", "hyperexponential"]
KINDS: tuple[Kind, ...] = get_args(Kind)

UNIFORM_MOST_SCV = 1.0 / 3.0
"""The largest scv of a uniform distribution of positive times: [1 - w, 1 + w] has scv w^2 / 3."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """A distribution of positive times with mean one; a station scales it by its mean."""

    kind: Kind
    scv: float

    @property
    def code(self) -> int:
        """The engine's number for this kind."""
        return KINDS.index(self.kind)

    @property
    def shape(self) -> float:
        """The one parameter that the engine needs besides the mean."""
        if self.kind == "uniform":
            return math.sqrt(3.0 * self.scv)
        if self.kind == "lognormal":
            return math.sqrt(math.log1p(self.scv))
        if self.kind == "hyperexponential":
            # Two exponential phases with balanced means: each contributes half of the mean.
            return 0.5 * (1.0 + math.sqrt((self.scv - 1.0) / (self.scv + 1.0)))
        return 0.0


def distribution(scv: float = 1.0, kind: str | None = None) -> Distribution:
    """The distribution with this scv: of the given kind, or else of the simplest one possible."""
    if not (math.isfinite(scv) and scv >= 0.0):
        raise AskedWrongly(
            f"a squared coefficient of variation must be a number of at least 0, not {scv:g}"
        )
    if kind is None:
        return Distribution(_plainest(scv), scv)
    for known in KINDS:
        if kind == known:
            _require_reachable(known, scv)
            return Distribution(known, scv)
    raise AskedWrongly(f"there is no distribution '{kind}'{nearest(kind, KINDS)}")


def natural(kind: str) -> Distribution:
    """A kind with its usual scv: uniform over [0, 2], hyper-exponential with 4."""
    usual = {"deterministic": 0.0, "uniform": UNIFORM_MOST_SCV, "hyperexponential": 4.0}
    return distribution(usual.get(kind, 1.0), kind)


def _plainest(scv: float) -> Kind:
    if scv == 0.0:
        return "deterministic"
    if scv == 1.0:
        return "exponential"
    if scv > 1.0:
        return "hyperexponential"
    return "uniform" if scv <= UNIFORM_MOST_SCV else "lognormal"


def _require_reachable(kind: Kind, scv: float) -> None:
    """Raise an error if a distribution of this kind cannot have this scv."""
    reachable = {
        "deterministic": (scv == 0.0, "is 0"),
        "exponential": (scv == 1.0, "is 1"),
        "uniform": (0.0 <= scv <= UNIFORM_MOST_SCV * (1 + 1e-12), "lies between 0 and 1/3"),
        "lognormal": (True, ""),
        "hyperexponential": (scv >= 1.0, "is 1 or more"),
    }
    possible, where = reachable[kind]
    if not possible:
        raise AskedWrongly(
            f"the scv of a {kind} distribution {where}, not {scv:g}; give a kind that can have it, "
            "or no kind, and one is chosen"
        )
