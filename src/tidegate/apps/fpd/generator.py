"""The pattern generator: from the number of a tweet to its candidate patterns (DRS fig. 5).

Candidates are all non-empty itemsets of a tweet, up to a number of words: exponentially many, which
is why the paper's generator takes longer for longer tweets.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.apps.fpd.itemsets import Ints, candidates, choices, encoded
from tidegate.apps.fpd.tweets import NONE, Tweets
from tidegate.pipelines.derived import Derived

CANDIDATE = "itemset long, count int, above int"
"""What a row adds to the record of an itemset: to its occurrences, and to the number of frequent
itemsets that have one word more (see `detector.py`)."""


def generate(tweets: Tweets, largest: int) -> Callable[[pa.Table], Derived]:
    """A map from changes of the window to all itemsets of up to `largest` words of their tweets.

    A row has the number of a tweet (`seq`), and the label of the paper: `sign` is 1 for a tweet
    that enters the window and -1 for one that leaves it.
    """

    def generated(rows: pa.Table) -> Derived:
        return all_itemsets(tweets.words(rows["seq"].to_numpy()), rows["sign"].to_numpy(), largest)

    return generated


def all_itemsets(words: Ints, signs: npt.NDArray[np.int32], largest: int) -> Derived:
    """The itemsets of tweets; `words` increase from column to column, with `NONE` at the end."""
    length = (words != NONE).sum(axis=1)
    itemsets, parents = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for count in np.unique(length).tolist():
        mine = np.flatnonzero(length == count)
        for places in choices(count, largest):
            chosen = words[mine[:, None, None], places]
            itemsets.append(encoded(chosen.reshape(-1, places.shape[1])))
            parents.append(np.repeat(mine, len(places)))
    parent = np.concatenate(parents)
    made = pa.table(
        {
            "itemset": np.concatenate(itemsets),
            "count": signs[parent].astype(np.int32),
            "above": np.zeros(len(parent), dtype=np.int32),
        }
    )
    return Derived(made, parent)


def weights(tweets: Tweets, largest: int) -> Callable[[pa.Table], npt.NDArray[np.float64]]:
    """How long each tweet takes to generate from, over the mean: as it has candidates."""
    of_length = np.array(
        [candidates(words, largest) for words in range(tweets.longest + 1)], dtype=np.float64
    )

    def counted(numbers: Ints) -> npt.NDArray[np.float64]:
        found: npt.NDArray[np.float64] = of_length[(tweets.words(numbers) != NONE).sum(axis=1)]
        return found

    mean = counted(np.arange(20_000, dtype=np.int64)).mean()
    return lambda rows: counted(rows["seq"].to_numpy()) / mean
