"""Reads, scores and judges tweets one after the other, and compares a run with that."""

import json
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from tidegate.apps.application import Verdict
from tidegate.apps.sentiment.mood import LEAST, NEGATIVE, NEUTRAL, POSITIVE
from tidegate.apps.sentiment.options import SentimentOptions
from tidegate.apps.sentiment.score import sentiment
from tidegate.apps.sentiment.tweets import TweetTexts

_TWEETS_AT_A_TIME = 65_536


@dataclass(slots=True)
class UserRecord:
    """What should be known of a user."""

    recent: deque[int]
    tweets: int = 0
    total: int = 0
    mood: int = NEUTRAL


@dataclass(slots=True)
class ExpectedMoods:
    """What the answers should be."""

    options: SentimentOptions
    users: dict[int, UserRecord] = field(default_factory=dict)
    changes: list[tuple[int, int, int]] = field(default_factory=list)
    """(tweet, user, mood) for each change, in the order of the tweets."""

    def take(self, tweets: Iterable[str]) -> None:
        """Go on with these tweets."""
        for tweet in map(json.loads, tweets):
            self.add(tweet["id"], tweet["user"]["id"], sentiment(tweet["text"]))

    def add(self, number: int, user: int, score: int) -> None:
        """One tweet."""
        one = self.users.get(user)
        if one is None:
            one = self.users[user] = UserRecord(deque(maxlen=self.options.history))
        one.recent.append(score)
        one.tweets += 1
        one.total += score
        mean = sum(one.recent) / len(one.recent)
        mood = POSITIVE if mean >= LEAST else NEGATIVE if mean <= -LEAST else NEUTRAL
        if mood != one.mood:
            self.changes.append((number, user, mood))
        one.mood = mood


def expected_moods(tweets: TweetTexts, arrived: int) -> ExpectedMoods:
    """The answers for the first tweets."""
    expected = ExpectedMoods(tweets.options)
    for first in range(0, arrived, _TWEETS_AT_A_TIME):
        numbers = np.arange(first, min(first + _TWEETS_AT_A_TIME, arrived), dtype=np.int64)
        expected.take(tweets.objects(numbers).to_pylist())
    return expected


def compare(
    told: pa.Table | None, state: pa.Table, expected: ExpectedMoods, arrived: int
) -> Verdict:
    """Whether each change of a mood was told once, and users are remembered as they should be."""
    columns = [] if told is None else [told[name].to_pylist() for name in ("seq", "user", "mood")]
    found = sorted(zip(*columns, strict=True))
    odd = len(set(found) ^ set(expected.changes)) + len(found) - len(set(found))
    wrong = _wrong_users(state, expected)
    what = (
        f"{len(expected.changes):,} changes of mood of {len(expected.users):,} users in"
        f" {arrived:,} tweets"
    )
    faults = [
        *([f"{odd} changes are missing, wrong or told twice"] if odd else []),
        *([f"{wrong} users are remembered wrongly"] if wrong else []),
    ]
    return Verdict(
        correct=not faults,
        said=f"{what}: " + ("; ".join(faults) or "as judged tweet by tweet"),
        figures={
            "tweets": float(arrived),
            "users": float(len(expected.users)),
            "changes": float(len(expected.changes)),
            "positive": float(sum(one.mood == POSITIVE for one in expected.users.values())),
            "negative": float(sum(one.mood == NEGATIVE for one in expected.users.values())),
        },
    )


def _wrong_users(state: pa.Table, expected: ExpectedMoods) -> int:
    """Users who are wrong, missing or too many."""
    found = {row["user"]: (row["tweets"], row["total"], row["recent"]) for row in state.to_pylist()}
    right = {
        user: (one.tweets, one.total, list(one.recent)) for user, one in expected.users.items()
    }
    again = int(state.num_rows) - len(found)
    return again + sum(found.get(user) != right.get(user) for user in found.keys() | right.keys())
