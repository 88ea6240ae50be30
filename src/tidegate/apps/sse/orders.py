"""Generates limit orders: skewed over the stocks, with a popularity that comes in bursts.

Each order is a pure function of its number and the seed. The paper prints the arrival rates of the
five most popular stocks (figure 15) as a picture only. So the skew is a zipf distribution, and
every few seconds each stock's share of the orders swings by a factor, and now and then jumps.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.apps.sse.market import BUY, Ints, Market, base_prices
from tidegate.workload.counter import uniforms, words

TUPLE_BYTES = 96
"""An order in the paper."""
_COLUMNS = 7
SCHEMA = (
    "seq long, at timestamp, stock long, side long, price long, shares long, trader long,"
    " padding binary"
)
PADDING = TUPLE_BYTES - 8 * _COLUMNS

EXPONENT = 1.0
ERA_S = 5.0
"""How long a stock keeps its popularity."""
BURST = 20.0
"""How much more popular a stock in a burst is."""
_BURSTS = 1.0 / 256.0
"""The share of stocks and eras with a burst."""
_SWING = 3.0
"""Swings of the popularity in powers of two; half of it up, half down."""
_MEMORY = (1.0, 0.7, 0.49, 0.343)
"""How much of the swing comes from this era and the ones before it."""

TRADERS = 10_000
LOT = 100
_MOST_LOTS = 400
_LOTS_EXPONENT = 1.6
_WAVE = 0.03
"""How far a price swings around the price at the start, as a share of it."""
_SHORTEST_WAVE_S, _LONGEST_WAVE_S = 20, 90
_NEWS = 1.0 / 128.0
"""The share of stocks and eras with news, which move the price for that era."""
_NEWS_MOVE = 0.06
_REACH = 0.006
"""The limit lies up to this share of the price on either side of it."""
_SHY = 0.0015
"""A buyer's limit lies below the price by this much on average, a seller's above it."""

_RANK, _SWINGS, _BURSTING, _STOCK, _SIDE, _LIMIT, _LOTS, _TRADER, _PERIOD, _PHASE, _NEWSY = range(
    23, 34
)
"""The streams of random numbers of this file."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Orders:
    """Some orders, column by column."""

    seq: Ints
    at_us: Ints
    """Microseconds since the start of the stream."""
    stock: Ints
    side: Ints
    price: Ints
    """The limit in ticks of a hundredth."""
    shares: Ints
    trader: Ints

    def table(self) -> pa.Table:
        """The tuples of the paper's size, with `SCHEMA`."""
        return pa.table(
            {
                "seq": self.seq,
                "at": times(self.at_us),
                "stock": self.stock,
                "side": self.side,
                "price": self.price,
                "shares": self.shares,
                "trader": self.trader,
                "padding": pa.repeat(pa.scalar(bytes(PADDING), pa.binary()), len(self.seq)),
            }
        )


def orders(market: Market, seq: Ints) -> Orders:
    """The orders with these numbers. Any part of the stream can be made alone."""
    stocks, seed = market.stocks, market.seed
    at_us = market.profile.arrival_us(seq)
    era = at_us // round(ERA_S * 1e6)
    share = uniforms(words(seq, seed, _STOCK))
    stock = np.empty(len(seq), dtype=np.int64)
    for one in np.unique(era).tolist():
        here = era == one
        stock[here] = np.searchsorted(popularity(stocks, seed, one), share[here], side="right")
    side = (words(seq, seed, _SIDE) >> np.uint64(63)).astype(np.int64)
    towards = np.where(side == BUY, 1.0, -1.0)
    limit = uniforms(words(seq, seed, _LIMIT)) + uniforms(words(~seq, seed, _LIMIT)) - 1.0
    asked = mid_prices(market, stock, at_us) * (1.0 + towards * (_REACH * limit - _SHY))
    lots = np.searchsorted(_lots(), uniforms(words(seq, seed, _LOTS)), side="right") + 1
    return Orders(
        seq=seq,
        at_us=at_us,
        stock=stock,
        side=side,
        price=np.maximum(np.rint(asked), 1.0).astype(np.int64),
        shares=LOT * lots.astype(np.int64),
        trader=(words(seq, seed, _TRADER) % np.uint64(TRADERS)).astype(np.int64),
    )


def order_map(market: Market) -> Callable[[pa.Table], pa.Table]:
    """The first step of the pipeline: row numbers become orders."""

    def order(rows: pa.Table) -> pa.Table:
        return orders(market, rows["seq"].to_numpy()).table()

    return order


@functools.lru_cache(maxsize=64)
def popularity(stocks: int, seed: int, era: int) -> Floats:
    """Upper ends of the stocks' shares of an era's orders, in [0, 1]."""
    numbers = np.arange(stocks, dtype=np.int64)
    rank = np.argsort(words(numbers, seed, _RANK)).argsort()
    weights = (rank + 1.0).astype(np.float64) ** -EXPONENT
    swing = np.zeros(stocks)
    for back, part in enumerate(_MEMORY):
        swing += part * (_of_era(numbers, seed, _SWINGS, era - back) - 0.5)
    weights *= np.exp2(_SWING * swing)
    weights[_of_era(numbers, seed, _BURSTING, era) < _BURSTS] *= BURST
    sums = np.cumsum(weights)
    ends: Floats = sums / sums[-1]
    ends.setflags(write=False)
    return ends


def mid_prices(market: Market, stock: Ints, at_us: Ints) -> Floats:
    """The price around which a stock is ordered: a triangle wave, moved by news.

    Only sums, products and quotients, which are the same to the last bit in every process.
    """
    stocks, seed = market.stocks, market.seed
    base = base_prices(stocks, seed)[stock]
    span_us = (_LONGEST_WAVE_S - _SHORTEST_WAVE_S) * 1_000_000
    period_us = (words(stock, seed, _PERIOD) % np.uint64(span_us)).astype(np.int64)
    period_us += _SHORTEST_WAVE_S * 1_000_000
    phase_us = (words(stock, seed, _PHASE) % np.uint64(span_us)).astype(np.int64)
    wave = 4.0 * np.abs((at_us + phase_us) % period_us / period_us - 0.5) - 1.0
    news = _of_era(stock, seed, _NEWSY, at_us // round(ERA_S * 1e6))
    moved = np.where(news < _NEWS / 2, -_NEWS_MOVE, np.where(news < _NEWS, _NEWS_MOVE, 0.0))
    mid: Floats = base * (1.0 + _WAVE * wave + moved)
    return mid


def times(at_us: Ints) -> pa.Array:
    """Microseconds since the start of the stream as event times: the stream starts in 1970."""
    return pa.array(at_us).cast(pa.timestamp("us", "UTC"))


def _of_era(stock: Ints, seed: int, stream: int, era: int | Ints) -> Floats:
    """A number in [0, 1) for each stock and era."""
    return uniforms(words(stock + (np.asarray(era, dtype=np.int64) + 8) * 2**24, seed, stream))


@functools.lru_cache(maxsize=1)
def _lots() -> Floats:
    """Upper ends of the shares of orders with 1, 2, ... lots: many small ones, few large ones."""
    weights = np.arange(1, _MOST_LOTS + 1, dtype=np.float64) ** -_LOTS_EXPONENT
    sums = np.cumsum(weights)
    ends: Floats = sums / sums[-1]
    return ends
