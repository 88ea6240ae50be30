"""What no exchange may create or lose: shares and cash, from the answers and the orders alone."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.apps.sse.market import BUY, SELL, Ints
from tidegate.apps.sse.orders import Orders
from tidegate.apps.sse.transactor import CANCELLED


def conserved(orders: Orders, trades: pa.Table, state: pa.Table) -> list[str]:
    """What is wrong with the trades and the books; the orders are all from number 0 on."""
    faults: list[str] = []
    shares, price, cash = (trades[name].to_numpy() for name in ("shares", "price", "cash"))
    if np.any(cash != shares * price) or np.any(shares <= 0):
        faults.append("the cash of a trade is not its shares times its price")
    accounts = np.zeros((2, 1 + int(orders.trader.max(initial=0))), dtype=np.int64)
    stocks = 1 + int(orders.stock.max(initial=0))
    for side, name, trader in ((BUY, "buy_order", "buyer"), (SELL, "sell_order", "seller")):
        order, who = trades[name].to_numpy(), trades[trader].to_numpy()
        faults += _of_side(orders, side, order, who, price)
        sign = 1 if side == BUY else -1
        np.add.at(accounts[0], who, sign * shares)
        np.add.at(accounts[1], who, -sign * cash)
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
    if accounts.sum(axis=1).any():
        faults.append("the accounts of all traders do not add up to zero")
    return faults


def _of_side(orders: Orders, side: int, order: Ints, trader: Ints, price: Ints) -> list[str]:
    """Whether the orders of a side are those of the traders, and within their limits."""
    faults = []
    if np.any(orders.side[order] != side) or np.any(orders.trader[order] != trader):
        faults.append("a trade names an order of another trader or of the other side")
    limit = orders.price[order]
    if np.any(price > limit if side == BUY else price < limit):
        faults.append("an order traded beyond its limit")
    return faults


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
