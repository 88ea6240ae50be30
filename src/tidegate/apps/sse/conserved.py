"""What no exchange may create or lose: shares and cash, of each order, stock and trader."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.apps.sse.market import BUY, SELL, Ints
from tidegate.apps.sse.orders import Orders
from tidegate.apps.sse.replay import Trade
from tidegate.apps.sse.transactor import CANCELLED


def conserved(
    orders: Orders, trades: pa.Table, state: pa.Table, replayed: Sequence[Trade]
) -> list[str]:
    """What is wrong with the trades and the books; the orders are all from number 0 on.

    `replayed` are the trades of a sequential exchange, for the accounts of the traders: that these
    add up to zero says nothing, as each trade gives to one trader what it takes from another.
    """
    faults: list[str] = []
    shares, price, cash = (trades[name].to_numpy() for name in ("shares", "price", "cash"))
    if np.any(cash != shares * price) or np.any(shares <= 0):
        faults.append("the cash of a trade is not its shares times its price")
    traders = 1 + int(orders.trader.max(initial=0))
    stocks = 1 + int(orders.stock.max(initial=0))
    for side, name, trader in ((BUY, "buy_order", "buyer"), (SELL, "sell_order", "seller")):
        order, who = trades[name].to_numpy(), trades[trader].to_numpy()
        faults += _of_side(orders, side, order, who, price)
        filled = _sums(order, shares, len(orders.seq))
        if np.any(filled > orders.shares):
            faults.append("an order traded more shares than it had")
        mine = orders.side == side
        ordered = _sums(orders.stock[mine], orders.shares[mine], stocks)
        traded = _sums(orders.stock[mine], filled[mine], stocks)
        left = _left(state, side, stocks)
        if np.any(ordered != traded + left):
            odd = int(np.argmax(ordered != traded + left))
            faults.append(
                f"stock {odd}: {ordered[odd]} shares were ordered on side {side}, but"
                f" {traded[odd]} were traded and {left[odd]} rest or were cancelled"
            )
    return [*faults, *_wrong_accounts(trades, replayed, traders)]


def _of_side(orders: Orders, side: int, order: Ints, trader: Ints, price: Ints) -> list[str]:
    """Whether the orders of a side are those of the traders, and within their limits."""
    faults = []
    if np.any(orders.side[order] != side) or np.any(orders.trader[order] != trader):
        faults.append("a trade names an order of another trader or of the other side")
    limit = orders.price[order]
    if np.any(price > limit if side == BUY else price < limit):
        faults.append("an order traded beyond its limit")
    return faults


def _wrong_accounts(trades: pa.Table, replayed: Sequence[Trade], traders: int) -> list[str]:
    """Traders who have other shares or other cash than after the replay."""
    names = ("buyer", "seller", "shares", "cash")
    found = _accounts([trades[name].to_numpy() for name in names], traders)
    columns = [np.array([getattr(one, name) for one in replayed], np.int64) for name in names]
    right = _accounts(columns, traders)
    wrong = np.flatnonzero((found != right).any(axis=0))
    if not len(wrong):
        return []
    shares, cash = found[:, wrong[0]]
    right_shares, right_cash = right[:, wrong[0]]
    return [
        f"{len(wrong)} of {traders} traders have other accounts than after the replay; trader"
        f" {wrong[0]} has {shares} shares and {cash} in cash instead of {right_shares} and"
        f" {right_cash}"
    ]


def _accounts(columns: Sequence[Ints], traders: int) -> Ints:
    """What each trader has bought less sold, and been paid less paid: a row each."""
    buyer, seller, shares, cash = columns
    return np.stack(
        [
            _sums(buyer, shares, traders) - _sums(seller, shares, traders),
            _sums(seller, cash, traders) - _sums(buyer, cash, traders),
        ]
    )


def _left(state: pa.Table, side: int, stocks: int) -> Ints:
    """The shares of each stock that rest on a side, or were cancelled there."""
    order, sides, shares, stock = (
        state[name].to_numpy() for name in ("order", "side", "shares", "stock")
    )
    chosen: npt.NDArray[np.bool_] = ((order >= 0) & (sides == side)) | (order == CANCELLED[side])
    return _sums(stock[chosen], shares[chosen], stocks)


def _sums(place: Ints, values: Ints, count: int) -> Ints:
    """The exact sum of the values at each place."""
    found = np.zeros(count, dtype=np.int64)
    np.add.at(found, place, values)
    return found
