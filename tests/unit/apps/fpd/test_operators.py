"""Generator, detector and reporter: the same answer however the stream is cut and ordered."""

from itertools import combinations

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.apps.fpd.by_hand import ByHand, matrix
from tidegate.apps.fpd.generator import all_itemsets, generate, weights
from tidegate.apps.fpd.itemsets import decoded
from tidegate.apps.fpd.reference import by_brute_force, faults
from tidegate.apps.fpd.tweets import Tweets

tweet = st.sets(st.integers(0, 5), min_size=1, max_size=6).map(lambda words: tuple(sorted(words)))


@settings(max_examples=50)
@given(st.lists(tweet, max_size=8), st.integers(1, 4))
def test_candidates_are_all_itemsets_up_to_the_largest(tweets, largest) -> None:
    made = all_itemsets(matrix(tweets), np.full(len(tweets), -1, dtype=np.int32), largest)
    found = sorted(
        (int(parent), decoded(itemset))
        for parent, itemset in zip(made.parents, made.rows["itemset"].to_pylist(), strict=True)
    )
    assert found == sorted(
        (place, itemset)
        for place, words in enumerate(tweets)
        for size in range(1, largest + 1)
        for itemset in combinations(words, size)
    )
    assert set(made.rows["count"].to_pylist()) <= {-1}
    assert not any(made.rows["above"].to_pylist())


def test_a_row_becomes_the_itemsets_of_its_tweet() -> None:
    tweets = Tweets(planted=1.0, groups=1, lengths=(1.0,))
    words = tweets.group_words(np.array([7]), np.array([0]))[0].tolist()
    made = generate(tweets, 4)(pa.table({"seq": [7], "sign": pa.array([-1], pa.int32())})).rows
    found = zip(made["itemset"].to_pylist(), made["count"].to_pylist(), strict=True)
    assert {(decoded(one), sign) for one, sign in found} == {
        (itemset, -1) for size in (1, 2, 3) for itemset in combinations(sorted(words), size)
    }


def test_longer_tweets_take_longer_and_the_mean_is_one() -> None:
    tweets, numbers = Tweets(), np.arange(20_000)
    found = weights(tweets, 4)(pa.table({"seq": numbers}))
    assert abs(found.mean() - 1.0) < 1e-9
    length = (tweets.words(numbers) < tweets.vocabulary).sum(axis=1)
    one, three = (np.unique(found[length == words]) for words in (1, 3))
    assert three.tolist() == (7 * one).tolist()


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_cuts_and_order_do_not_matter(data) -> None:
    """Tweets enter and leave in any order, and messages wait in the loop for any time."""
    tweets = data.draw(st.lists(tweet, min_size=1, max_size=14), label="tweets")
    left = data.draw(st.integers(0, len(tweets)), label="left")
    threshold = data.draw(st.integers(1, 3), label="threshold")
    largest = data.draw(st.integers(1, 4), label="largest")
    events = [(1, words) for words in tweets] + [(-1, words) for words in tweets[:left]]
    events = data.draw(st.permutations(events), label="order")
    run = ByHand(threshold, largest)
    while events:
        many = data.draw(st.integers(1, 6), label="rows")
        some, events = events[:many], events[many:]
        heard = data.draw(st.integers(0, run.loop.num_rows), label="messages")
        run.take(pa.concat_tables([run.generate(some), run.looped(heard)]))
    run.settle()
    expected = by_brute_force(tweets[left:], threshold, largest)
    assert faults(expected, run.records(), run.changes) == []
    assert run.records().keys() == expected.counts.keys()


def test_a_larger_pattern_takes_the_place_of_its_parts_and_gives_it_back() -> None:
    run = ByHand(threshold=2)
    run.batch([(1, (1, 2)), (1, (1, 3))])
    run.settle()
    assert {pattern for pattern, row in run.records().items() if row.maximal} == {(1,)}
    run.batch([(1, (1, 2))])
    assert run.records()[1,].maximal  # it has not heard of (1, 2) yet
    run.settle()
    assert {pattern for pattern, row in run.records().items() if row.maximal} == {(1, 2)}
    run.batch([(-1, (1, 2))])
    run.settle()
    assert {pattern for pattern, row in run.records().items() if row.maximal} == {(1,)}
    run.batch([(-1, (1, 2)), (-1, (1, 3))])
    run.settle()
    assert run.state == {}


def test_the_state_is_bounded_by_the_window() -> None:
    tweets, window = Tweets.of_window(100, seed=1), 100
    words = [
        tuple(word for word in row if word < tweets.vocabulary)
        for row in tweets.words(np.arange(600)).tolist()
    ]
    run = ByHand(threshold=3)
    largest = 0
    for first in range(0, len(words), 5):
        leaving = words[max(first - window, 0) : max(first + 5 - window, 0)]
        run.batch([(1, one) for one in words[first : first + 5]] + [(-1, one) for one in leaving])
        largest = max(largest, len(run.state))
    run.settle()
    expected = by_brute_force(words[-window:], 3, 4)
    assert faults(expected, run.records(), run.changes) == []
    assert largest < 4 * len(expected.counts)
