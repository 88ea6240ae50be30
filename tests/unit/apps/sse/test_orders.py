"""Orders are pure functions of their numbers, skewed, and popular in bursts."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.apps.sse.market import BUY, Market, base_prices, issued
from tidegate.apps.sse.orders import ERA_S, LOT, TUPLE_BYTES, mid_prices, orders
from tidegate.errors import AskedWrongly
from tidegate.workload.parse import parse_profile

MARKET = Market(parse_profile("constant:1000"), seed=3)
ALL = orders(MARKET, np.arange(60_000))


@given(st.integers(0, 59_999), st.integers(0, 300))
def test_any_part_of_the_stream_can_be_made_alone(first: int, count: int) -> None:
    end = min(first + count, 60_000)
    part = orders(MARKET, np.arange(first, end))
    for column in dataclasses.fields(part):
        assert np.array_equal(getattr(part, column.name), getattr(ALL, column.name)[first:end])


def test_another_seed_gives_other_orders() -> None:
    other = orders(dataclasses.replace(MARKET, seed=4), np.arange(1000))
    assert not np.array_equal(other.stock, ALL.stock[:1000])
    assert not np.array_equal(other.price, ALL.price[:1000])


def test_orders_are_sensible() -> None:
    assert ALL.stock.min() >= 0 and ALL.stock.max() < MARKET.stocks
    assert ALL.shares.min() == LOT and not np.any(ALL.shares % LOT)
    assert 0.48 < np.mean(ALL.side == BUY) < 0.52
    off = ALL.price / mid_prices(MARKET, ALL.stock, ALL.at_us) - 1.0
    assert np.abs(off).max() < 0.01
    assert np.mean(off[ALL.side == BUY]) < 0 < np.mean(off[ALL.side != BUY])
    assert np.all(np.diff(ALL.at_us) >= 0)


def test_the_stocks_are_skewed_and_their_popularity_changes() -> None:
    """Figure 15: the rates of the five most popular stocks go up and down many times over."""
    counts = np.bincount(ALL.stock, minlength=MARKET.stocks)
    top = np.argsort(counts)[-5:]
    assert counts[top].sum() > 0.2 * len(ALL.stock)
    era = ALL.at_us // round(ERA_S * 1e6)
    rates = np.array([np.bincount(era[ALL.stock == stock], minlength=12) for stock in top])
    assert np.all(rates.max(axis=1) > 2 * rates.min(axis=1))


def test_a_tuple_has_the_papers_size() -> None:
    one = ALL.table().slice(0, 1)
    sizes = [len(value) if isinstance(value, bytes) else 8 for value in one.to_pylist()[0].values()]
    assert sum(sizes) == TUPLE_BYTES


def test_the_market_is_fixed_by_its_seed() -> None:
    assert np.array_equal(base_prices(300, 1), base_prices(300, 1))
    assert base_prices(300, 1).min() > 0 and issued(300, 1).min() > 0
    with pytest.raises(AskedWrongly, match="0 stocks are not possible"):
        Market(MARKET.profile, stocks=0)
