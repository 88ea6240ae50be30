"""The reporter: changes of the result as people read them (DRS fig. 5: a file on HDFS)."""

import numpy as np
import pyarrow as pa

from tidegate.apps.fpd.itemsets import BITS, MOST_WORDS, VOCABULARY

CHANGE = "pattern array<int>, maximal boolean, count long, at_us long"
"""From `at_us` on the words of `pattern` are a maximal frequent pattern, or are no longer."""


def report(rows: pa.Table) -> pa.Table:
    """A map from changed itemsets to changes of the result."""
    shifts = np.arange(MOST_WORDS, dtype=np.int64) * BITS
    words = ((rows["itemset"].to_numpy()[:, None] >> shifts) & VOCABULARY) - 1
    some = words >= 0
    ends = np.concatenate(([0], np.cumsum(some.sum(axis=1)))).astype(np.int32)
    values = pa.array(words[some].astype(np.int32))
    return pa.table(
        {
            "pattern": pa.ListArray.from_arrays(pa.array(ends), values),
            "maximal": rows["maximal"].to_numpy() > 0,
            "count": rows["count"],
            "at_us": rows["at_us"],
        }
    )
