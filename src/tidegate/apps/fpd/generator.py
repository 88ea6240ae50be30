"""From a number to a tweet, and from a tweet to its candidate patterns (DRS fig. 5).

Candidates are all non-empty itemsets of a tweet, up to a number of words: exponentially many, which
is why the paper's generator takes longer for longer tweets.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.apps.fpd.itemsets import Ints, candidates, choices, encoded
from tidegate.apps.fpd.tweets import NONE, Tweets
from tidegate.pipelines.derived import Derived

TWEET = "sign int, words array<int>"
"""`sign` is 1 for a tweet that enters the window and -1 for one that leaves it."""
CANDIDATE = "itemset long, count int, above int"
"""What a row adds to the record of an itemset: to its occurrences, and to the number of frequent
itemsets that have one word more (see `detector.py`)."""


def listed(words: Ints) -> pa.Array:
    """A matrix of words as lists, without the places that have none."""
    some = words != NONE
    ends = np.concatenate(([0], np.cumsum(some.sum(axis=1))))
    values = pa.array(words[some].astype(np.int32))
    return pa.ListArray.from_arrays(pa.array(ends.astype(np.int32)), values)


def tweets_of(tweets: Tweets, sign: int) -> Callable[[pa.Table], pa.Table]:
    """A map from the rows of a source to the tweets that enter or leave the window."""

    def tweet(rows: pa.Table) -> pa.Table:
        words = listed(tweets.words(rows["seq"].to_numpy()))
        return pa.table({"sign": np.full(rows.num_rows, sign, dtype=np.int32), "words": words})

    return tweet


def candidates_of(largest: int) -> Callable[[pa.Table], Derived]:
    """A map from tweets to all their itemsets of up to `largest` words."""

    def generate(rows: pa.Table) -> Derived:
        length, flat = _lists(rows["words"])
        begin = np.cumsum(length) - length
        itemsets, parents = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for count in np.unique(length[length > 0]).tolist():
            mine = np.flatnonzero(length == count)
            words = flat[begin[mine, None] + np.arange(count)]
            for places in choices(count, largest):
                itemsets.append(encoded(words[:, places].reshape(-1, places.shape[1])))
                parents.append(np.repeat(mine, len(places)))
        parent = np.concatenate(parents)
        made = pa.table(
            {
                "itemset": np.concatenate(itemsets),
                "count": rows["sign"].to_numpy()[parent].astype(np.int32),
                "above": np.zeros(len(parent), dtype=np.int32),
            }
        )
        return Derived(made, parent)

    return generate


def weights_of(tweets: Tweets, largest: int) -> Callable[[pa.Table], npt.NDArray[np.float64]]:
    """How long each tweet takes to generate from, over the mean: as it has candidates."""
    some = np.arange(20_000, dtype=np.int64)
    most = len(tweets.lengths)
    of_length = np.array([candidates(count, largest) for count in range(most + 1)], dtype=float)
    mean = float(of_length[(tweets.words(some) != NONE).sum(axis=1)].mean())

    def weights(rows: pa.Table) -> npt.NDArray[np.float64]:
        length, _ = _lists(rows["words"])
        found: npt.NDArray[np.float64] = of_length[length] / mean
        return found

    return weights


def _lists(column: pa.ChunkedArray) -> tuple[Ints, Ints]:
    """The length of each list, and the words of all lists one after the other."""
    array = column.combine_chunks()
    length = pc.list_value_length(array).to_numpy(zero_copy_only=False).astype(np.int64)
    flat = array.flatten().to_numpy(zero_copy_only=False).astype(np.int64)
    return length, flat
