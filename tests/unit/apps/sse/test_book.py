"""The compiled book: price before time, the resting order's price, a bounded depth."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.apps.sse.book import DEPTH, FIELDS, match
from tidegate.apps.sse.market import BUY, SELL
from tidegate.apps.sse.orders import Orders
from tidegate.apps.sse.replay import replay

NONE = np.zeros((0, FIELDS), dtype=np.int64)


def matched(*orders: tuple[int, int, int, int, int], resting=NONE, depth: int = DEPTH):
    """One stock: orders as (number, side, price, shares, trader)."""
    table = np.array(orders, dtype=np.int64).reshape(-1, FIELDS)
    ends, resting_ends = np.array([len(table)]), np.array([len(resting)])
    trades, written, _, gone, cancelled = match(table, ends, resting, resting_ends, depth)
    return trades.tolist(), written.tolist(), gone.tolist(), cancelled[0].tolist()


def test_prices_that_do_not_cross_rest() -> None:
    trades, written, _, _ = matched((0, BUY, 99, 5, 1), (1, SELL, 100, 5, 2))
    assert not trades and sorted(written) == [[0, BUY, 99, 5, 1], [1, SELL, 100, 5, 2]]


def test_the_best_price_goes_first_then_the_earliest() -> None:
    trades, written, _, _ = matched(
        (0, SELL, 101, 5, 10),
        (1, SELL, 100, 5, 11),
        (2, SELL, 100, 5, 12),
        (3, BUY, 101, 12, 13),
    )
    assert trades == [
        [3, 0, 5, 100, 1, 11],
        [3, 1, 5, 100, 2, 12],
        [3, 2, 2, 101, 0, 10],
    ]
    assert written == [[0, SELL, 101, 3, 10]]


def test_buyers_with_higher_limits_go_first() -> None:
    trades, _, _, _ = matched((0, BUY, 100, 5, 1), (1, BUY, 102, 5, 2), (2, SELL, 100, 6, 3))
    assert [(trade[2], trade[3], trade[4]) for trade in trades] == [(5, 102, 1), (1, 100, 0)]


def test_only_what_changed_is_written() -> None:
    resting = np.array([[0, SELL, 100, 5, 1], [1, SELL, 101, 5, 2], [2, SELL, 102, 5, 3]])
    trades, written, gone, _ = matched((3, BUY, 101, 7, 4), resting=resting)
    assert len(trades) == 2
    assert written == [[1, SELL, 101, 3, 2]]
    assert gone == [True, False, False]


def test_beyond_its_depth_a_side_loses_its_worst_order() -> None:
    orders = [(number, BUY, 100 - number, 5, 0) for number in range(3)]
    _, written, _, cancelled = matched(*orders, (3, BUY, 99, 7, 0), depth=3)
    assert sorted(row[0] for row in written) == [0, 1, 3]
    assert cancelled == [5, 0]


ORDERS = st.lists(
    st.tuples(
        st.integers(0, 1), st.sampled_from((BUY, SELL)), st.integers(95, 105), st.integers(1, 9)
    ),
    max_size=120,
)


@settings(deadline=None, max_examples=150)
@given(ORDERS, st.integers(0, 120))
def test_two_batches_are_a_sequential_replay(drawn, cut: int) -> None:
    """Two stocks, and a cut anywhere: what rests after the first batch is given to the second."""
    seq = np.arange(len(drawn))
    stock, side, price, shares = np.array(drawn, dtype=np.int64).reshape(-1, 4).T
    trader = seq % 7
    columns = np.column_stack([seq, side, price, shares, trader])
    right = replay(Orders(seq, seq, stock, side, price, shares, trader))
    books: dict[tuple[int, int], list[int]] = {}
    found = []
    for part in (seq[:cut], seq[cut:]):
        order = part[np.argsort(stock[part], kind="stable")]
        held = sorted(books.items())
        resting = np.array([row for _, row in held], dtype=np.int64).reshape(-1, FIELDS)
        trades, written, of_stock, gone, _ = match(
            columns[order],
            np.searchsorted(stock[order], [0, 1], side="right"),
            resting,
            np.searchsorted([key[0] for key, _ in held], [0, 1], side="right"),
            DEPTH,
        )
        for (key, _), was_gone in zip(held, gone, strict=True):
            if was_gone:
                del books[key]
        for row, its in zip(written.tolist(), of_stock.tolist(), strict=True):
            books[its, row[0]] = row
        found += [
            (int(order[taker]) * DEPTH + nth, shares, price, maker)
            for taker, nth, shares, price, maker, _ in trades.tolist()
        ]
    assert sorted(found) == [
        (one.trade, one.shares, one.price, min(one.buy_order, one.sell_order))
        for one in right.trades
    ]
    assert {(key[0], *row) for key, row in books.items()} == {
        (stock, one.order, side, one.price, one.shares, one.trader)
        for (stock, side), book in right.books.items()
        for one in book
    }


@pytest.mark.parametrize("side", [BUY, SELL])
def test_the_replay_is_bounded_too(side: int) -> None:
    seq = np.arange(DEPTH + 3)
    same = np.ones_like(seq)
    done = replay(Orders(seq, seq, 0 * seq, side * same, 100 * same, 5 * same, 0 * seq))
    (book,) = [book for book in done.books.values() if book]
    assert [one.order for one in book] == list(range(DEPTH))
    assert done.cancelled == {(0, side): 15}
