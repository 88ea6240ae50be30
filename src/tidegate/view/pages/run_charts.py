"""The charts of a run: load, latency, decisions, cores, tasks, imbalance and backlog over time."""

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np

from tidegate.control.record import Record
from tidegate.view.changes import WantedChange, changes_of, expected_of, outcome_of, words_of
from tidegate.view.pages.chart import calm, chart_over_time, over_time, with_legend
from tidegate.view.pages.columns import Column, RunColumns
from tidegate.view.pages.style import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY

_LINES = (
    (BLUE, "solid"),
    (ORANGE, "dashed"),
    (GREEN, "dotdash"),
    (PURPLE, "dotted"),
    (SKY, "dashdot"),
    (RED, "solid"),
)
"""One for each operator of a chart; more could not be told apart."""

_DECISION_TIP = """
<div style="max-width: 26rem; white-space: normal;">
<b>@time{0,0.[0]} @unit: @what</b> (@outcome)<br>@reason<br>@expected</div>
"""


class RunCharts:
    """The charts of a run, one below the other, with a common time axis."""

    def __init__(self, run: RunColumns, told: Sequence[Record]) -> None:
        from bokeh.models import ColumnDataSource, Range1d

        self._run = run
        self._told = told
        # An operator looks the same in every chart.
        self._lines = dict(zip(run.tasks, cycle(_LINES), strict=False))
        end = float(run.time[-1])
        self._range = Range1d(start=0, end=end, bounds=(0, end))
        self._source = ColumnDataSource(
            {
                "time": run.time,
                "load": run.load,
                "processed": run.processed,
                "backlog": run.backlog,
                "asked": run.cores_asked,
                "granted": run.cores_granted,
                "busy": run.cores_busy,
                "target": run.target_s,
            }
            | {f"tasks_{place}": one for place, one in enumerate(run.tasks.values())}
            | {f"imbalance_{place}": one for place, one in enumerate(run.imbalance.values())}
        )

    def all(self) -> list[Any]:
        """The charts that have something to show, from top to bottom."""
        charts = [self._load(), self._latency()]
        if self._told:
            charts.append(self._strip())
        charts.append(self._cores())
        if self._run.tasks:
            charts.append(self._per_operator("Tasks", "tasks", self._run.tasks))
        if self._run.imbalance:
            title = "Imbalance: fullest task over the mean"
            charts.append(self._per_operator(title, "imbalance", self._run.imbalance, start=1))
        charts.append(self._backlog())
        charts[-1].xaxis.axis_label = f"{self._run.unit} since the start"
        charts[-1].height += 22
        return charts

    def _load(self) -> Any:
        chart = self._chart("Load", "rows/s", 170)
        chart.varea("time", 0, "load", source=self._source, fill_color=BLUE, fill_alpha=0.12)
        line = self._line(chart, "load", "arrived", BLUE)
        self._line(chart, "processed", "completed", ORANGE, line_dash="dashed")
        tips = {"arrived": "@load{0,0} rows/s", "completed": "@processed{0,0} rows/s"}
        return self._finish(chart, line, tips)

    def _latency(self) -> Any:
        from bokeh.models import ColumnDataSource
        from bokeh.models.annotations import BoxAnnotation

        chart = self._chart("Latency", "seconds", 230)
        seen = ~np.isnan(self._run.mean_s)
        # Use only ticks in which a batch ended; the others have no latency and would leave gaps.
        source = ColumnDataSource(
            {
                "time": self._run.time[seen],
                "mean": self._run.mean_s[seen],
                "p95": self._run.p95_s[seen],
                "predicted": self._run.predicted_s[seen],
                "target": self._run.target_s[seen],
            }
        )
        self._line(chart, "p95", "95th percentile", ORANGE, source=source, line_dash="dotdash")
        mean = self._line(chart, "mean", "mean", BLUE, source=source)
        tips = {"mean": "@mean{0.00} s", "95th percentile": "@p95{0.00} s"}
        if not np.isnan(self._run.predicted_s).all():
            self._line(
                chart, "predicted", "mean, predicted", GREY, source=source, line_dash="dotted"
            )
            tips["predicted"] = "@predicted{0.00} s"
        targets = np.unique(self._run.target_s[~np.isnan(self._run.target_s)])
        if len(targets):
            label = f"target {targets[0]:g} s" if len(targets) == 1 else "target"
            self._step(chart, "target", label, RED, line_dash="dashed")
            tips["target"] = "@target{0.00} s"
        if len(targets) == 1:
            chart.add_layout(
                BoxAnnotation(bottom=float(targets[0]), fill_color=RED, fill_alpha=0.06)
            )
        return self._finish(chart, mean, tips)

    def _strip(self) -> Any:
        """A row of markers for each kind of change."""
        from bokeh.models import ColumnDataSource, FactorRange, HoverTool
        from bokeh.plotting import figure

        marks = [(record, change) for record in self._told for change in changes_of(record)]
        kinds = list(dict.fromkeys(change.kind for _, change in marks))
        chart = figure(
            title="Decisions: ▲ more, ▼ less, ◆ moved or shed, × not acted on",
            y_range=FactorRange(factors=list(reversed(kinds))),
            height=62 + 26 * len(kinds),
            **over_time(self._range),
        )
        source = ColumnDataSource(
            {
                "time": [self._run.since_start(one.measurement.at_s) for one, _ in marks],
                "kind": [change.kind for _, change in marks],
                "marker": [_marker(record, change) for record, change in marks],
                "color": [_color(record, change) for record, change in marks],
                "unit": [self._run.unit] * len(marks),
                "what": [words_of(record) for record, _ in marks],
                "outcome": [outcome_of(record) for record, _ in marks],
                "reason": [record.decision.reason for record, _ in marks],
                "expected": [expected_of(record) for record, _ in marks],
            }
        )
        dots = chart.scatter(
            "time", "kind", marker="marker", color="color", size=11, source=source, alpha=0.85
        )
        chart.add_tools(HoverTool(renderers=[dots], tooltips=_DECISION_TIP))
        chart.ygrid.grid_line_color = None
        return self._finish(chart, None, {})

    def _cores(self) -> Any:
        chart = self._chart("Cores", "cores", 180)
        granted = self._step(chart, "granted", "granted", BLUE)
        self._step(chart, "asked", "asked for", RED, line_dash="dashed", line_width=1.4)
        tips = {"granted": "@granted", "asked for": "@asked"}
        if not np.isnan(self._run.cores_busy).all():
            self._line(chart, "busy", "busy", GREEN, line_width=1.4)
            tips["busy"] = "@busy{0.0}"
        return self._finish(chart, granted, tips)

    def _per_operator(
        self, title: str, column: str, values: Mapping[str, Column], start: float = 0.0
    ) -> Any:
        shown = list(values)[: len(_LINES)]
        if len(shown) < len(values):
            title += f" ({len(shown)} of {len(values)} operators)"
        chart = self._chart(title, column, 160)
        chart.y_range.start = start
        tips, first = {}, None
        for place, name in enumerate(shown):
            key = f"{column}_{place}"
            color, dash = self._lines[name]
            drawn = self._step(chart, key, name, color, line_dash=dash)
            first = first or drawn
            tips[name] = f"@{key}{{0.[00]}}"
        return self._finish(chart, first, tips)

    def _backlog(self) -> Any:
        chart = self._chart("Backlog", "rows", 150)
        chart.varea("time", 0, "backlog", source=self._source, fill_color=PURPLE, fill_alpha=0.15)
        line = self._line(chart, "backlog", "waiting", PURPLE)
        return self._finish(chart, line, {"waiting": "@backlog{0,0} rows"})

    def _chart(self, title: str, unit: str, height: int) -> Any:
        return with_legend(chart_over_time(title, unit, height, self._range))

    def _line(self, chart: Any, column: str, label: str, color: str, **style: Any) -> Any:
        drawn = {"source": self._source, "line_width": 2.0} | style
        return chart.line("time", column, color=color, legend_label=label, **drawn)

    def _step(self, chart: Any, column: str, label: str, color: str, **style: Any) -> Any:
        # A tick's value applies to the interval that ends at its time.
        drawn = {"source": self._source, "line_width": 2.0, "mode": "before"} | style
        return chart.step("time", column, color=color, legend_label=label, **drawn)

    def _finish(self, chart: Any, hovered: Any, tips: Mapping[str, str]) -> Any:
        from bokeh.models import HoverTool, NumeralTickFormatter

        acted = [
            self._run.since_start(record.measurement.at_s)
            for record in self._told
            if record.acted and any(one.kind in ("cores", "tasks") for one in changes_of(record))
        ]
        if acted:
            chart.vspan(
                x=acted, line_color=GREY, line_alpha=0.35, line_dash="dotted", level="underlay"
            )
        if hovered is not None:
            when = ("at", f"@time{{0,0.[0]}} {self._run.unit}")
            hover = HoverTool(renderers=[hovered], tooltips=[when, *tips.items()], mode="vline")
            chart.add_tools(hover)
            chart.yaxis.formatter = NumeralTickFormatter(format="0,0.[00]")
            chart.yaxis.ticker.desired_num_ticks = 4
        return calm(chart)


def _marker(record: Record, change: WantedChange) -> str:
    if not record.acted:
        return "x"
    if change.step == 0:
        return "diamond"
    return "triangle" if change.step > 0 else "inverted_triangle"


def _color(record: Record, change: WantedChange) -> str:
    if not record.acted:
        return GREY
    if change.step == 0:
        return PURPLE
    return RED if change.step > 0 else GREEN
