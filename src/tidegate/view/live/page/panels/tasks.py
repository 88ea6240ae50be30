"""Operators: their tasks, and the share of the rows that the hottest shard has."""

from collections.abc import Mapping
from typing import Any

from tidegate.control.measurement import Measurement, OperatorMeasurement
from tidegate.view.live.page.panel import (
    LINES,
    PagePanel,
    finished,
    live_chart,
    part,
    show,
    stacked,
    steps,
)
from tidegate.view.live.page.ticks import hottest_shard
from tidegate.view.pages.table import html_table
from tidegate.view.sizes import readable

_LABELS = ("operator", "tasks", "rows/s", "busy cores", "imbalance", "hottest shard", "state")
_QUERIES = ("query", "cores", "rows/s", "rows not done", "last batch")


class TasksPanel(PagePanel):
    """Tasks and the hottest shard of each operator; of attached queries, their batches."""

    name = "tasks"
    title = "Operators"
    about = (
        "Parallel tasks of each operator, and how uneven its keys are: the share of its rows"
        " that one shard has."
    )

    tall = True

    def drawn(self) -> Any:
        """A table of the last tick, and two charts that get a line for each operator."""
        self._table = part()
        self._tasks = live_chart(self.sources, "tasks", 150)
        self._hottest = live_chart(self.sources, "% of rows", 150)
        self._looks: dict[str, tuple[str, str]] = {}
        self._drawn: set[tuple[str, str]] = set()
        return stacked(self._table, self._tasks, self._hottest)

    def update(self) -> None:
        """The table, and lines of operators that are new."""
        record = self.feed.record
        if record is not None:
            show(self._table, table_of(record.measurement))
            self._draw(self._tasks, "tasks", self.sources.operators)
            self._draw(self._hottest, "hottest", self.sources.hottest)

    def _draw(self, chart: Any, column: str, sources: Mapping[str, Any]) -> None:
        """A line for each operator that has none yet; it looks the same in both charts."""
        for name, source in sources.items():
            if name not in self._looks and len(self._looks) < len(LINES):
                self._looks[name] = LINES[len(self._looks)]
            if (name, column) in self._drawn or name not in self._looks:
                continue
            self._drawn.add((name, column))
            colour, dash = self._looks[name]
            label = name if len(name) <= 24 else f"{name[:23]}…"
            one = steps(chart, source, column, label, colour, line_dash=dash)
            finished(chart, one, {label: f"@{column}{{0.[0]}}"})
            # Bokeh leaves the first entry of a legend at the left edge until it lays out again.
            chart.height += 1


def table_of(tick: Measurement) -> str:
    """The operators of a tick, or its queries where it has no operators."""
    if not tick.operators:
        rows = [
            (
                one.name,
                f"{one.tasks}",
                f"{one.arrival_rate:,.0f}",
                f"{one.backlog_rows:,.0f}",
                f"{one.batches[-1].duration_s:.2f} s" if one.batches else "",
            )
            for one in tick.segments
        ]
        return (
            html_table("queries", "Queries in the last tick", _QUERIES, rows, {1, 2, 3, 4})
            if rows
            else ""
        )
    told = [_row(one, tick.interval_s) for one in tick.operators]
    return html_table("operators", "Operators in the last tick", _LABELS, told, {1, 2, 3, 4, 5, 6})


def _row(one: OperatorMeasurement, interval_s: float) -> tuple[str, ...]:
    hot = hottest_shard(one)
    keyed = bool(one.route) and not one.dealt
    return (
        one.name,
        f"{one.tasks}",
        f"{one.arrival_rate:,.0f}",
        f"{one.busy_s / interval_s:.1f}" if interval_s > 0.0 else "",
        f"{one.imbalance:.2f}",
        "" if hot is None else f"{hot[1]:.1%} (shard {hot[0]})",
        readable(one.state_bytes) if keyed or one.state_bytes else "",
    )
