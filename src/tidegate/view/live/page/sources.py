"""The columns of one browser session, which grow tick by tick and are bounded."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tidegate.view.live.page.feed import TICKS, Feed, SeenTick
from tidegate.view.live.page.ticks import NAMES, columns_of_ticks

FOLLOWED_MS = 10 * 60 * 1000.0
"""How much of a running pipeline charts show; one can pan back to what was before."""


class SessionSources:
    """Bokeh's data sources of one session, and the time axis that its charts share."""

    def __init__(self, feed: Feed) -> None:
        from bokeh.models import ColumnDataSource, DataRange1d

        self.feed = feed
        self.ticks = ColumnDataSource({name: np.empty(0) for name in NAMES})
        self.latencies = ColumnDataSource({name: np.empty(0) for name in NAMES})
        """Only ticks in which a batch ended; the others have no latency and would leave gaps."""
        self.time = DataRange1d(
            follow="end", follow_interval=FOLLOWED_MS, range_padding=0.0, only_visible=False
        )
        self.operators: dict[str, Any] = {}
        """A data source for each operator."""
        self.hottest: dict[str, Any] = {}
        """The same, with only those ticks in which its shards got rows."""
        self._seen = 0

    def update(self) -> bool:
        """Take the ticks that are new. Returns whether there are any."""
        fresh = self.feed.since(self._seen)
        if not fresh:
            return False
        self._seen = fresh[-1].number + 1
        columns: dict[str, Any] = {**columns_of_ticks([one.tick for one in fresh])}
        self.ticks.stream(columns, rollover=TICKS)
        ended = ~np.isnan(columns["mean"])
        if ended.any():
            self.latencies.stream(
                {name: column[ended] for name, column in columns.items()}, rollover=TICKS
            )
        _stream_by_operator(self.operators, fresh)
        _stream_by_operator(self.hottest, fresh, only_hot=True)
        return True


def _stream_by_operator(
    sources: dict[str, Any], fresh: Sequence[SeenTick], *, only_hot: bool = False
) -> None:
    from bokeh.models import ColumnDataSource

    for name, rows in _by_operator(fresh, only_hot).items():
        if name not in sources:
            sources[name] = ColumnDataSource({column: [] for column in rows})
        sources[name].stream(rows, rollover=TICKS)


def _by_operator(fresh: Sequence[SeenTick], only_hot: bool) -> Mapping[str, dict[str, list[float]]]:
    found: dict[str, dict[str, list[float]]] = {}
    for one in fresh:
        for name, operator in one.operators.items():
            if only_hot and math.isnan(operator.hottest):
                continue
            rows = found.setdefault(name, {"time": [], "tasks": [], "imbalance": [], "hottest": []})
            rows["time"].append(one.tick.time)
            rows["tasks"].append(operator.tasks)
            rows["imbalance"].append(operator.imbalance)
            rows["hottest"].append(operator.hottest)
    return found
