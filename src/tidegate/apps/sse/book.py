"""The order book: matches limit orders by price and then by time. Compiled, as it is sequential.

An order trades with the best orders of the other side for as long as their prices cross, each time
at the price of the order that was there first. What is left of it rests in the book. A side of a
book holds `DEPTH` orders; beyond that the worst one is cancelled, so the state is bounded.
"""

import numpy as np
import numpy.typing as npt
from numba import njit

from tidegate.apps.sse.market import BUY, Ints

DEPTH = 64
"""The most resting orders on one side of a book. The exchange itself cancels orders by time: what
is open in the evening is gone. A run of minutes has no evening."""

Table = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

ORDER, SIDE, PRICE, SHARES, TRADER = range(5)
"""The columns of orders, both new and resting."""
FIELDS = 5
SCORE, ORIGIN = 5, 6
"""Two more columns in a book: the price, higher for a better one; the row it came from, or -1."""
IN_BOOK = 7

TAKER, NTH, TRADED, AT_PRICE, MAKER, MAKER_TRADER = range(6)
"""The columns of trades: the row of the new order, and how many trades it had before; shares and
price; the resting order and its trader."""
TRADE_FIELDS = 6


@njit(cache=True)
def score_of(one: Ints) -> int:
    """The price of an order, signed so that the order with the highest score goes first."""
    return int(one[PRICE] if one[SIDE] == BUY else -one[PRICE])


@njit(cache=True)
def shift(book: Table, first: int, last: int, by: int) -> None:
    """Move the rows from `first` to `last` of a book by one place up or down, in that order."""
    step = 1 if last >= first else -1
    for place in range(first, last + step, step):
        for field in range(IN_BOOK):
            book[place + by, field] = book[place, field]


@njit(cache=True)
def rest(book: Table, count: int, one: Ints, origin: int) -> None:
    """Put an order into its side of a book, where the best one is last."""
    score = score_of(one)
    place = count
    while place > 0:
        before = book[place - 1]
        if score > before[SCORE] or (score == before[SCORE] and one[ORDER] < before[ORDER]):
            break
        place -= 1
    if place < count:
        shift(book, count - 1, place, 1)
    for field in range(FIELDS):
        book[place, field] = one[field]
    book[place, SCORE] = score
    book[place, ORIGIN] = origin


@njit(cache=True)
def match(
    orders: Table, order_ends: Ints, resting: Table, resting_ends: Ints, depth: int
) -> tuple[Table, Table, Ints, Mask, Table]:
    """Execute the new orders of each stock against its resting ones.

    Both tables are in the order of the stocks, `..._ends` say where each stock's rows end, and new
    orders are in the order of their numbers. What an order has left is left in `orders`. Returns
    the trades; the resting orders that are new or changed, and the stock of each; which of the old
    resting orders are gone; and the shares that were cancelled, by stock and side.
    """
    stocks = len(order_ends)
    trades = np.empty((2 * len(orders) + len(resting), TRADE_FIELDS), dtype=np.int64)
    written = np.empty((len(orders) + len(resting), FIELDS), dtype=np.int64)
    of_stock = np.empty(len(written), dtype=np.int64)
    gone = np.ones(len(resting), dtype=np.bool_)
    cancelled = np.zeros((stocks, 2), dtype=np.int64)
    books = np.empty((2, depth + 1, IN_BOOK), dtype=np.int64)
    counts = np.zeros(2, dtype=np.int64)
    traded, kept = 0, 0
    for stock in range(stocks):
        counts[0], counts[1] = 0, 0
        for row in range(resting_ends[stock - 1] if stock else 0, resting_ends[stock]):
            side = resting[row, SIDE]
            rest(books[side], counts[side], resting[row], row)
            counts[side] += 1
        for row in range(order_ends[stock - 1] if stock else 0, order_ends[stock]):
            one = orders[row]
            side, other, score = one[SIDE], 1 - one[SIDE], score_of(one)
            nth = 0
            while one[SHARES] > 0 and counts[other] > 0:
                best = books[other, counts[other] - 1]
                if score + best[SCORE] < 0:  # the prices do not cross
                    break
                shares = min(one[SHARES], best[SHARES])
                trade = trades[traded]
                trade[TAKER], trade[NTH] = row, nth
                trade[TRADED], trade[AT_PRICE] = shares, best[PRICE]
                trade[MAKER], trade[MAKER_TRADER] = best[ORDER], best[TRADER]
                traded += 1
                nth += 1
                one[SHARES] -= shares
                best[SHARES] -= shares
                if best[SHARES] == 0:
                    counts[other] -= 1
            if one[SHARES] > 0:
                rest(books[side], counts[side], one, -1)
                counts[side] += 1
                if counts[side] > depth:
                    cancelled[stock, side] += books[side, 0, SHARES]
                    shift(books[side], 1, depth, -1)
                    counts[side] = depth
        for side in range(2):
            for place in range(counts[side]):
                held = books[side, place]
                origin = held[ORIGIN]
                if origin >= 0:
                    gone[origin] = False
                    if resting[origin, SHARES] == held[SHARES]:
                        continue
                for field in range(FIELDS):
                    written[kept, field] = held[field]
                of_stock[kept] = stock
                kept += 1
    return trades[:traded], written[:kept], of_stock[:kept], gone, cancelled
