"""The four statistics of single stocks; `boards.py` has the two of the whole market.

They are made of the ready-made functions. Prices and shares are whole numbers, and their sums stay
below 2^53, so the values are exact in any order of the trades.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.apps.sse.answers import Answering, column
from tidegate.pipelines.functions import aggregate, count, latest, mean, sum, window

AVERAGE_EVERY_S, AVERAGE_S = 2, 10
VOLUME_S = 5
VOLATILITY_S = 10


def average() -> Answering:
    """The moving average of a stock's price: the mean over ten seconds, every two seconds."""
    of = mean("price", as_="value")
    every, size = f"{AVERAGE_EVERY_S} seconds", f"{AVERAGE_S} seconds"
    moving = window(of, every=every, size=size, event_time="at")
    return Answering("average", moving, column("value"), at="window_end")


def vwap() -> Answering:
    """The mean price of a stock since the start, weighted by shares."""
    of = aggregate(value=mean("price", weight="shares"), trade=latest("trade", by="trade"))
    return Answering("vwap", of, column("value"), trade="trade")


def volume() -> Answering:
    """The traded shares of a stock, every five seconds."""
    of = window(sum("shares", as_="value"), every=f"{VOLUME_S} seconds", event_time="at")
    return Answering("volume", of, column("value"), at="window_end")


def volatility() -> Answering:
    """The standard deviation of a stock's price, every ten seconds."""
    of = aggregate(trades=count(), total=sum("price"), squares=sum("price", weight="price"))
    every = window(of, every=f"{VOLATILITY_S} seconds", event_time="at")
    return Answering("volatility", every, deviation, at="window_end")


def deviation(results: pa.Table) -> npt.NDArray[np.float64]:
    """The standard deviation from counts, sums and sums of squares.

    The difference of the two products is exact in whole numbers; that of two means would not be.
    """
    trades, total, squares = (
        results[name].to_numpy().astype(np.int64) for name in ("trades", "total", "squares")
    )
    found: npt.NDArray[np.float64] = np.sqrt(trades * squares - total * total) / trades
    return found
