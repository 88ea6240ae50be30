"""What can be varied in the vertical Hoeffding tree."""

from collections.abc import Mapping
from dataclasses import dataclass

from tidegate.apps.option_values import options_of
from tidegate.apps.vht.packed import MOST_ATTRIBUTES
from tidegate.errors import AskedWrongly

MEANINGS = {
    "attributes": f"how many attributes an instance has, up to {MOST_ATTRIBUTES}; default 10",
    "depth": "the depth of the tree that labels the instances; default 3",
    "noise": "the share of instances with a wrong label; default 0.05",
    "grace": "after how many instances a leaf asks whether to split; default 200",
    "delay": "how many further instances a leaf takes before the answer counts; default 500",
}
DELTA = 1e-7
"""The probability with which a split may be a wrong one (SAMOA's and river's default)."""
TIE = 0.05
"""When the Hoeffding bound is below this, two attributes are as good as each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VhtOptions:
    """The stream, and how the tree learns."""

    attributes: int = 10
    depth: int = 3
    noise: float = 0.05
    grace: int = 200
    delay: int = 500
    """With 0 the tree is a plain Hoeffding tree. A leaf that has taken so many instances holds
    later ones back until the answer has come, so the tree does not depend on micro-batches."""

    def __post_init__(self) -> None:
        if not 1 <= self.attributes <= MOST_ATTRIBUTES:
            raise AskedWrongly(f"attributes={self.attributes}: give 1 to {MOST_ATTRIBUTES}")
        if not 0 <= self.depth <= 12:
            raise AskedWrongly(f"depth={self.depth}: give 0 to 12")
        if not 0.0 <= self.noise <= 0.5:
            raise AskedWrongly(f"noise={self.noise:g}: give 0 to 0.5")
        if not 1 <= self.grace <= 1_000_000:
            raise AskedWrongly(f"grace={self.grace}: give 1 to 1000000 instances")
        if not 0 <= self.delay <= 10_000_000:
            raise AskedWrongly(f"delay={self.delay}: give 0 to 10000000 instances")


def vht_options(extra: Mapping[str, str]) -> VhtOptions:
    """The options as an application is given them: names and texts."""
    return options_of(VhtOptions, "vht", extra)
