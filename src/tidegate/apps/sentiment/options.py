"""What can be varied in TwitterSentiment."""

from collections.abc import Mapping
from dataclasses import dataclass

from tidegate.apps.option_values import check_range, options_of
from tidegate.workload.keys import Keys

MEANINGS = {
    "users": "how many users tweet; default 20000",
    "skew": "the exponent of their zipf distribution; default 0.6",
    "history": "how many of a user's last tweets make up the mood; default 10",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SentimentOptions:
    """Who tweets, and what is remembered of each of them."""

    users: int = 20_000
    skew: float = 0.6
    """The exponent of the users' zipf distribution."""
    history: int = 10
    """How many of a user's last tweets make up the mood."""

    def __post_init__(self) -> None:
        check_range("users", self.users, 1, 10_000_000)
        check_range("skew", self.skew, 0.0, 10.0)
        check_range("history", self.history, 1, 10_000)

    @property
    def distribution(self) -> Keys:
        """How often each user tweets."""
        return Keys(self.users, self.skew)


def sentiment_options(extra: Mapping[str, str]) -> SentimentOptions:
    """The options from their texts."""
    return options_of(SentimentOptions, "sentiment", extra)
