"""Cores that were wanted, granted and busy."""

from typing import Any

from tidegate.view.live.page.panel import PagePanel, finished, line, live_chart, steps
from tidegate.view.pages.style import BLUE, GREEN, RED


class CoresPanel(PagePanel):
    """Cores over time."""

    name = "cores"
    title = "Cores"
    about = "What Tidegate asked for, what the cluster gave, and how much of it was busy."

    def drawn(self) -> Any:
        """The chart."""
        source = self.sources.ticks
        chart = live_chart(self.sources, "cores", 260)
        granted = steps(chart, source, "granted", "granted", BLUE, line_width=2.6)
        steps(chart, source, "wanted", "wanted", RED, line_dash="dashed", line_width=1.6)
        line(chart, source, "busy", "busy", GREEN, line_width=1.6)
        tips = {"wanted": "@wanted", "granted": "@granted", "busy": "@busy{0.0}"}
        return finished(chart, granted, tips)
