"""The backlog: rows that have arrived and are not done, and how many seconds of load that is.

Sources such as Kafka also tell how many rows batches left in them, which is the lag.
"""

from typing import Any

from tidegate.view.live.page.panel import PagePanel, finished, line, live_chart, stacked
from tidegate.view.pages.style import ORANGE, PURPLE


class BacklogPanel(PagePanel):
    """Backlog in rows, lag in seconds."""

    name = "backlog"
    title = "Backlog and lag"
    about = "Rows that wait or are being processed, and how many seconds of arrivals they are."

    def drawn(self) -> Any:
        """Two charts, because rows and seconds have no common scale."""
        source = self.sources.ticks
        rows = self._rows = live_chart(self.sources, "rows", 130)
        self._lag_drawn = False
        rows.varea(x="time", y1=0, y2="backlog", source=source, fill_color=PURPLE, fill_alpha=0.15)
        backlog = line(rows, source, "backlog", "rows not done", PURPLE)
        seconds = live_chart(self.sources, "seconds", 130)
        behind = line(seconds, source, "behind", "seconds behind", ORANGE)
        tips = {"backlog": "@backlog{0,0} rows", "behind": "@behind{0.0} s"}
        return stacked(finished(rows, backlog, tips, "0,0"), finished(seconds, behind, tips))

    def update(self) -> None:
        """The lag, from the first tick on in which a source tells it."""
        record = self.feed.record
        if self._lag_drawn or record is None or record.measurement.lag_rows is None:
            return
        self._lag_drawn = True
        ticks = self.sources.ticks
        line(self._rows, ticks, "left", "left in the source", ORANGE, line_dash="dashed")
