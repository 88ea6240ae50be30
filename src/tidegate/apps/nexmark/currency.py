"""Q1, currency conversion: every bid with its price in euros. A map, and nothing else."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from tidegate.apps.nexmark.events import BIDS, SCHEMAS
from tidegate.apps.nexmark.flow import nexmark_application
from tidegate.apps.nexmark.query import TASKS, Answers, Pick, Query, Row
from tidegate.apps.stretching import stretched_map
from tidegate.pipelines.derived import Derived
from tidegate.pipelines.stream import Stream

EUROS = 0.908
CONVERT = "convert"
CONVERTED = "auction long, bidder long, price double, timestamp timestamp"


def all_bids(rows: pa.Table) -> Derived:
    """Every bid."""
    return Derived(rows, np.ones(rows.num_rows, dtype=np.bool_))


def convert(rows: pa.Table) -> pa.Table:
    """A map from bids in dollars to bids in euros."""
    price = pc.multiply(rows["price"].cast(pa.float64()), EUROS)
    return rows.set_column(rows.column_names.index("price"), "price", price)


def build(inputs: Sequence[Stream], row_s: Mapping[str, float | None]) -> Stream:
    """One map."""
    return inputs[0].map(
        stretched_map(convert, row_s[CONVERT]), CONVERTED, name=CONVERT, tasks=TASKS
    )


def plain(inputs: Sequence[DataFrame]) -> DataFrame:
    """One projection."""
    return inputs[0].selectExpr("auction", "bidder", f"price * {EUROS}D as price", "timestamp")


def expected(inputs: Sequence[list[Row]]) -> Answers:
    """Bid by bid."""
    return Answers(
        (row["auction"], row["bidder"], float(row["price"]) * EUROS, row["timestamp"])
        for row in inputs[0]
    )


BID = Pick(
    kind=BIDS,
    where="true",
    select=("auction", "bidder", "price", "timestamp"),
    schema=SCHEMAS[BIDS],
    rows=all_bids,
)
QUERY = Query(
    name="q1",
    title="currency conversion",
    about="Nexmark's Q1: the price of every bid in euros",
    picks=(BID,),
    operators=(CONVERT,),
    build=build,
    plain=plain,
    expected=expected,
    stretched_s={CONVERT: 0.0004},
)
APPLICATION = nexmark_application(QUERY, rate="sine:4000+-2500/40")
