"""Q2, selection: the bids on some auctions. A filter, and nothing else."""

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from tidegate.apps.nexmark.currency import BID
from tidegate.apps.nexmark.flow import nexmark_application
from tidegate.apps.nexmark.query import TASKS, Answers, Query, Row
from tidegate.apps.stretching import stretched_map
from tidegate.pipelines.derived import Derived
from tidegate.pipelines.stream import Stream

EVERY = 123
"""An auction is chosen if its number is a multiple of this."""
SELECT = "select"
SELECTED = "auction long, price long"


def select(rows: pa.Table) -> Derived:
    """A map that keeps the bids on chosen auctions."""
    auction = rows["auction"].to_numpy()
    chosen = pa.array(auction % EVERY == 0)
    return Derived(rows.select(["auction", "price"]).filter(chosen), pc.fill_null(chosen, False))


def build(inputs: Sequence[Stream], row_s: Mapping[str, float | None]) -> Stream:
    """One map."""
    return inputs[0].map(stretched_map(select, row_s[SELECT]), SELECTED, name=SELECT, tasks=TASKS)


def plain(inputs: Sequence[DataFrame]) -> DataFrame:
    """One filter."""
    return inputs[0].where(f"auction % {EVERY} = 0").select("auction", "price")


def expected(inputs: Sequence[list[Row]]) -> Answers:
    """Bid by bid."""
    return Answers(
        (row["auction"], row["price"]) for row in inputs[0] if row["auction"] % EVERY == 0
    )


QUERY = Query(
    name="q2",
    title="selection",
    about=f"Nexmark's Q2: the bids on every auction whose number is a multiple of {EVERY}",
    picks=(BID,),
    operators=(SELECT,),
    build=build,
    plain=plain,
    expected=expected,
    stretched_s={SELECT: 0.0004},
)
APPLICATION = nexmark_application(QUERY, rate="sine:4000+-2500/40")
