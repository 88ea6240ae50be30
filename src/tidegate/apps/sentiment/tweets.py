"""Generates tweets as JSON: short sentences with a feeling in them, by users who have moods.

The paper's tweets are not public, so these are put together from phrases, with what the sentiment
of a tweet depends on: words of praise and blame, negations, degrees, contrasts, capitals, emoticons
and exclamation marks. A tweet is a pure function of its number and the seed.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.apps.json_columns import json_objects
from tidegate.apps.sentiment.options import SentimentOptions
from tidegate.apps.sentiment.phrases import (
    BLAME,
    CONTRASTS,
    DEGREES,
    ENDS,
    PLAIN,
    PRAISE,
    SUBJECTS,
    VERBS,
)
from tidegate.workload.counter import uniforms, words

SCHEMA = "seq long, tweet string"

_DEGREE_SHARE, _CONTRAST_SHARE, _END_SHARE, _PLAIN_SHARE = 0.4, 0.2, 0.7, 0.25
ERA = 5000
"""After so many tweets of all users, each user is in another temper."""
_SUBJECT, _VERB, _DEGREE, _PRAISE, _BLAME, _PLAIN, _CONTRAST, _END, _TEMPER, _LIKES = range(71, 81)
"""Streams of random numbers, one for each part of a tweet."""

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class TweetTexts:
    """What the tweets of a run are made from."""

    options: SentimentOptions
    seed: int = 1

    def objects(self, numbers: Ints) -> pa.Array:
        """The tweets with these numbers, one JSON object each."""
        user = pa.array(self.users(numbers))
        name = pc.binary_join_element_wise("user", user.cast(pa.string()), "")
        return json_objects(
            {
                "id": pa.array(numbers),
                "text": self.texts(numbers),
                "user": pa.StructArray.from_arrays([user, name], ["id", "screen_name"]),
                "lang": pa.repeat(pa.scalar("en"), len(numbers)),
            }
        )

    def users(self, numbers: Ints) -> Ints:
        """Who wrote each tweet."""
        return self.options.distribution.at(numbers, np.zeros_like(numbers), self.seed)

    def texts(self, numbers: Ints) -> pa.Array:
        """What each tweet says."""
        always = np.ones(len(numbers), dtype=np.bool_)
        plain = self._share(numbers, _PLAIN) < _PLAIN_SHARE
        glad = self._share(numbers, _LIKES) < self._temper(numbers)
        said = pc.binary_join_element_wise(
            self._drawn(numbers, _SUBJECT, SUBJECTS, always),
            self._drawn(numbers, _VERB, VERBS, always),
            self._drawn(numbers, _DEGREE, DEGREES, self._some(numbers, _DEGREE, _DEGREE_SHARE)),
            self._drawn(numbers, _PLAIN, PLAIN, plain),
            self._drawn(numbers, _PRAISE, PRAISE, ~plain & glad),
            self._drawn(numbers, _BLAME, BLAME, ~plain & ~glad),
            self._drawn(
                numbers, _CONTRAST, CONTRASTS, self._some(numbers, _CONTRAST, _CONTRAST_SHARE)
            ),
            " ",
            null_handling="skip",
        )
        end = self._drawn(numbers, _END, ENDS, self._some(numbers, _END, _END_SHARE))
        return pc.binary_join_element_wise(said, end, "", null_handling="skip")

    def _temper(self, numbers: Ints) -> npt.NDArray[np.float64]:
        """How likely each tweet is glad: that depends on its user, and changes now and then."""
        return self._share(self.users(numbers) + (numbers // ERA) * 2**24, _TEMPER)

    def _drawn(self, numbers: Ints, stream: int, phrases: list[str], some: Mask) -> pa.Array:
        """One of the phrases for some tweets, null for the others."""
        which = words(numbers, self.seed, stream) % np.uint64(len(phrases))
        return pa.array(phrases).take(pa.array(which.astype(np.int64), mask=~some))

    def _some(self, numbers: Ints, stream: int, share: float) -> Mask:
        """Which tweets have a part that only this share of them has."""
        chosen: Mask = self._share(numbers, stream) < share
        return chosen

    def _share(self, numbers: Ints, stream: int) -> npt.NDArray[np.float64]:
        return uniforms(words(numbers, self.seed, stream))


def tweet_map(tweets: TweetTexts) -> Callable[[pa.Table], pa.Table]:
    """The first step of the pipeline: row numbers become tweets."""

    def write(rows: pa.Table) -> pa.Table:
        seq = rows["seq"].to_numpy()
        return pa.table({"seq": seq, "tweet": tweets.objects(seq)})

    return write
