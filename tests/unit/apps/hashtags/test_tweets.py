"""Tweets are functions of their number; hashtags are skewed, and other ones become popular."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from tidegate.apps.hashtags.extract import hashtags
from tidegate.apps.hashtags.options import HashtagOptions, hashtag_options
from tidegate.apps.hashtags.tweets import LONGEST, SHORTEST, HashtagTweets
from tidegate.apps.hashtags.vocabulary import FORMS, WORDS, hashtag_names, spellings
from tidegate.errors import AskedWrongly
from tidegate.workload.profile import constant

TWEETS = HashtagTweets(constant(1000), HashtagOptions(hashtags=500, trend_s=10.0), seed=3)


def counted(first: int, end: int) -> Counter[str]:
    rows = hashtags(TWEETS.table(np.arange(first, end))).rows
    return Counter(rows["hashtag"].to_pylist())


def test_any_part_can_be_made_alone() -> None:
    whole = TWEETS.table(np.arange(1000))
    assert whole.slice(400, 100).equals(TWEETS.table(np.arange(400, 500)))
    assert TWEETS.table(np.arange(0)).schema == whole.schema
    other = HashtagTweets(TWEETS.rate, TWEETS.options, seed=4)
    assert not whole["text"].equals(other.table(np.arange(1000))["text"])


def test_tweets_have_their_length_and_their_time() -> None:
    rows = TWEETS.table(np.arange(5000))
    lengths = {len(text.split(" ")) for text in rows["text"].to_pylist()}
    assert (min(lengths), max(lengths)) == (SHORTEST, LONGEST)
    at_us = rows["at"].cast(pa.int64()).to_numpy()
    assert (np.diff(at_us) >= 0).all()
    assert at_us[-1] == pytest.approx(5e6, abs=2000)


def test_popularity_is_skewed_and_changes() -> None:
    early, same, later = counted(0, 5000), counted(5000, 9900), counted(10_000, 15_000)
    top = {hashtag for hashtag, _ in early.most_common(5)}
    share = sum(early[hashtag] for hashtag in top) / early.total()
    assert 0.25 < share < 0.45  # 5 of 500 by zipf with exponent 1: about a third
    assert len(top & {hashtag for hashtag, _ in same.most_common(10)}) >= 4
    assert sum(later[hashtag] for hashtag in top) / later.total() < share / 2


def test_a_hashtag_is_one_however_it_is_written() -> None:
    assert set(counted(0, 20_000)) <= set(hashtag_names(500).to_pylist())
    written = spellings(500).to_pylist()
    assert len(written) == WORDS + FORMS * 500
    assert len(set(hashtag_names(20_000).to_pylist())) == 20_000


@pytest.mark.parametrize(
    "extra",
    [{"every_s": "0"}, {"window_s": "7"}, {"hashtags": "0"}, {"skew": "-1"}, {"trend_s": "0"}],
)
def test_options_that_are_refused(extra: dict[str, str]) -> None:
    with pytest.raises(AskedWrongly):
        hashtag_options(extra)
