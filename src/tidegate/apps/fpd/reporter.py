"""The reporter: changes of the result as people read them (DRS fig. 5: a file on HDFS)."""

import numpy as np
import pyarrow as pa

from tidegate.apps.fpd.generator import listed
from tidegate.apps.fpd.itemsets import BITS, MOST_WORDS, VOCABULARY
from tidegate.apps.fpd.tweets import NONE

CHANGE = "pattern array<int>, maximal boolean, count long, at_us long"
"""From `at_us` on the words of `pattern` are a maximal frequent pattern, or are no longer."""


def report(rows: pa.Table) -> pa.Table:
    """A map from changed itemsets to changes of the result."""
    shifts = np.arange(MOST_WORDS, dtype=np.int64) * BITS
    words = ((rows["itemset"].to_numpy()[:, None] >> shifts) & VOCABULARY) - 1
    return pa.table(
        {
            "pattern": listed(np.where(words < 0, NONE, words)),
            "maximal": rows["maximal"].to_numpy() > 0,
            "count": rows["count"],
            "at_us": rows["at_us"],
        }
    )
