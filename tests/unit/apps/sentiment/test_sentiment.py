"""TwitterSentiment without Spark: tweets, scores, moods, and a verifier that finds wrong ones."""

import itertools
import json
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("vaderSentiment")

from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

from tests.helpers.keyed_operator import Operator
from tidegate.apps.sentiment.mood import MoodChanges, moods
from tidegate.apps.sentiment.options import SentimentOptions, sentiment_options
from tidegate.apps.sentiment.reference import ExpectedMoods, compare, expected_moods
from tidegate.apps.sentiment.score import score
from tidegate.apps.sentiment.tweets import TweetTexts, tweet_map
from tidegate.errors import AskedWrongly

SMALL = SentimentOptions(users=8, history=3)
TWEETS = TweetTexts(SMALL, seed=4)


def numbered(first: int, end: int) -> pa.Table:
    return pa.table({"seq": np.arange(first, end, dtype=np.int64)})


@given(st.integers(0, 2**40), st.integers(0, 2**31))
def test_a_tweet_does_not_depend_on_its_neighbours(first: int, seed: int) -> None:
    tweets = TweetTexts(SMALL, seed)
    together = tweets.objects(np.arange(first, first + 3)).to_pylist()
    assert together == [tweets.objects(np.array([first + n]))[0].as_py() for n in range(3)]


def test_tweets_are_of_all_kinds() -> None:
    made = [
        json.loads(text)
        for text in TweetTexts(SentimentOptions()).objects(np.arange(3000)).to_pylist()
    ]
    assert [tweet["id"] for tweet in made] == list(range(3000))
    assert all(tweet["user"]["screen_name"] == f"user{tweet['user']['id']}" for tweet in made)
    texts = [tweet["text"] for tweet in made]
    assert len(set(texts)) > 2000
    for part in ("isn't", "very", " but ", "AWESOME", "!!!", ":(", "#fail"):
        assert any(part in text for text in texts), part
    assert not any("  " in text for text in texts)


def test_scores_are_vaders() -> None:
    rows = tweet_map(TWEETS)(numbered(100, 160))
    made = score(rows)
    analyzer = SentimentIntensityAnalyzer()
    for row, text in zip(made.to_pylist(), rows["tweet"].to_pylist(), strict=True):
        tweet = json.loads(text)
        assert (row["seq"], row["user"]) == (tweet["id"], tweet["user"]["id"])
        assert row["score"] / 10_000 == analyzer.polarity_scores(tweet["text"])["compound"]


def test_users_are_glad_for_a_while() -> None:
    scored = score(tweet_map(TweetTexts(SMALL, seed=1))(numbered(0, 3000)))
    user, found = scored["user"].to_numpy(), scored["score"].to_numpy()
    means = [found[user == one].mean() for one in range(8)]
    assert max(means) - min(means) > 1500


scores = st.lists(st.sampled_from([-9000, -501, -500, -499, 0, 1, 499, 500, 1500]), max_size=12)


@given(scores, st.integers(1, 4))
def test_moods_are_those_of_a_loop(given_scores: list[int], history: int) -> None:
    numbers = np.array(given_scores, dtype=np.int64)
    found = moods(numbers, np.arange(len(numbers)), history).tolist()
    for place, mood in enumerate(found):
        last = given_scores[max(0, place + 1 - history) : place + 1]
        mean = sum(last) / len(last)
        assert mood == (1 if mean >= 500 else -1 if mean <= -500 else 0)


@settings(deadline=None, max_examples=25)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from([-900, 0, 400, 700])), max_size=20),
    st.lists(st.integers(0, 20), max_size=4),
    st.integers(1, 4),
)
def test_cuts_do_not_matter(rows: list[tuple[int, int]], cuts: list[int], history: int) -> None:
    options = SentimentOptions(history=history)
    expected = ExpectedMoods(options)
    for number, (user, one) in enumerate(rows):
        expected.add(number, user, one)
    table = pa.table(
        {
            "seq": np.arange(len(rows)),
            "user": pa.array([user for user, _ in rows], pa.int64()),
            "score": pa.array([one for _, one in rows], pa.int64()),
        }
    )
    with tempfile.TemporaryDirectory() as directory:
        operator = Operator(Path(directory), MoodChanges(options), "user", "seq")
        told = [
            operator.run(table.slice(first, end - first))
            for first, end in itertools.pairwise([0, *sorted(cuts), max(20, len(rows))])
        ]
        found = compare(pa.concat_tables(told), operator.state(), expected, len(rows))
    assert found.correct, found.said


def test_the_whole_pipeline_and_what_the_verifier_finds(tmp_path: Path) -> None:
    operator = Operator(tmp_path, MoodChanges(SMALL), "user", "seq")
    told = pa.concat_tables(
        operator.run(score(tweet_map(TWEETS)(numbered(first, first + 50))))
        for first in range(0, 200, 50)
    )
    state, expected = operator.state(), expected_moods(TWEETS, 200)
    found = compare(told, state, expected, 200)
    assert found.correct, found.said
    assert found.figures["users"] == 8
    assert found.figures["changes"] == told.num_rows > 30
    assert "1 changes are missing" in compare(told.slice(1), state, expected, 200).said
    twice = pa.concat_tables([told, told.slice(0, 1)])
    assert "1 changes are missing, wrong or told twice" in compare(twice, state, expected, 200).said
    assert "1 users are remembered wrongly" in compare(told, state.slice(1), expected, 200).said
    assert not compare(None, state, expected, 200).correct


def test_options_are_read_and_checked() -> None:
    assert sentiment_options({"users": "7"}) == SentimentOptions(users=7)
    with pytest.raises(AskedWrongly, match="history=0: give 1 to"):
        sentiment_options({"history": "0"})
