"""The five events: what a stock's trades, one after the other, give the alarm for.

Each is a compiled loop over the trades with a few whole numbers of state per stock. A trade that is
an event has a value other than zero; all others are dropped.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from numba import njit

from tidegate.apps.sse.answers import ANSWER, answers
from tidegate.apps.sse.market import Ints, base_prices
from tidegate.pipelines.functions.columns import column_of
from tidegate.pipelines.functions.times import microseconds_of
from tidegate.pipelines.keyed import BoundKeyed, KeyedBatch, Update

Table = npt.NDArray[np.int64]
Loop = Callable[[Ints, Table, Ints, Table], Ints]
"""From the stock's place of each trade, the trades, the stocks' prices at the start and the states,
which it changes, to the value of each trade."""

ALARM_PERCENT = 3
JUMP_PERCENT = 1
SPIKE_TIMES, SPIKE_AFTER = 5, 5
LARGE_TIMES, LARGE_AFTER = 10, 20
HALT_PERCENT = 5

AT_US, PRICE, SHARES, CASH = range(4)
"""The columns of trades."""


@njit(cache=True)
def alarms(key: Ints, trades: Table, base: Ints, state: Table) -> Ints:
    """A price alarm: the price leaves the band around the price at the start.

    The state is the side on which the price is: 1 above the band, -1 below it. The value is the
    price, below zero if it fell below the band.
    """
    found = np.zeros(len(key), dtype=np.int64)
    for row in range(len(key)):
        stock, price = key[row], trades[row, PRICE]
        off = 100 * (price - base[stock])
        band = ALARM_PERCENT * base[stock]
        side = 1 if off > band else (-1 if off < -band else 0)
        if side != 0 and side != state[stock, 0]:
            found[row] = side * price
        state[stock, 0] = side
    return found


@njit(cache=True)
def jumps(key: Ints, trades: Table, base: Ints, state: Table) -> Ints:
    """A price jump: by a percent or more against the stock's last trade. The value is the change.

    The state is the last price.
    """
    found = np.zeros(len(key), dtype=np.int64)
    for row in range(len(key)):
        stock, price = key[row], trades[row, PRICE]
        last = state[stock, 0]
        if last > 0 and 100 * abs(price - last) >= JUMP_PERCENT * last:
            found[row] = price - last
        state[stock, 0] = price
    return found


@njit(cache=True)
def spikes(key: Ints, trades: Table, base: Ints, state: Table) -> Ints:
    """A volume spike: more shares in a second than five times the mean of earlier seconds.

    Seconds without trades do not count. The state is the current second (from 1 on), its shares,
    the earlier seconds and their shares, and whether this second has had its event.
    """
    found = np.zeros(len(key), dtype=np.int64)
    for row in range(len(key)):
        stock = key[row]
        second = trades[row, AT_US] // 1_000_000 + 1
        if second != state[stock, 0]:
            if state[stock, 0] > 0:
                state[stock, 2] += 1
                state[stock, 3] += state[stock, 1]
            state[stock, 0], state[stock, 1], state[stock, 4] = second, 0, 0
        state[stock, 1] += trades[row, SHARES]
        seconds, shares = state[stock, 2], state[stock, 1]
        over = shares * seconds > SPIKE_TIMES * state[stock, 3]
        if over and seconds >= SPIKE_AFTER and state[stock, 4] == 0:
            found[row] = shares
            state[stock, 4] = 1
    return found


@njit(cache=True)
def large_trades(key: Ints, trades: Table, base: Ints, state: Table) -> Ints:
    """A large trade: ten times the mean cash of the stock's earlier trades. The value is its cash.

    The state is the number of earlier trades and their cash.
    """
    found = np.zeros(len(key), dtype=np.int64)
    for row in range(len(key)):
        stock, cash = key[row], trades[row, CASH]
        earlier, total = state[stock, 0], state[stock, 1]
        if earlier >= LARGE_AFTER and cash * earlier >= LARGE_TIMES * total:
            found[row] = cash
        state[stock, 0] += 1
        state[stock, 1] += cash
    return found


@njit(cache=True)
def halts(key: Ints, trades: Table, base: Ints, state: Table) -> Ints:
    """A limit move: the price is five percent or more away from the reference price.

    The exchange would halt the stock. The value is the price, which is the next reference price;
    the first one is that of the stock's first trade. The state is the reference price.
    """
    found = np.zeros(len(key), dtype=np.int64)
    for row in range(len(key)):
        stock, price = key[row], trades[row, PRICE]
        reference = state[stock, 0]
        if reference == 0:
            state[stock, 0] = price
        elif 100 * abs(price - reference) >= HALT_PERCENT * reference:
            found[row] = price
            state[stock, 0] = price
    return found


LOOPS: dict[str, tuple[Loop, int]] = {
    "alarm": (alarms, 1),
    "jump": (jumps, 1),
    "spike": (spikes, 5),
    "large": (large_trades, 2),
    "halt": (halts, 1),
}
"""The loop of each event, and how many numbers of state it has."""


@dataclass(frozen=True, slots=True)
class Event:
    """A keyed function: the trades of a stock that are an event."""

    name: str
    stocks: int
    seed: int

    @property
    def state(self) -> pa.Schema:
        """Its whole numbers of state."""
        return pa.schema([(f"s{place}", pa.int64()) for place in range(LOOPS[self.name][1])])

    def bind(self, rows: pa.Schema, key: tuple[str, ...]) -> BoundKeyed:
        """Check the columns of a transaction record."""
        for name in ("trade", "at", "price", "shares", "cash"):
            column_of(rows, name, self.name)
        identity = {"function": "event", "name": self.name, "seed": self.seed}
        return BoundKeyed(update=self.update, state=self.state, output=ANSWER, identity=identity)

    def update(self, batch: KeyedBatch) -> Update:
        """Go over the trades, which are in their order, and write the states that changed."""
        rows, keys = batch.rows, batch.keys
        if not rows.num_rows:
            return Update()
        loop, numbers = LOOPS[self.name]
        state = np.zeros((keys.num_rows, numbers), dtype=np.int64)
        for place, name in enumerate(self.state.names):
            state[batch.state_key, place] = batch.state[name].to_numpy()
        trades = np.empty((rows.num_rows, 4), dtype=np.int64)
        trades[:, AT_US], _ = microseconds_of(rows["at"])
        for place, name in ((PRICE, "price"), (SHARES, "shares"), (CASH, "cash")):
            trades[:, place] = rows[name].to_numpy()
        base = base_prices(self.stocks, self.seed)[keys["stock"].to_numpy()]
        before = state.copy()
        value = loop(batch.row_key, trades, base, state)
        events = rows.take(pa.array(np.flatnonzero(value)))
        changed = np.flatnonzero((state != before).any(axis=1))
        upserts = keys.take(pa.array(changed))
        for place, name in enumerate(self.state.names):
            upserts = upserts.append_column(name, pa.array(state[changed, place]))
        return Update(
            output=answers(
                self.name,
                value[value != 0].astype(np.float64),
                stock=events["stock"],
                at=events["at"],
                trade=events["trade"],
            ),
            upserts=upserts,
            upsert_key=changed,
        )
