"""The stock exchange as an application: orders, the transactor, and eleven analytics behind it.

Elasticutor, section 5.4 and figure 14. The paper names two of the six statistics (moving averages,
the composite index) and one of the five events (an alarm when a price passes a threshold); the
others are ours. It prints no time per tuple, so those in `STRETCHED_S` are modelled.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from tidegate.apps.application import Application, BuiltApplication, Settings, Verdict
from tidegate.apps.collected import Collected
from tidegate.apps.event_progress import EventProgress
from tidegate.apps.sse.boards import PARTIAL, index, partials, ranking
from tidegate.apps.sse.book import DEPTH, FIELDS, match
from tidegate.apps.sse.events import LOOPS, Event
from tidegate.apps.sse.market import MOST_STOCKS, STOCKS, Market
from tidegate.apps.sse.orders import SCHEMA, order_map
from tidegate.apps.sse.statistics import average, volatility, volume, vwap
from tidegate.apps.sse.transactor import Transactor
from tidegate.apps.sse.verdict import STATES, WINDOWED, Reference
from tidegate.apps.stretching import Stretched
from tidegate.errors import AskedWrongly
from tidegate.pipelines.keyed import KeyedFunction
from tidegate.pipelines.stream import Stream, pipeline
from tidegate.spark.sources.arrivals import arrivals
from tidegate.spark.state.read import read_state

STATISTICS = ("average", "vwap", "volume", "volatility", "index", "ranking")
EVENTS = tuple(LOOPS)
BOARDS = ("index", "ranking")
TRANSACTOR = "transactor"
OPERATORS = (TRANSACTOR, *STATISTICS, *EVENTS)
STRETCHED_S = {TRANSACTOR: 0.001, **dict.fromkeys((*STATISTICS, *EVENTS), 0.0002)}
MOST_TASKS = {
    TRANSACTOR: 24,
    **dict.fromkeys((*STATISTICS, *EVENTS), 4),
    **dict.fromkeys(BOARDS, 1),
}
"""The analytics run side by side in a batch, so eleven times four tasks fill as many cores, and
each of them has an eighth of the transactor's work. A board has one key."""
SHARDS = 64


def build(spark: SparkSession, settings: Settings, place: Path) -> BuiltApplication:
    """The pipeline; with `cut` the analytics are one segment and the transactor another.

    A segment of each of the twelve operators would be twelve queries, which is more than a small
    machine can run side by side.
    """
    market = market_of(settings)
    rows = arrivals(
        spark, settings.rate, seed=settings.seed, seconds=settings.seconds, partitions=2
    )
    sinks = ExchangeSinks.below(place)
    stream = sse_stream(
        pipeline("sse", rows, arrival="timestamp"),
        market,
        sinks,
        times=settings.times(STRETCHED_S),
        cut=settings.cut,
    )

    def verify(checkpoint: str) -> Verdict:
        return sinks.verdict(market, settings.arrived, checkpoint)

    return BuiltApplication(stream=stream, verify=verify)


@dataclass(frozen=True, slots=True)
class ExchangeSinks:
    """What a run emits: transactions, and the answers of all analytics."""

    trades: Collected
    answers: Collected

    @classmethod
    def below(cls, place: Path) -> "ExchangeSinks":
        """Collect in a directory."""
        return cls(Collected(place / "trades"), Collected(place / "answers"))

    def verdict(self, market: Market, arrived: int, checkpoint: str) -> Verdict:
        """Compare everything with a sequential replay of the orders that arrived."""
        states = {name: read_state(checkpoint, name) for name in STATES}
        progress = {name: EventProgress.of(checkpoint, name) for name in WINDOWED}
        reference = Reference.of(market, arrived)
        return reference.verdict(self.trades.rows(), self.answers.rows(), states, progress)


def sse_stream(
    source: Stream,
    market: Market,
    sinks: ExchangeSinks,
    *,
    times: Mapping[str, float | None],
    cut: bool = False,
    most_tasks: Mapping[str, int] = MOST_TASKS,
) -> Stream:
    """The exchange behind a source whose rows are numbered by the column `seq`.

    `times` has the seconds per tuple of each operator; None: as fast as it is.
    """
    compile_loops()

    def keep_trades(rows: DataFrame, batch_id: int) -> None:
        sinks.trades(rows.drop("padding"), batch_id)

    def operator(stream: Stream, name: str, function: KeyedFunction, key: str) -> Stream:
        first = name == TRANSACTOR
        return stream.keyed(
            name,
            Stretched(function, times[name]),
            key=key,
            shards=1 if key == "board" else SHARDS,
            tasks=(1, most_tasks[name]),
            order_by="seq" if first else "trade",
        )

    ordered = source.map(order_map(market), SCHEMA, name="order")
    traded = operator(ordered, TRANSACTOR, Transactor(), "stock")
    traded.to(keep_trades, name="trades")
    if cut:
        traded = traded.cut("transactions")
    boards = traded.map(partials, PARTIAL, name="partials")
    told = [
        operator(boards if name in BOARDS else traded, name, function, key)
        for name, function, key in analytics(market)
    ]
    first, *others = told
    return first.merge(*others, name="told").to(sinks.answers, name="answers")


def analytics(market: Market) -> list[tuple[str, KeyedFunction, str]]:
    """The eleven analytics in their order: name, function and key."""
    statistics: dict[str, KeyedFunction] = {
        "average": average(),
        "vwap": vwap(),
        "volume": volume(),
        "volatility": volatility(),
        "index": index(market.stocks, market.seed),
        "ranking": ranking(),
    }
    found = [
        (name, statistics[name], "board" if name in BOARDS else "stock") for name in STATISTICS
    ]
    return found + [(name, Event(name, market.stocks, market.seed), "stock") for name in EVENTS]


def market_of(settings: Settings) -> Market:
    """The market that the settings ask for; `extra` may have another number of stocks."""
    return Market(settings.rate, settings.seed, stocks_of(settings.extra))


def stocks_of(extra: Mapping[str, str]) -> int:
    """The number of stocks that the options ask for."""
    asked = extra.get("stocks", str(STOCKS))
    if not (asked.isascii() and asked.isdigit() and 1 <= int(asked) <= MOST_STOCKS):
        raise AskedWrongly(f"stocks={asked}: give a whole number from 1 to {MOST_STOCKS}")
    return int(asked)


def compile_loops() -> None:
    """Compile what is compiled once, here, so that all tasks find it in numba's cache."""
    none, some = np.zeros(0, dtype=np.int64), np.ones(1, dtype=np.int64)
    orders, resting = np.zeros((1, FIELDS), dtype=np.int64), np.zeros((0, FIELDS), dtype=np.int64)
    match(orders, some, resting, np.zeros(1, dtype=np.int64), DEPTH)
    for loop, numbers in LOOPS.values():
        trades, state = np.zeros((0, 4), dtype=np.int64), np.zeros((1, numbers), dtype=np.int64)
        loop(none, trades, some, state)


APPLICATION = Application(
    name="sse",
    paper="Elasticutor 5.4",
    about="a stock exchange: order books, and eleven analytics of the transactions",
    rate="sine:400+-250/40",
    target="5 seconds",
    cores=(1, 8),
    operators=OPERATORS,
    stretched_s=STRETCHED_S,
    most_tasks=lambda _: MOST_TASKS,
    build=build,
    options={"stocks": f"how many stocks are traded; default {STOCKS}"},
    read_options=stocks_of,
)
