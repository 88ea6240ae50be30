"""Compares the answers of a run with the reference: books, transactions and all eleven analytics.

The way in which micro-batches cut the stream changes no answer that is compared. Windows are
compared whether they were closed or are still open. An answer that an analytic gives once per
micro-batch (vwap, index, ranking) names the trade after which it holds.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa

from tidegate.apps.application import Verdict
from tidegate.apps.event_progress import EventProgress
from tidegate.apps.sse.answers import ANSWER
from tidegate.apps.sse.conserved import conserved
from tidegate.apps.sse.expected import Events, ExpectedAnswers, Windows, expected
from tidegate.apps.sse.market import Market, base_prices, issued
from tidegate.apps.sse.orders import Orders, orders
from tidegate.apps.sse.replay import Exchange, Trade, replay
from tidegate.apps.sse.statistics import (
    AVERAGE_EVERY_S,
    AVERAGE_S,
    VOLATILITY_S,
    VOLUME_S,
    deviation,
)
from tidegate.apps.sse.transactor import CANCELLED, LAST, RECORD
from tidegate.pipelines.functions.times import microseconds_of

WINDOWED = {
    "average": (AVERAGE_EVERY_S, AVERAGE_S),
    "volume": (VOLUME_S, VOLUME_S),
    "volatility": (VOLATILITY_S, VOLATILITY_S),
}
"""How often a window begins, and how long it is, in seconds."""
STATES = ("transactor", "vwap", "index", "ranking", *WINDOWED)
"""The operators whose state is compared."""


@dataclass(frozen=True, slots=True)
class Reference:
    """The orders of a run, and what a sequential exchange makes of them."""

    market: Market
    given: Orders
    replayed: Exchange

    @classmethod
    def of(cls, market: Market, arrived: int) -> Self:
        """Replay all orders that arrived."""
        given = orders(market, np.arange(arrived, dtype=np.int64))
        return cls(market, given, replay(given))

    def expected(self, ranked_after: Collection[int]) -> ExpectedAnswers:
        """What the analytics must answer."""
        market = self.market
        base, weights = base_prices(market.stocks, market.seed), issued(market.stocks, market.seed)
        return expected(self.replayed.trades, base.tolist(), weights.tolist(), ranked_after)

    def verdict(
        self,
        trades: pa.Table | None,
        told: pa.Table | None,
        states: Mapping[str, pa.Table],
        progress: Mapping[str, EventProgress],
    ) -> Verdict:
        """Compare everything that a run left behind."""
        replayed = self.replayed
        records = RECORD.empty_table() if trades is None else trades
        said = ANSWER.empty_table() if told is None else told
        answers = by_analytic(said)
        right = self.expected({row["trade"] for row in answers.get("ranking", [])})
        faults = [
            *wrong_trades(records, replayed),
            *wrong_books(states["transactor"], replayed),
            *conserved(self.given, records, states["transactor"], replayed.trades),
            *wrong_windows(answers, states, right),
            *not_closed(states, right, progress),
            *wrong_boards(answers, states, right, replayed),
            *wrong_events(answers, right),
        ]
        figures = {
            "orders": len(self.given.seq),
            "transactions": len(replayed.trades),
            "shares": sum(one.shares for one in replayed.trades),
            "resting": sum(map(len, replayed.books.values())),
            "answers": said.num_rows,
            "events": sum(map(len, right.events.values())),
        }
        if faults:
            more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
            return Verdict(correct=False, said=f"{faults[0]}{more}", figures=figures)
        return Verdict(
            correct=True,
            said=f"{len(self.given.seq):,} orders: {len(replayed.trades):,} transactions, books,"
            " the accounts of all traders and the answers of eleven analytics equal a sequential"
            " replay",
            figures=figures,
        )


def by_analytic(told: pa.Table) -> dict[str, list[dict[str, Any]]]:
    """The answers of each analytic, in the order in which they came; times in microseconds."""
    at_us, _ = microseconds_of(told["at"])
    place = told.schema.get_field_index("at")
    rows = told.set_column(place, "at_us", pa.array(at_us)).to_pylist()
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(row["analytic"], []).append(row)
    return found


def wrong_trades(records: pa.Table, reference: Exchange) -> list[str]:
    """The transaction records must be those of the replay, each once."""
    at_us, _ = microseconds_of(records["at"])
    columns = [
        at_us.tolist() if name == "at_us" else records[name].to_pylist() for name in Trade._fields
    ]
    found = sorted(Trade(*row) for row in zip(*columns, strict=True))
    if found == reference.trades:
        return []
    odd = next(
        (one for one, other in zip(found, reference.trades, strict=False) if one != other), ""
    )
    return [
        f"the transactions are not those of the replay: {len(found)} instead of"
        f" {len(reference.trades)}; the first that differs: {odd}"
    ]


def wrong_books(state: pa.Table, reference: Exchange) -> list[str]:
    """The resting orders and the counters must be those of the replay."""
    rows = state.to_pylist()
    found = {
        (row["stock"], row["side"], row["order"], row["price"], row["shares"], row["trader"])
        for row in rows
        if row["order"] >= 0
    }
    right = {
        (stock, side, one.order, one.price, one.shares, one.trader)
        for (stock, side), book in reference.books.items()
        for one in book
    }
    counted = {
        (row["stock"], row["order"]): row["shares"]
        for row in rows
        if row["order"] < 0 and row["order"] != LAST
    }
    cancelled = {
        (stock, CANCELLED[side]): shares for (stock, side), shares in reference.cancelled.items()
    }
    faults = []
    if found != right or len(rows) != len({(row["stock"], row["order"]) for row in rows}):
        faults.append(f"the books differ from the replay in {len(found ^ right)} resting orders")
    if counted != cancelled:
        faults.append("the cancelled shares differ from the replay")
    return faults


def wrong_windows(
    answers: Mapping[str, list[dict[str, Any]]],
    states: Mapping[str, pa.Table],
    right: ExpectedAnswers,
) -> list[str]:
    """Every window must have been answered or be open, and have the right value."""
    faults = []
    wanted: dict[str, Windows] = {name: getattr(right, name) for name in WINDOWED}
    for name in WINDOWED:
        found = [
            ((row["stock"], row["at_us"] // 1_000_000), row["value"])
            for row in answers.get(name, [])
        ]
        found += open_windows(name, states[name])
        faults += _differ(name, found, wanted[name])
    return faults


def not_closed(
    states: Mapping[str, pa.Table],
    right: ExpectedAnswers,
    progress: Mapping[str, EventProgress],
) -> list[str]:
    """Windows that should have been answered before the last micro-batch, and are still open."""
    faults: list[str] = []
    for name, (every_s, size_s) in WINDOWED.items():
        wanted: Windows = getattr(right, name)
        found = progress[name].faults(
            (end_s * 1_000_000 for _, end_s in wanted),
            microseconds_of(states[name]["window_end"])[0].tolist(),
            every_us=every_s * 1_000_000,
            size_us=size_s * 1_000_000,
        )
        faults += [f"{name}: {one}" for one in found]
    return faults


def open_windows(name: str, state: pa.Table) -> list[tuple[tuple[int, int], float]]:
    """The windows that are still in the state, with the value that they have so far."""
    end_us, _ = microseconds_of(state["window_end"])
    if name == "average":
        value = state["value__total"].to_numpy() / state["value__count"].to_numpy()
    elif name == "volume":
        value = state["value"].to_numpy()
    else:
        value = deviation(state)
    keys = zip(state["stock"].to_pylist(), (end_us // 1_000_000).tolist(), strict=True)
    return list(zip(keys, value.tolist(), strict=True))


def wrong_boards(
    answers: Mapping[str, list[dict[str, Any]]],
    states: Mapping[str, pa.Table],
    right: ExpectedAnswers,
    reference: Exchange,
) -> list[str]:
    """Answers that were given once per micro-batch, and the states at the end."""
    faults = wrong_vwap(answers, right, reference)
    for row in answers.get("index", []):
        if not _same(row["value"], right.index.get(row["trade"])):
            faults.append(f"index after trade {row['trade']} is wrong")
    ranked: dict[int, list[tuple[int, float]]] = {}
    for row in answers.get("ranking", []):
        ranked.setdefault(row["trade"], []).append((row["stock"], row["value"]))
    if ranked != right.ranking:
        faults.append("the ranking after some trade is wrong")
    last = {reference.trades[-1].trade} if reference.trades else set()
    if {row["trade"] for row in answers.get("index", [])[-1:]} != last or not last <= ranked.keys():
        faults.append("index or ranking was not told after the last trade")

    price, cash, shares = {}, dict[int, int](), dict[int, int]()
    for one in reference.trades:
        price[one.stock] = one.price
        cash[one.stock] = cash.get(one.stock, 0) + one.cash
        shares[one.stock] = shares.get(one.stock, 0) + one.shares
    faults += _differ("index", _pairs(states["index"], "value"), price)
    faults += _differ("ranking", _pairs(states["ranking"], "value"), cash)
    faults += _differ("vwap", _pairs(states["vwap"], "value__total"), cash)
    faults += _differ("vwap", _pairs(states["vwap"], "value__count"), shares)
    return faults


def wrong_vwap(
    answers: Mapping[str, list[dict[str, Any]]], right: ExpectedAnswers, reference: Exchange
) -> list[str]:
    """Each answer must be right after its trade, and the last one of a stock after its last."""
    faults: list[str] = []
    told: dict[int, int] = {}
    for row in answers.get("vwap", []):
        told[row["stock"]] = row["trade"]
        if not _same(row["value"], right.vwap.get((row["stock"], row["trade"]))):
            faults.append(f"vwap of stock {row['stock']} after trade {row['trade']} is wrong")
    last = {one.stock: one.trade for one in reference.trades}
    untold = [stock for stock in last if told.get(stock) != last[stock]]
    if untold:
        faults.append(
            f"vwap was not told after the last trade of {len(untold)} of {len(last)} stocks; the"
            f" first is stock {min(untold)}"
        )
    return faults


def wrong_events(answers: Mapping[str, list[dict[str, Any]]], right: ExpectedAnswers) -> list[str]:
    """Each event must have been told once, and nothing else."""
    faults = []
    wanted: dict[str, Events] = right.events
    for name, its in wanted.items():
        found = [((row["stock"], row["trade"]), row["value"]) for row in answers.get(name, [])]
        faults += _differ(name, found, its)
    return faults


def _pairs(state: pa.Table, column: str) -> list[tuple[int, float]]:
    return list(zip(state["stock"].to_pylist(), state[column].to_pylist(), strict=True))


def _differ(name: str, found: list[tuple[Any, float]], right: Mapping[Any, float]) -> list[str]:
    """Whether these are the right values, each once."""
    values = dict(found)
    if len(values) != len(found):
        return [f"{name}: {len(found) - len(values)} answers were given twice"]
    odd = [
        key for key in values.keys() | right.keys() if not _same(values.get(key), right.get(key))
    ]
    if not odd:
        return []
    first = min(odd)
    return [
        f"{name}: {len(odd)} answers of {len(right)} are wrong; the first is that of {first}:"
        f" {values.get(first)} instead of {right.get(first)}"
    ]


def _same(value: float | None, right: float | None) -> bool:
    if value is None or right is None:
        return False
    return math.isclose(value, right, rel_tol=1e-12, abs_tol=0.0)
