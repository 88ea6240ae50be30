"""Splits lines into words, as Flink's example does: lower case, cut where no letter or digit is."""

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.pipelines.derived import Derived

SCHEMA = "word string"


def split(rows: pa.Table) -> Derived:
    """A map from lines to their words, one row each."""
    lists = pc.split_pattern_regex(pc.utf8_lower(rows["line"]), pattern=r"\W+").combine_chunks()
    found = pc.list_flatten(lists)
    some = pc.not_equal(found, "")  # a line that ends with a full stop has an empty last part
    return Derived(
        pa.table({"word": found.filter(some)}), pc.list_parent_indices(lists).filter(some)
    )
