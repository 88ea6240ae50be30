"""What the eleven analytics must answer: plain loops over the transactions, one at a time."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from tidegate.apps.sse.replay import Trade

Windows = dict[tuple[int, int], float]
"""Values by stock and the end of the window, in seconds."""
Events = dict[tuple[int, int], float]
"""Values by stock and trade."""


@dataclass(slots=True)
class ExpectedAnswers:
    """The right answers."""

    average: Windows = field(default_factory=dict)
    volume: Windows = field(default_factory=dict)
    volatility: Windows = field(default_factory=dict)
    vwap: Events = field(default_factory=dict)
    """After every trade."""
    index: dict[int, float] = field(default_factory=dict)
    """After every trade."""
    ranking: dict[int, list[tuple[int, float]]] = field(default_factory=dict)
    """After those trades that were asked for."""
    events: dict[str, Events] = field(default_factory=dict)


def expected(
    trades: Iterable[Trade],
    base: list[int],
    issued: list[int],
    ranked_after: Collection[int] = frozenset(),
) -> ExpectedAnswers:
    """The right answers for these trades, which are in their order."""
    found = ExpectedAnswers(
        events={name: {} for name in ("alarm", "jump", "spike", "large", "halt")}
    )
    by_stock: defaultdict[int, list[Trade]] = defaultdict(list)
    last = list(base)
    worth = sum(price * weight for price, weight in zip(base, issued, strict=True))
    now = worth
    turnover: defaultdict[int, int] = defaultdict(int)
    for one in trades:
        by_stock[one.stock].append(one)
        now += (one.price - last[one.stock]) * issued[one.stock]
        last[one.stock] = one.price
        found.index[one.trade] = 1000.0 * now / worth
        turnover[one.stock] += one.cash
        if one.trade in ranked_after:
            top = sorted(turnover.items(), key=lambda pair: (-pair[1], pair[0]))[:10]
            found.ranking[one.trade] = [(stock, float(cash)) for stock, cash in top]
    for stock, its in by_stock.items():
        _statistics(found, stock, its)
        _events(found.events, its, base[stock])
    return found


def _statistics(found: ExpectedAnswers, stock: int, trades: list[Trade]) -> None:
    """The statistics of one stock."""
    for end, prices in _windows(trades, every=2, size=10).items():
        found.average[stock, end] = sum(one.price for one in prices) / len(prices)
    for end, its in _windows(trades, every=5, size=5).items():
        found.volume[stock, end] = float(sum(one.shares for one in its))
    for end, its in _windows(trades, every=10, size=10).items():
        total = sum(one.price for one in its)
        squares = sum(one.price * one.price for one in its)
        found.volatility[stock, end] = math.sqrt(len(its) * squares - total * total) / len(its)
    shares = cash = 0
    for one in trades:
        shares, cash = shares + one.shares, cash + one.cash
        found.vwap[stock, one.trade] = cash / shares


def _windows(trades: list[Trade], every: int, size: int) -> dict[int, list[Trade]]:
    """The trades of each window, by its end in seconds."""
    found: defaultdict[int, list[Trade]] = defaultdict(list)
    for one in trades:
        second = one.at_us // 1_000_000
        start = second - second % every
        while start + size > second:
            found[start + size].append(one)
            start -= every
    return found


def _events(found: dict[str, Events], trades: list[Trade], base: int) -> None:
    """The events of one stock."""
    side = 0
    reference = trades[0].price
    for before, one in zip([None, *trades], trades, strict=False):
        where = (one.stock, one.trade)
        now = (one.price * 100 > base * 103) - (one.price * 100 < base * 97)
        if now and now != side:
            found["alarm"][where] = float(now * one.price)
        side = now
        if before is not None and abs(one.price - before.price) / before.price >= 0.01:
            found["jump"][where] = float(one.price - before.price)
        if abs(one.price - reference) / reference >= 0.05:
            found["halt"][where] = float(one.price)
            reference = one.price
    cash = 0
    for earlier, one in enumerate(trades):
        if earlier >= 20 and one.cash * earlier >= 10 * cash:
            found["large"][one.stock, one.trade] = float(one.cash)
        cash += one.cash
    past = 0
    for seconds, its in enumerate(_windows(trades, every=1, size=1).values()):
        shares = 0
        for one in its:
            shares += one.shares
            if seconds >= 5 and shares * seconds > 5 * past:
                found["spike"][one.stock, one.trade] = float(shares)
                break
        past += sum(one.shares for one in its)
