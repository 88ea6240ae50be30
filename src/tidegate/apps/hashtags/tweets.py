"""Generated tweets: texts of words and hashtags, each a pure function of its number and the seed.

The paper's tweets were downloaded from Twitter and are not public. Here hashtags have a zipf
distribution, and every few seconds of event time other ones are popular, as trends come and go.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.apps.hashtags.options import HashtagOptions
from tidegate.apps.hashtags.vocabulary import FORMS, WORDS, spellings
from tidegate.pipelines.functions.times import times_of
from tidegate.workload.counter import words
from tidegate.workload.profile import Profile

SCHEMA = "tweet long, at timestamp, text string"
SHORTEST, LONGEST = 4, 19
"""How many words a tweet has, hashtags included."""
TAGGED = 102
"""Of 1024 words, how many are hashtags."""
_LENGTH, _WORD = 51, 52
"""Streams of random numbers; the source's own have lower numbers."""

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class HashtagTweets:
    """The stream of tweets."""

    rate: Profile
    """When each tweet was written: its event time, which no clock changes."""
    options: HashtagOptions
    seed: int

    def table(self, seq: Ints) -> pa.Table:
        """The tweets with these numbers. Any part of the stream can be made alone."""
        at_us = self.rate.arrival_us(seq)
        span = np.uint64(LONGEST - SHORTEST + 1)
        length = SHORTEST + (words(seq, self.seed, _LENGTH) % span).astype(np.int64)
        place = np.arange(LONGEST)
        used = place < length[:, None]
        numbers = (seq[:, None] * LONGEST + place)[used]
        chosen = self._chosen(numbers, np.repeat(at_us, length))
        ends = np.concatenate([[0], np.cumsum(length)]).astype(np.int32)
        strings = spellings(self.options.hashtags).take(pa.array(chosen))
        return pa.table(
            {
                "tweet": seq,
                "at": times_of(at_us, pa.timestamp("us", "UTC")),
                "text": pc.binary_join(pa.ListArray.from_arrays(pa.array(ends), strings), " "),
            }
        )

    def _chosen(self, numbers: Ints, at_us: Ints) -> Ints:
        """For each word of a tweet, which of all spellings it is."""
        bits = words(numbers, self.seed, _WORD)
        chosen = (bits >> np.uint64(32)).astype(np.int64) % WORDS
        tagged = (bits & np.uint64(1023)) < TAGGED
        form = (bits[tagged] >> np.uint64(10)).astype(np.int64) % FORMS
        tags = self.options.popularity.at(numbers[tagged], at_us[tagged], self.seed)
        chosen[tagged] = WORDS + tags * FORMS + form
        return chosen


def tweet_map(tweets: HashtagTweets) -> Callable[[pa.Table], pa.Table]:
    """The first step of the pipeline: row numbers become tweets."""

    def tweet(rows: pa.Table) -> pa.Table:
        return tweets.table(rows["seq"].to_numpy())

    return tweet
