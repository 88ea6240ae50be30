"""What the run costs: core-seconds, beside a static allocation for the peak and an oracle."""

from typing import Any

from tidegate.units import format_share
from tidegate.view.live.page.feed import OracleUntil
from tidegate.view.live.page.panel import (
    PagePanel,
    finished,
    line,
    live_chart,
    part,
    show,
    stacked,
)
from tidegate.view.live.page.times import clock_time
from tidegate.view.pages.style import BLUE, GREEN, RED


class CostPanel(PagePanel):
    """Core-seconds used so far, and what others would have used."""

    name = "cost"
    title = "Cost"
    about = "Core-seconds used so far, beside those of the most cores if they were always there."
    alert = True  # an oracle takes long, so it may come after the last record

    def drawn(self) -> Any:
        """A sentence and a chart."""
        from bokeh.models import ColumnDataSource

        self._text = part()
        self._chart = chart = live_chart(self.sources, "core-seconds", 200)
        self._shown: tuple[int, OracleUntil | None] | None = None
        self._static = ColumnDataSource({"time": [], "static": []})
        self._oracle = ColumnDataSource({"time": [], "oracle": []})
        line(chart, self._static, "static", "static peak", RED, line_dash="dashed")
        used = line(chart, self.sources.ticks, "used", "used", BLUE, line_width=2.6)
        return stacked(self._text, finished(chart, used, {"used": "@used{0,0}"}, "0,0"))

    def update(self) -> None:
        """The sentence, and the straight lines of the others."""
        record, totals, least = self.feed.record, self.feed.totals, self.feed.oracle
        if record is None or totals.cost is None or self._shown == (self.feed.count, least):
            return
        self._shown = (self.feed.count, least)
        static = totals.static_core_seconds
        end_s = record.measurement.at_s
        times = [1000.0 * (end_s - totals.seconds), 1000.0 * end_s]
        self._static.data = {"time": times, "static": [0.0, static]}
        words = (
            f"{totals.core_seconds:,.0f} core-seconds: {totals.cost:.0%} of the {static:,.0f} that"
            f" {totals.most_cores} static cores, enough for the peak, would have used."
        )
        if least is not None:
            if not self._oracle.data["time"]:
                line(self._chart, self._oracle, "oracle", "oracle", GREEN, line_dash="dotted")
            self._oracle.data = {
                "time": [times[0], 1000.0 * least.at_s],
                "oracle": [0.0, least.core_seconds],
            }
            words += f" {oracle_words(least, up_to_date=least.at_s >= end_s)}"
        show(self._text, f"<p>{words}</p>")


def oracle_words(least: OracleUntil, *, up_to_date: bool) -> str:
    """The oracle in a sentence."""
    until = "" if up_to_date else f"Until {clock_time(least.at_s)} UTC: with"
    about = "about " if least.estimated else ""
    held = "" if least.within > 0.99 else f" {format_share(least.within)} of the time"
    times = least.used / least.core_seconds
    return (
        f"{until or 'With'} the future known, {about}{least.core_seconds:,.0f} would have held the"
        f" target{held} (the oracle); {times:.2f} times as many were used."
    )
