"""The stocks of the exchange: their prices at the start, and how many shares of each there are.

The paper's orders of the Shanghai Stock Exchange are not public, so the market is made up. All of
it is a pure function of a stock's number and the seed, and the same in every process.
"""

import functools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tidegate.errors import AskedWrongly
from tidegate.workload.counter import words
from tidegate.workload.profile import Profile

Ints = npt.NDArray[np.int64]

BUY, SELL = 0, 1
"""The sides of a book."""
STOCKS = 300
MOST_STOCKS = 100_000
_LOWEST_PRICE, _HIGHEST_PRICE = 1_000, 10_000
_MOST_ISSUED = 20
_BASE, _ISSUED = 21, 22
"""The streams of random numbers of this file; the orders have others."""


@dataclass(frozen=True, slots=True)
class Market:
    """What the rows of a run are made from."""

    profile: Profile
    """When orders arrive. The popularity and the price of a stock change with time."""
    seed: int = 1
    stocks: int = STOCKS

    def __post_init__(self) -> None:
        if not 1 <= self.stocks <= MOST_STOCKS:
            raise AskedWrongly(f"{self.stocks} stocks are not possible; give 1 to {MOST_STOCKS:,}")


@functools.lru_cache(maxsize=4)
def base_prices(stocks: int, seed: int) -> Ints:
    """The price of each stock at the start, in ticks of a hundredth."""
    span = _HIGHEST_PRICE - _LOWEST_PRICE
    return _LOWEST_PRICE + _drawn(stocks, seed, _BASE, span)


@functools.lru_cache(maxsize=4)
def issued(stocks: int, seed: int) -> Ints:
    """Millions of shares that each stock's company has issued: its weight in the index."""
    return 1 + _drawn(stocks, seed, _ISSUED, _MOST_ISSUED)


def _drawn(stocks: int, seed: int, stream: int, span: int) -> Ints:
    bits = words(np.arange(stocks, dtype=np.int64), seed, stream)
    drawn: Ints = (bits % np.uint64(span)).astype(np.int64)
    drawn.setflags(write=False)
    return drawn
