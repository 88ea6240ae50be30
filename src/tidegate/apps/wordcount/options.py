"""What can be varied in WordCount."""

from collections.abc import Mapping
from dataclasses import dataclass

from tidegate.apps.option_values import check_range, options_of
from tidegate.workload.keys import Keys

MEANINGS = {
    "vocabulary": "how many different words there are; default 10000",
    "skew": "the exponent of their zipf distribution; default 1, as in English",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WordCountOptions:
    """The words of the lines."""

    vocabulary: int = 10_000
    skew: float = 1.0
    """The exponent of the words' zipf distribution."""

    def __post_init__(self) -> None:
        check_range("vocabulary", self.vocabulary, 1, 1_000_000)
        check_range("skew", self.skew, 0.0, 10.0)

    @property
    def distribution(self) -> Keys:
        """How often each word occurs."""
        return Keys(self.vocabulary, self.skew)


def wordcount_options(extra: Mapping[str, str]) -> WordCountOptions:
    """The options from their texts."""
    return options_of(WordCountOptions, "wordcount", extra)
