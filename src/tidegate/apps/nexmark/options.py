"""What can be varied in Nexmark's applications."""

from collections.abc import Mapping
from dataclasses import dataclass

from tidegate.apps.nexmark.events import HOT_EVERY
from tidegate.apps.option_values import check_range, options_of

MEANINGS = {
    "speed": "how many seconds of event time pass in a second; default 1",
    "hot_every": "how many persons, and auctions, there are for each hot one; default 100",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NexmarkOptions:
    """How the events of a run happen."""

    speed: float = 1.0
    hot_every: int = HOT_EVERY

    def __post_init__(self) -> None:
        check_range("speed", self.speed, 0.001, 1000.0)
        check_range("hot_every", self.hot_every, 1, 1_000_000)


def nexmark_options(extra: Mapping[str, str]) -> NexmarkOptions:
    """The options from their texts."""
    return options_of(NexmarkOptions, "nexmark", extra)
