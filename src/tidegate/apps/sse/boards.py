"""The two statistics of the whole market: the composite index, and the ranking by turnover.

All stocks count for one answer, so these operators have one key, the board, and one task does all
their work. A map in front of them makes partial results of the trades, one row for each stock,
where the trades are. So a board gets few rows, however many trades there are.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.apps.sse.answers import ANSWER, answers
from tidegate.apps.sse.market import Ints, base_prices, issued
from tidegate.pipelines.derived import Derived
from tidegate.pipelines.functions.columns import column_of
from tidegate.pipelines.keyed import BoundKeyed, KeyedBatch, Update

PARTIAL = "board long, stock long, trade long, price long, cash long"
STATE = pa.schema([(name, pa.int64()) for name in ("stock", "value")])
INDEX_BASE = 1000.0
RANKED = 10

BoardAnswers = Callable[[Ints, Ints, int], pa.Table]
"""From the stocks of a board, their values and the last trade to answers."""


def partials(trades: pa.Table) -> Derived:
    """For each stock of some trades: the last trade, its price, and the cash of all of them."""
    stock, trade = trades["stock"].to_numpy(), trades["trade"].to_numpy()
    order = np.lexsort((trade, stock))
    found, first = np.unique(stock[order], return_index=True)
    last = order[np.append(first[1:], len(order))[: len(first)] - 1]
    cash = trades["cash"].to_numpy()[order]
    columns = {
        "board": np.zeros(len(found), dtype=np.int64),
        "stock": found,
        "trade": trade[last],
        "price": trades["price"].to_numpy()[last],
        "cash": np.add.reduceat(cash, first) if len(first) else cash,
    }
    return Derived(pa.table(columns), last)


@dataclass(frozen=True, slots=True)
class Board:
    """A value of each stock, one state row each, and an answer from all of them."""

    name: str
    column: str
    adds: bool
    """Whether values add up; otherwise the one of the last trade counts."""
    tell: BoardAnswers

    def bind(self, rows: pa.Schema, key: tuple[str, ...]) -> BoundKeyed:
        """Check the columns of a partial result."""
        for name in ("stock", "trade", self.column):
            column_of(rows, name, self.name)
        identity = {"function": self.name, "column": self.column, "adds": self.adds}
        return BoundKeyed(
            update=self.update, state=STATE, output=ANSWER, within="stock", identity=identity
        )

    def update(self, batch: KeyedBatch) -> Update:
        """Fold the partial results into the board, and answer from the whole of it."""
        rows = batch.rows
        if not rows.num_rows:
            return Update()
        stock, value = (rows[name].to_numpy() for name in ("stock", self.column))
        known, held = (batch.state[name].to_numpy() for name in STATE.names)
        stocks = np.union1d(known, stock)
        values = np.zeros(len(stocks), dtype=np.int64)
        values[np.searchsorted(stocks, known)] = held
        place = np.searchsorted(stocks, stock)
        if self.adds:
            np.add.at(values, place, value)
        else:
            values[place] = value  # rows are in the order of their trades, and the last one stays
        changed = np.unique(place)
        board = batch.keys.take(pa.array(np.zeros(len(changed), dtype=np.int64)))
        upserts = board.append_column("stock", pa.array(stocks[changed]))
        return Update(
            output=self.tell(stocks, values, int(rows["trade"].to_numpy()[-1])),
            upserts=upserts.append_column("value", pa.array(values[changed])),
            upsert_key=np.zeros(len(changed), dtype=np.int64),
        )


def index(stocks: int, seed: int) -> Board:
    """The composite index: what all companies are worth, over what they were worth at the start."""

    def tell(traded: Ints, price: Ints, trade: int) -> pa.Table:
        base, weight = base_prices(stocks, seed), issued(stocks, seed)
        worth = int((base * weight).sum())
        moved = int(((price - base[traded]) * weight[traded]).sum())
        value = np.array([INDEX_BASE * (worth + moved) / worth])
        return answers("index", value, trade=pa.array([trade]))

    return Board("index", "price", False, tell)


def ranking() -> Board:
    """The stocks with the highest turnover since the start, highest first."""

    def tell(traded: Ints, cash: Ints, trade: int) -> pa.Table:
        top = np.lexsort((traded, -cash))[:RANKED]
        at = pa.array(np.full(len(top), trade))
        return answers(
            "ranking", cash[top].astype(np.float64), stock=pa.array(traded[top]), trade=at
        )

    return Board("ranking", "cash", True, tell)
