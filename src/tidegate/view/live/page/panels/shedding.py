"""What is shed: rows per second, and how many of each class so far."""

from typing import Any

from tidegate.view.live.page.panel import (
    PagePanel,
    finished,
    live_chart,
    part,
    show,
    stacked,
    steps,
)
from tidegate.view.live.totals import UNCLASSED
from tidegate.view.pages.style import RED
from tidegate.view.pages.table import html_table


class SheddingPanel(PagePanel):
    """Rows dropped, and the share of the rows that is kept."""

    name = "shedding"
    title = "Shedding"
    about = "Rows that are dropped when cores cannot come in time; usually none."

    def drawn(self) -> Any:
        """A sentence or a table, and a chart."""
        self._text = part()
        source = self.sources.ticks
        shed = live_chart(self.sources, "rows/s", 200)
        dropped = steps(shed, source, "shed", "shed", RED)
        shed.y_range.min_interval = 1.0
        tips = {"shed": "@shed{0,0} rows/s", "kept": "@kept{0.0} % of the next rows"}
        return stacked(self._text, finished(shed, dropped, tips))

    def update(self) -> None:
        """The counts."""
        counts = {name: rows for name, rows in self.feed.totals.shed.items() if rows}
        if not counts:
            show(self._text, "<p>No row has been shed.</p>")
            return
        rows = [
            ("without a class" if name == UNCLASSED else name, f"{number:,d}")
            for name, number in sorted(counts.items(), key=lambda pair: -pair[1])
        ]
        show(self._text, html_table("shed", "Rows shed so far", ("class", "rows shed"), rows, {1}))
