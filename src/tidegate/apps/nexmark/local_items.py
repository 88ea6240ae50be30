"""Q3, local item suggestion: who sells things of category 10 in three states of the west.

A join of two streams at any distance in time: a person sells for ever. So its state grows.
"""

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from tidegate.apps.nexmark.events import AUCTIONS, PERSONS
from tidegate.apps.nexmark.flow import nexmark_application
from tidegate.apps.nexmark.query import SHARDS, TASKS, Answers, Pick, Query, Row
from tidegate.apps.stretching import stretched_operator
from tidegate.pipelines.derived import Derived
from tidegate.pipelines.stream import Stream

STATES = ("OR", "ID", "CA")
CATEGORY = 10
JOIN = "join"


def local(rows: pa.Table) -> Derived:
    """The persons of the three states."""
    chosen = pc.is_in(rows["state"], value_set=pa.array(STATES))
    return Derived(rows.select(["id", "name", "city", "state"]).filter(chosen), chosen)


def of_category(rows: pa.Table) -> Derived:
    """The auctions of the category."""
    chosen = pc.equal(rows["category"], CATEGORY)
    return Derived(rows.select(["id", "seller"]).filter(chosen), chosen)


def build(inputs: Sequence[Stream], row_s: Mapping[str, float | None]) -> Stream:
    """One join."""
    persons, auctions = inputs
    joined = persons.join(
        auctions,
        key="id",
        other_key="seller",
        suffix="_of_auction",
        name=JOIN,
        shards=SHARDS,
        tasks=TASKS,
    )
    return stretched_operator(joined, row_s[JOIN])


def plain(inputs: Sequence[DataFrame]) -> DataFrame:
    """One join of two streams."""
    persons, auctions = inputs
    both = persons.join(
        auctions.withColumnRenamed("id", "auction"), persons["id"] == auctions["seller"]
    )
    return both.selectExpr("id", "name", "city", "state", "auction")


def expected(inputs: Sequence[list[Row]]) -> Answers:
    """Auction by auction."""
    persons = {row["id"]: row for row in inputs[0]}
    found = Answers()
    for row in inputs[1]:
        seller = persons.get(row["seller"])
        if seller is not None:
            found[(*(seller[name] for name in ("id", "name", "city", "state")), row["id"])] += 1
    return found


QUERY = Query(
    name="q3",
    title="local item suggestion",
    about="Nexmark's Q3: who sells what in three states, a join of persons and auctions",
    picks=(
        Pick(
            kind=PERSONS,
            where=f"state in {STATES}",
            select=("id", "name", "city", "state"),
            schema="id long, name string, city string, state string",
            rows=local,
        ),
        Pick(
            kind=AUCTIONS,
            where=f"category = {CATEGORY}",
            select=("id", "seller"),
            schema="id long, seller long",
            rows=of_category,
        ),
    ),
    operators=(JOIN,),
    build=build,
    plain=plain,
    expected=expected,
    stretched_s={JOIN: 0.015},
)
APPLICATION = nexmark_application(QUERY, rate="sine:4000+-2500/40")
