"""Itemsets as numbers: nothing is lost, and the sizes and subsets are right."""

from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidegate.apps.fpd.itemsets import (
    MOST_WORDS,
    VOCABULARY,
    candidates,
    decoded,
    encoded,
    sizes,
    subsets_by_one,
)

word_sets = st.sets(st.integers(0, VOCABULARY - 1), min_size=1, max_size=MOST_WORDS)


def number(words: set[int] | tuple[int, ...]) -> int:
    return int(encoded(np.array([sorted(words)], dtype=np.int64))[0])


@given(word_sets)
def test_words_come_back(words: set[int]) -> None:
    assert decoded(number(words)) == tuple(sorted(words))
    assert number(words) > 0


@given(st.lists(word_sets, max_size=6))
def test_sizes_and_subsets(sets: list[set[int]]) -> None:
    itemsets = np.array([number(words) for words in sets], dtype=np.int64)
    assert sizes(itemsets).tolist() == [len(words) for words in sets]
    made, places = subsets_by_one(itemsets)
    found = sorted((place, decoded(one)) for one, place in zip(made.tolist(), places, strict=True))
    assert found == sorted(
        (place, smaller)
        for place, words in enumerate(sets)
        if len(words) > 1
        for smaller in combinations(sorted(words), len(words) - 1)
    )


def test_candidates_are_counted() -> None:
    assert [candidates(words, 4) for words in range(7)] == [0, 1, 3, 7, 15, 30, 56]
    assert candidates(6, 2) == 21
