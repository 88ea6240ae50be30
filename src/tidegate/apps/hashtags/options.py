"""What can be varied in Rolling Hashtag Count; window and interval are MST's by default."""

from collections.abc import Mapping
from dataclasses import dataclass

from tidegate.apps.option_values import options_of
from tidegate.errors import AskedWrongly
from tidegate.workload.keys import Keys

MEANINGS = {
    "window_s": "length of the moving window in seconds, a multiple of every_s; default 60",
    "every_s": "how often counts are emitted, in seconds; default 5",
    "hashtags": "how many different hashtags there are; default 20000",
    "skew": "the exponent of their zipf distribution, 0 for uniform; default 1",
    "trend_s": "after how many seconds other hashtags are popular; default 20",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HashtagOptions:
    """The window, and how popular hashtags are."""

    window_s: int = 60
    every_s: int = 5
    hashtags: int = 20_000
    skew: float = 1.0
    trend_s: float = 20.0

    def __post_init__(self) -> None:
        if self.every_s < 1:
            raise AskedWrongly(f"every_s={self.every_s}: give 1 second or more")
        if not (self.every_s <= self.window_s <= 86_400 and self.window_s % self.every_s == 0):
            raise AskedWrongly(
                f"window_s={self.window_s}: give a multiple of every_s={self.every_s}, up to a day"
            )
        if not 1 <= self.hashtags <= 1_000_000:
            raise AskedWrongly(f"hashtags={self.hashtags}: give 1 to 1000000")
        if not 0.001 <= self.trend_s <= 86_400:
            raise AskedWrongly(f"trend_s={self.trend_s:g}: give 0.001 to 86400 seconds")
        _ = self.popularity

    @property
    def popularity(self) -> Keys:
        """Which hashtag is used how often, and when that changes."""
        return Keys(self.hashtags, self.skew, every_ms=round(self.trend_s * 1000))


def hashtag_options(extra: Mapping[str, str]) -> HashtagOptions:
    """The options as an application is given them: names and texts."""
    return options_of(HashtagOptions, "hashtags", extra)
