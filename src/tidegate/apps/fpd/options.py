"""Options that only this application has, as texts by name."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidegate.apps.fpd.itemsets import MOST_WORDS
from tidegate.errors import AskedWrongly

POISSON, EVEN = "poisson", "even"
MEANINGS = {
    "window": "after how many further tweets a tweet leaves the window; default 5000",
    "threshold": "how often an itemset must occur in the window to be frequent; default 3",
    "largest": f"the most words of a pattern; default {MOST_WORDS}",
    "arrivals": f"how rows arrive: {POISSON} (default) or {EVEN}",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FpdOptions:
    """How large the window is, and which patterns are looked for."""

    window: int = 5_000
    """W: after so many further tweets a tweet leaves the window. The paper's is 50,000, which takes
    156 seconds to fill at the paper's rate."""
    threshold: int = 3
    """How often an itemset must occur in the window to be frequent."""
    largest: int = MOST_WORDS
    """The most words of an itemset."""
    arrivals: str = POISSON
    """How rows arrive: by a Poisson process, as in the paper, or evenly spaced."""

    def __post_init__(self) -> None:
        if not 1 <= self.window <= 10_000_000:
            raise AskedWrongly(f"window={self.window}: give 1 to 10000000 tweets")
        if self.threshold < 1:
            raise AskedWrongly(f"threshold={self.threshold}: give 1 or more occurrences")
        if not 1 <= self.largest <= MOST_WORDS:
            raise AskedWrongly(f"largest={self.largest}: give 1 to {MOST_WORDS} words")
        if self.arrivals not in (POISSON, EVEN):
            raise AskedWrongly(f"arrivals={self.arrivals}: give {POISSON} or {EVEN}")

    @classmethod
    def of(cls, extra: Mapping[str, str]) -> "FpdOptions":
        """The options from their texts, by names that are known; others have their defaults."""
        given: dict[str, Any] = {}
        for name, text in extra.items():
            if name == "arrivals":
                given[name] = text
            elif text.isascii() and text.isdigit():
                given[name] = int(text)
            else:
                raise AskedWrongly(f"{name}={text}: give a whole number")
        return cls(**given)
