"""What can be varied in IncrementalLearning."""

from collections.abc import Mapping
from dataclasses import dataclass

from tidegate.apps.option_values import check_range, options_of
from tidegate.errors import AskedWrongly

PARTS = 64
"""Examples are dealt to so many parts, which are the keys of the gradients."""
BYTES = 8
"""A random number makes so many features."""
MEANINGS = {
    "features": "how many features an example has, a multiple of 8; default 32",
    "round": "how many examples a round of learning has, a multiple of 64; default 512",
    "lag": "how many rounds may be learnt before the model must be back; default 8",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningOptions:
    """The size of the model, and how it is updated."""

    features: int = 32
    round: int = 512
    """Examples in a round. The model changes once per round."""
    lag: int = 8
    """Round r learns from the model after round r - lag, so that so many rounds can be under way
    while a model goes around the loop."""

    def __post_init__(self) -> None:
        check_range("features", self.features, BYTES, 1024)
        check_range("round", self.round, PARTS, 65_536)
        check_range("lag", self.lag, 0, 64)
        if self.features % BYTES:
            raise AskedWrongly(f"features={self.features}: give a multiple of {BYTES}")
        if self.round % PARTS:
            raise AskedWrongly(f"round={self.round}: give a multiple of {PARTS}")

    @property
    def part_examples(self) -> int:
        """Examples of a round in each part."""
        return self.round // PARTS


def learning_options(extra: Mapping[str, str]) -> LearningOptions:
    """The options from their texts."""
    return options_of(LearningOptions, "learning", extra)
