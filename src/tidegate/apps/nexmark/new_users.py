"""Q8, monitor new users: who came and opened an auction within the same ten seconds.

A join of two streams within tumbling windows: the window's start is a part of the key.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from tidegate.apps.nexmark.events import AUCTIONS, PERSONS
from tidegate.apps.nexmark.flow import nexmark_application
from tidegate.apps.nexmark.query import SHARDS, TASKS, Answers, Pick, Query, Row
from tidegate.apps.stretching import stretched_operator
from tidegate.pipelines.derived import Derived
from tidegate.pipelines.stream import Stream

WINDOW_S = 10
JOIN = "join"
_START = f"window(timestamp, '{WINDOW_S} seconds').start as start"


def _started(rows: pa.Table, names: list[str]) -> Derived:
    """The rows with the start of their window."""
    at_us = rows["timestamp"].cast(pa.int64()).to_numpy()
    start = pa.array(at_us // (WINDOW_S * 1_000_000) * (WINDOW_S * 1_000_000))
    made = rows.select(names).append_column("start", start.view(pa.timestamp("us", "UTC")))
    return Derived(made, np.ones(rows.num_rows, dtype=np.bool_))


def new_persons(rows: pa.Table) -> Derived:
    """Persons with their window."""
    return _started(rows, ["id", "name", "timestamp"])


def new_auctions(rows: pa.Table) -> Derived:
    """Auctions with their window."""
    return _started(rows, ["seller", "reserve", "timestamp"])


def build(inputs: Sequence[Stream], row_s: Mapping[str, float | None]) -> Stream:
    """One join; rows of the same window are never further apart than its length."""
    persons, auctions = inputs
    joined = persons.join(
        auctions,
        key=["id", "start"],
        other_key=["seller", "start"],
        within=f"{WINDOW_S} seconds",
        suffix="_of_auction",
        name=JOIN,
        shards=SHARDS,
        tasks=TASKS,
    )
    return stretched_operator(joined, row_s[JOIN])


def plain(inputs: Sequence[DataFrame]) -> DataFrame:
    """One join of two streams with watermarks."""
    persons, auctions = (one.withWatermark("timestamp", "0 seconds") for one in inputs)
    length = f"{WINDOW_S} seconds"
    left = persons.selectExpr("id", "name", "timestamp", f"window(timestamp, '{length}') as w")
    right = auctions.selectExpr(
        "seller", "reserve", "timestamp as opened", f"window(timestamp, '{length}') as v"
    )
    both = left.join(right, (left["id"] == right["seller"]) & (left["w"] == right["v"]))
    return both.selectExpr("id", "w.start as start", "name", "timestamp", "reserve", "opened")


def expected(inputs: Sequence[list[Row]]) -> Answers:
    """Auction by auction."""
    persons = defaultdict(list)
    for row in inputs[0]:
        persons[row["id"], row["start"]].append(row)
    found = Answers()
    for row in inputs[1]:
        for its in persons[row["seller"], row["start"]]:
            name = its["name"], its["timestamp"]
            found[(its["id"], its["start"], *name, row["reserve"], row["timestamp"])] += 1
    return found


QUERY = Query(
    name="q8",
    title="monitor new users",
    about="Nexmark's Q8: persons who open auctions in the ten seconds in which they came",
    picks=(
        Pick(
            kind=PERSONS,
            where="true",
            select=("id", "name", "timestamp", _START),
            schema="id long, name string, timestamp timestamp, start timestamp",
            rows=new_persons,
        ),
        Pick(
            kind=AUCTIONS,
            where="true",
            select=("seller", "reserve", "timestamp", _START),
            schema="seller long, reserve long, timestamp timestamp, start timestamp",
            rows=new_auctions,
        ),
    ),
    operators=(JOIN,),
    build=build,
    plain=plain,
    expected=expected,
    stretched_s={JOIN: 0.005},
)
APPLICATION = nexmark_application(QUERY, rate="sine:4000+-2500/40")
