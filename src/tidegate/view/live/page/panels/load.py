"""The load, and the forecast at each moment, with the margin that cores are planned for."""

from typing import Any

from tidegate.view.live.page.panel import PagePanel, finished, line, live_chart
from tidegate.view.pages.style import BLUE, GREEN, ORANGE


class LoadPanel(PagePanel):
    """Rows that arrived and were completed; the forecast and its band."""

    name = "load"
    title = "Load"
    about = "Rows per second. The band is what was expected next, and planned for."

    def drawn(self) -> Any:
        """The chart. A forecast is drawn at the time at which it was made."""
        source = self.sources.ticks
        chart = live_chart(self.sources, "rows/s", 230)
        chart.varea(
            x="time",
            y1="forecast",
            y2="planned",
            source=source,
            fill_color=GREEN,
            fill_alpha=0.22,
            legend_label="forecast",
        )
        line(chart, source, "forecast", "forecast", GREEN, line_width=1.4)
        line(chart, source, "completed", "completed", ORANGE, line_width=1.2, line_alpha=0.7)
        arrived = line(chart, source, "load", "arrived", BLUE, line_width=2.6)
        tips = {
            "arrived": "@load{0,0} rows/s",
            "completed": "@completed{0,0} rows/s",
            "forecast then": "@forecast{0,0} rows/s, planned for @planned{0,0}",
        }
        return finished(chart, arrived, tips, "0,0")
