"""Tweets are a pure function of their number, and what is planted comes and goes."""

import numpy as np
import pytest

from tidegate.apps.fpd.tweets import NONE, Tweets
from tidegate.errors import AskedWrongly


def test_any_range_is_made_again_alone() -> None:
    tweets = Tweets(seed=3)
    whole = tweets.words(np.arange(1000))
    assert np.array_equal(tweets.words(np.arange(400, 500)), whole[400:500])
    assert not np.array_equal(Tweets(seed=4).words(np.arange(1000)), whole)


def test_a_tweet_is_a_set_of_words_in_order() -> None:
    words = Tweets(vocabulary=50).words(np.arange(5000))
    assert ((words == NONE) | ((words >= 0) & (words < 50))).all()
    assert (words[:, 0] != NONE).all()
    later, before = words[:, 1:], words[:, :-1]
    assert ((later > before) | (later == NONE)).all()


def test_groups_come_and_go_one_after_the_other() -> None:
    tweets = Tweets(groups=4, era=100)
    numbers = np.arange(400)
    lives = []
    for group in range(4):
        words = tweets.group_words(numbers, np.full(400, group))
        lives.append(np.flatnonzero((words[1:] != words[:-1]).any(axis=1)) + 1)
    assert [life.tolist() for life in lives] == [
        [100, 200, 300],
        [75, 175, 275, 375],
        [50, 150, 250, 350],
        [25, 125, 225, 325],
    ]


def test_what_is_planted_is_there() -> None:
    tweets = Tweets(groups=2, era=10**6, planted=0.5)
    rows = [set(row) for row in tweets.words(np.arange(1000)).tolist()]
    groups = tweets.group_words(np.zeros(2, dtype=np.int64), np.arange(2))
    told = [sum(set(group) <= row for row in rows) for group in groups.tolist()]
    assert 450 < sum(told) < 550
    assert told[0] > told[1] > 0


def test_frequent_words_come_first() -> None:
    words = Tweets(planted=0.0, vocabulary=100, exponent=1.0).words(np.arange(20_000))
    counts = np.bincount(words[words != NONE], minlength=100)
    assert counts[0] > counts[9] > counts[99] > 0


def test_a_vocabulary_that_does_not_fit_is_refused() -> None:
    with pytest.raises(AskedWrongly, match="vocabulary"):
        Tweets(vocabulary=40_000)
