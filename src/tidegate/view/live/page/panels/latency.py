"""Latency against its target: the mean and percentiles of the rows that batches completed."""

from typing import Any

from tidegate.view.live.page.panel import PagePanel, finished, line, live_chart, steps
from tidegate.view.pages.style import BLUE, ORANGE, PURPLE, RED, SKY


class LatencyPanel(PagePanel):
    """Mean, median, 95th and 99th percentile, and the target."""

    name = "latency"
    title = "Latency"
    about = "Seconds from a row's arrival until it is done. Below the dashed line is on target."

    def drawn(self) -> Any:
        """The chart."""
        source = self.sources.latencies
        chart = live_chart(self.sources, "seconds", 230)
        line(chart, source, "p99", "p99", PURPLE, line_dash="dotted", line_width=1.4)
        line(chart, source, "p95", "p95", ORANGE, line_dash="dotdash")
        line(chart, source, "p50", "p50", SKY, line_width=1.4)
        mean = line(chart, source, "mean", "mean", BLUE, line_width=2.6)
        steps(chart, self.sources.ticks, "target", "target", RED, line_dash="dashed")
        tips = {
            "mean": "@mean{0.00} s",
            "p50, p95, p99": "@p50{0.00}, @p95{0.00}, @p99{0.00} s",
            "target": "@target{0.00} s",
        }
        return finished(chart, mean, tips)
