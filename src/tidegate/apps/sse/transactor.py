"""The transactor: executes each order against the outstanding ones, and emits transaction records.

The book of a stock is several state rows, one for each resting order, so only orders that came,
went or changed are written. Three more rows of each stock hold counters; their order ids are below
zero.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.apps.number_columns import matrix_of
from tidegate.apps.sse.book import (
    AT_PRICE,
    DEPTH,
    FIELDS,
    MAKER,
    MAKER_TRADER,
    NTH,
    ORDER,
    SHARES,
    SIDE,
    TAKER,
    TRADED,
    TRADER,
    Table,
    match,
)
from tidegate.apps.sse.market import BUY, Ints
from tidegate.errors import TidegateError
from tidegate.pipelines.functions.columns import column_of
from tidegate.pipelines.keyed import BoundKeyed, KeyedBatch, Update

RECORD_BYTES = 160
"""A transaction record in the paper."""
_LONG = pa.int64()
RECORD = pa.schema(
    [
        ("trade", _LONG),
        ("at", pa.timestamp("us", "UTC")),
        ("stock", _LONG),
        ("shares", _LONG),
        ("price", _LONG),
        ("cash", _LONG),
        ("seller", _LONG),
        ("buyer", _LONG),
        ("sell_order", _LONG),
        ("buy_order", _LONG),
        ("padding", pa.binary()),
    ]
)
"""`trade` numbers transactions in the order of the exchange: the number of the order that caused it
times `DEPTH`, plus how many it caused before. No order can trade more often than a side is deep."""
PADDING = RECORD_BYTES - 8 * (len(RECORD) - 1)

CANCELLED = (-1, -2)
"""The order ids of the counters of cancelled shares, of buyers and of sellers."""
LAST = -3
"""The order id of the counter that has the number of the stock's last order in `shares`."""
_COUNTERS = 3
STATE = pa.schema([(name, _LONG) for name in ("order", "side", "price", "shares", "trader")])


@dataclass(frozen=True, slots=True)
class Transactor:
    """The keyed function; the key is the stock."""

    def bind(self, rows: pa.Schema, key: tuple[str, ...]) -> BoundKeyed:
        """Check the columns of an order."""
        for name in ("seq", "at", "side", "price", "shares", "trader"):
            column_of(rows, name, "transactor")
        return BoundKeyed(update=transact, state=STATE, output=RECORD, within="order")


def transact(batch: KeyedBatch) -> Update:
    """Execute the orders of a batch, and write the orders that changed in the books."""
    stocks = batch.keys.num_rows
    if not batch.rows.num_rows:
        return Update()
    names = ("seq", "side", "price", "shares", "trader")
    by_stock = np.argsort(batch.row_key, kind="stable")  # rows are in the order of their numbers
    orders = matrix_of(batch.rows, names)[by_stock]
    order_key = batch.row_key[by_stock]
    state = matrix_of(batch.state, STATE.names)
    counters = np.zeros((stocks, _COUNTERS), dtype=np.int64)  # their ids are their places
    counters[:, LAST] = -1
    is_counter = state[:, ORDER] < 0
    counters[batch.state_key[is_counter], state[is_counter, ORDER]] = state[is_counter, SHARES]
    known = counters.copy()
    _refuse_earlier(orders[:, ORDER], order_key, counters[:, LAST])

    books = np.flatnonzero(~is_counter)
    books = books[np.argsort(batch.state_key[books], kind="stable")]
    resting, resting_key = state[books], batch.state_key[books]
    trades, written, written_key, gone, cancelled = match(
        orders, _ends(order_key, stocks), resting, _ends(resting_key, stocks), DEPTH
    )
    counters[:, list(CANCELLED)] += cancelled
    np.maximum.at(counters[:, LAST], order_key, orders[:, ORDER])
    changed_key, changed = np.nonzero(counters != known)
    counted = np.zeros((len(changed), FIELDS), dtype=np.int64)
    counted[:, ORDER] = changed - _COUNTERS
    counted[:, SHARES] = counters[changed_key, changed]

    upsert_key = np.concatenate([written_key, changed_key])
    upserts = np.concatenate([written, counted])
    drop_key = resting_key[gone]
    return Update(
        output=_records(batch, orders, order_key, by_stock, trades),
        upserts=_keyed(batch, upsert_key, dict(zip(STATE.names, upserts.T, strict=True))),
        upsert_key=upsert_key,
        drops=_keyed(batch, drop_key, {"order": resting[gone, ORDER]}),
        drop_key=drop_key,
    )


def _records(
    batch: KeyedBatch, orders: Table, order_key: Ints, by_stock: Ints, trades: Table
) -> pa.Table:
    """The trades as transaction records."""
    taker = trades[:, TAKER]
    new = orders[taker]
    buys = new[:, SIDE] == BUY
    maker, maker_trader = trades[:, MAKER], trades[:, MAKER_TRADER]
    stock = batch.keys.column(0).to_numpy()[order_key[taker]]
    return pa.Table.from_arrays(
        [
            pa.array(new[:, ORDER] * DEPTH + trades[:, NTH]),
            batch.rows["at"].combine_chunks().take(pa.array(by_stock[taker])),
            pa.array(stock),
            pa.array(np.ascontiguousarray(trades[:, TRADED])),
            pa.array(np.ascontiguousarray(trades[:, AT_PRICE])),
            pa.array(trades[:, TRADED] * trades[:, AT_PRICE]),
            pa.array(np.where(buys, maker_trader, new[:, TRADER])),
            pa.array(np.where(buys, new[:, TRADER], maker_trader)),
            pa.array(np.where(buys, maker, new[:, ORDER])),
            pa.array(np.where(buys, new[:, ORDER], maker)),
            pa.repeat(pa.scalar(bytes(PADDING), pa.binary()), len(trades)),
        ],
        schema=RECORD,
    )


def _refuse_earlier(order: Ints, key: Ints, last: Ints) -> None:
    """The book is that of a sequential exchange only if no order comes after a later one."""
    if np.any(order <= last[key]):
        odd = int(np.argmax(order <= last[key]))
        raise TidegateError(
            f"the transactor got order {order[odd]} after order {last[key[odd]]} of its stock; "
            "orders of a stock must come in the order of their numbers"
        )


def _ends(key: Ints, keys: int) -> Ints:
    """Where the rows of each key end, if they are sorted by key."""
    return np.cumsum(np.bincount(key, minlength=keys))


def _keyed(batch: KeyedBatch, key: Ints, columns: dict[str, Ints]) -> pa.Table:
    """State rows of these keys."""
    table = batch.keys.take(pa.array(key))
    for name, values in columns.items():
        table = table.append_column(name, pa.array(np.ascontiguousarray(values)))
    return table
