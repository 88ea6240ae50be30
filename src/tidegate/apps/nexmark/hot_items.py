"""Q5, hot items: which auctions got most bids in the last ten seconds, told every two seconds."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidegate.apps.nexmark.events import BIDS
from tidegate.apps.nexmark.flow import nexmark_application
from tidegate.apps.nexmark.query import SHARDS, TASKS, Answers, Pick, Query, Row
from tidegate.apps.nexmark.windows import sliding
from tidegate.apps.stretching import Stretched
from tidegate.pipelines.derived import Derived
from tidegate.pipelines.functions import count, window
from tidegate.pipelines.keyed import BoundKeyed, KeyedBatch, Update
from tidegate.pipelines.stream import Stream

SIZE_S, EVERY_S = 10, 2
COUNT, HOTTEST = "count", "hottest"


def on_auctions(rows: pa.Table) -> Derived:
    """Every bid: on what, and when."""
    return Derived(rows.select(["auction", "timestamp"]), np.ones(rows.num_rows, dtype=np.bool_))


@dataclass(frozen=True, slots=True)
class Hottest:
    """The auctions with most bids of each window; several if they have equally many.

    All auctions of a window come in the micro-batch in which it is closed. So there is no state.
    """

    def bind(self, rows: pa.Schema, key: tuple[str, ...]) -> BoundKeyed:
        """The key is the start of the window."""
        names = [*key, "window_end", "auction", "count"]
        return BoundKeyed(
            update=self.update,
            state=pa.schema([]),
            output=pa.schema([rows.field(name) for name in names]),
        )

    def update(self, batch: KeyedBatch) -> Update:
        """Keep the rows with as many bids as the most of their window."""
        bids = batch.rows["count"].to_numpy()
        most = np.zeros(batch.keys.num_rows, dtype=np.int64)
        np.maximum.at(most, batch.row_key, bids)
        return Update(
            output=batch.rows.filter(pa.array(bids == most[batch.row_key])).select(
                [*batch.keys.column_names, "window_end", "auction", "count"]
            )
        )


def build(inputs: Sequence[Stream], row_s: Mapping[str, float | None]) -> Stream:
    """Count each auction's bids in sliding windows, then choose among those of a window."""
    counted = window(count(), every=f"{EVERY_S} seconds", size=f"{SIZE_S} seconds")
    return (
        inputs[0]
        .keyed(COUNT, Stretched(counted, row_s[COUNT]), key="auction", shards=SHARDS, tasks=TASKS)
        .keyed(
            HOTTEST,
            Stretched(Hottest(), row_s[HOTTEST]),
            key="window_start",
            shards=SHARDS,
            tasks=TASKS,
        )
    )


def plain(inputs: Sequence[DataFrame]) -> DataFrame:
    """Two aggregations; of several auctions with equally many bids the first is told."""
    bids = inputs[0].withWatermark("timestamp", "0 seconds")
    span = F.window("timestamp", f"{SIZE_S} seconds", f"{EVERY_S} seconds")
    counts = bids.groupBy(span.alias("window"), "auction").agg(F.count("*").alias("count"))
    ranked = F.struct(F.col("count"), (-F.col("auction")).alias("place"))
    most = counts.groupBy("window").agg(F.max(ranked).alias("most"))
    return most.selectExpr(
        "window.start as window_start",
        "window.end as window_end",
        "-most.place as auction",
        "most.count as count",
    )


def expected(inputs: Sequence[list[Row]]) -> Answers:
    """Bid by bid, then window by window."""
    counts: dict[int, Counter[int]] = {}
    for row in inputs[0]:
        for start_us in sliding(row["timestamp"], SIZE_S * 1_000_000, EVERY_S * 1_000_000):
            counts.setdefault(start_us, Counter())[row["auction"]] += 1
    found = Answers()
    for start_us, auctions in counts.items():
        most = max(auctions.values())
        for auction, bids in auctions.items():
            if bids == most:
                found[start_us, start_us + SIZE_S * 1_000_000, auction, bids] += 1
    return found


def first_of_equals(answers: Answers) -> Answers:
    """Of several auctions with equally many bids the first, as the plain query tells."""
    first: dict[tuple[int, int, int], int] = {}
    for start_us, end_us, auction, bids in answers:
        place = start_us, end_us, bids
        first[place] = min(auction, first.get(place, auction))
    return Answers((s, e, auction, bids) for (s, e, bids), auction in first.items())


QUERY = Query(
    name="q5",
    title="hot items",
    about="Nexmark's Q5: the auctions with most bids in the last ten seconds, every two seconds",
    picks=(
        Pick(
            kind=BIDS,
            where="true",
            select=("auction", "timestamp"),
            schema="auction long, timestamp timestamp",
            rows=on_auctions,
        ),
    ),
    operators=(COUNT, HOTTEST),
    build=build,
    plain=plain,
    expected=expected,
    stretched_s={COUNT: 0.0004, HOTTEST: 0.0001},
    closed=COUNT,
    end=1,
)
APPLICATION = nexmark_application(QUERY, rate="sine:4000+-2500/40")
