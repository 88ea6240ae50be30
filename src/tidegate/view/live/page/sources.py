"""The columns of one browser session, which grow tick by tick and are bounded."""

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
        for name, rows in _by_operator(fresh).items():
            if name not in self.operators:
                self.operators[name] = _empty()
            self.operators[name].stream(rows, rollover=TICKS)
        return True


def _empty() -> Any:
    from bokeh.models import ColumnDataSource

    return ColumnDataSource({"time": [], "tasks": [], "imbalance": [], "hottest": []})


def _by_operator(fresh: Sequence[SeenTick]) -> Mapping[str, dict[str, list[float]]]:
    found: dict[str, dict[str, list[float]]] = {}
    for one in fresh:
        for name, operator in one.operators.items():
            rows = found.setdefault(name, {"time": [], "tasks": [], "imbalance": [], "hottest": []})
            rows["time"].append(one.tick.time)
            rows["tasks"].append(operator.tasks)
            rows["imbalance"].append(operator.imbalance)
            rows["hottest"].append(operator.hottest)
    return found
