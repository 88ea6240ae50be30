"""The reference: all orders replayed one after the other, in plain Python, on sorted lists.

It shares no code with the pipeline beyond the orders themselves and the depth of a book.
"""

import bisect
from dataclasses import dataclass, field
from typing import NamedTuple

from tidegate.apps.sse.book import DEPTH
from tidegate.apps.sse.market import BUY, SELL
from tidegate.apps.sse.orders import Orders


class Trade(NamedTuple):
    """A transaction, with the columns of a record."""

    trade: int
    at_us: int
    stock: int
    shares: int
    price: int
    cash: int
    seller: int
    buyer: int
    sell_order: int
    buy_order: int


class Resting(NamedTuple):
    """An order in a book; sorted, the best one of a side comes first."""

    rank: int
    """The price, turned around for buyers, who are better the higher it is."""
    order: int
    price: int
    shares: int
    trader: int


@dataclass(slots=True)
class Exchange:
    """What the exchange has done after all orders."""

    trades: list[Trade] = field(default_factory=list)
    books: dict[tuple[int, int], list[Resting]] = field(default_factory=dict)
    """The resting orders by stock and side, the best one first."""
    cancelled: dict[tuple[int, int], int] = field(default_factory=dict)
    """The cancelled shares by stock and side."""


def replay(orders: Orders) -> Exchange:
    """Execute the orders in the order of their numbers."""
    done = Exchange()
    columns = (
        orders.seq,
        orders.at_us,
        orders.stock,
        orders.side,
        orders.price,
        orders.shares,
        orders.trader,
    )
    for order in zip(*(column.tolist() for column in columns), strict=True):
        _execute(done, *order)
    return done


def _execute(
    done: Exchange,
    seq: int,
    at_us: int,
    stock: int,
    side: int,
    price: int,
    shares: int,
    trader: int,
) -> None:
    """Execute one order."""
    others = done.books.setdefault((stock, SELL if side == BUY else BUY), [])
    fills = 0
    while shares and others:
        best = others[0]
        if price < best.price if side == BUY else price > best.price:
            break
        some = min(shares, best.shares)
        taker, maker = (trader, seq), (best.trader, best.order)
        (buyer, buy_order), (seller, sell_order) = (taker, maker) if side == BUY else (maker, taker)
        done.trades.append(
            Trade(
                trade=seq * DEPTH + fills,
                at_us=at_us,
                stock=stock,
                shares=some,
                price=best.price,
                cash=some * best.price,
                seller=seller,
                buyer=buyer,
                sell_order=sell_order,
                buy_order=buy_order,
            )
        )
        fills += 1
        shares -= some
        if some == best.shares:
            others.pop(0)
        else:
            others[0] = best._replace(shares=best.shares - some)
    if not shares:
        return
    mine = done.books.setdefault((stock, side), [])
    bisect.insort(mine, Resting(-price if side == BUY else price, seq, price, shares, trader))
    if len(mine) > DEPTH:
        worst = mine.pop()
        done.cancelled[stock, side] = done.cancelled.get((stock, side), 0) + worst.shares
