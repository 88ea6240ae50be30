"""Q11, user sessions: how many bids a person makes until nothing comes for ten seconds."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidegate.apps.nexmark.events import BIDS
from tidegate.apps.nexmark.flow import nexmark_application
from tidegate.apps.nexmark.query import SHARDS, TASKS, Answers, Pick, Query, Row
from tidegate.apps.nexmark.windows import sessions_of
from tidegate.apps.stretching import Stretched
from tidegate.pipelines.derived import Derived
from tidegate.pipelines.functions import sessions
from tidegate.pipelines.stream import Stream

GAP_S = 10
SESSIONS = "sessions"


def by_bidders(rows: pa.Table) -> Derived:
    """Every bid: whose, and when."""
    return Derived(rows.select(["bidder", "timestamp"]), np.ones(rows.num_rows, dtype=np.bool_))


def build(inputs: Sequence[Stream], row_s: Mapping[str, float | None]) -> Stream:
    """Sessions of each bidder, emitted when they are over."""
    counted = Stretched(sessions(gap=f"{GAP_S} seconds"), row_s[SESSIONS])
    return inputs[0].keyed(SESSIONS, counted, key="bidder", shards=SHARDS, tasks=TASKS)


def plain(inputs: Sequence[DataFrame]) -> DataFrame:
    """Spark's session windows. It puts bids exactly a gap apart into one session, so its gap is a
    microsecond shorter, and the end of a session is moved back.
    """
    bids = inputs[0].withWatermark("timestamp", "0 seconds")
    span = F.session_window("timestamp", f"{GAP_S - 1} seconds 999999 microseconds")
    found = bids.groupBy("bidder", span.alias("span")).agg(F.count("*").alias("count"))
    end = "span.end + interval 1 microsecond"
    return found.selectExpr(
        "bidder", "span.start as session_start", f"{end} as session_end", "count"
    )


def expected(inputs: Sequence[list[Row]]) -> Answers:
    """Bidder by bidder."""
    times = defaultdict(list)
    for row in inputs[0]:
        times[row["bidder"]].append(row["timestamp"])
    return Answers(
        (bidder, *session)
        for bidder, its in times.items()
        for session in sessions_of(its, GAP_S * 1_000_000)
    )


QUERY = Query(
    name="q11",
    title="user sessions",
    about="Nexmark's Q11: how many bids a person makes without a pause of ten seconds",
    picks=(
        Pick(
            kind=BIDS,
            where="true",
            select=("bidder", "timestamp"),
            schema="bidder long, timestamp timestamp",
            rows=by_bidders,
        ),
    ),
    operators=(SESSIONS,),
    build=build,
    plain=plain,
    expected=expected,
    stretched_s={SESSIONS: 0.0004},
    closed=SESSIONS,
    end=2,
)
APPLICATION = nexmark_application(QUERY, rate="sine:4000+-2500/40")
