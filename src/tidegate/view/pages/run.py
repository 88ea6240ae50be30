"""A run as one HTML file: what came in, what it did to the latency, what was decided and why.

The file needs no server and no network. What the charts show is also there as text: the summary
above them, every decision with its reason below. Lines differ in dash and markers in shape, so
that nothing depends on telling colours apart (they are Okabe and Ito's).
"""

from collections.abc import Mapping, Sequence
from html import escape
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from tidegate.control.record import Record
from tidegate.errors import AskedWrongly
from tidegate.view.changes import Change, again, changes_of, outcome_of, words_of
from tidegate.view.pages.chart import calm
from tidegate.view.pages.columns import Column, Columns, columns_of
from tidegate.view.summary import Summary, summarise

BLUE, RED, GREEN, PURPLE, ORANGE, SKY, GREY = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#555555",
)
_LINES = (
    (BLUE, "solid"),
    (ORANGE, "dashed"),
    (GREEN, "dotdash"),
    (PURPLE, "dotted"),
    (SKY, "dashdot"),
    (RED, "solid"),
)
"""One for each operator of a chart; there is no telling more of them apart."""

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff;
  max-width: 1180px; margin: 0 auto; padding: 1.2rem; }
h1 { font-size: 1.5rem; margin: 0 0 .6rem; }
h2 { font-size: 1.1rem; margin: 1.4rem 0 .4rem; }
dl.figures { display: grid; grid-template-columns: repeat(auto-fill, minmax(12.5rem, 1fr));
  gap: .5rem 1.5rem; margin: 0 0 1rem; }
dl.figures div { display: flex; flex-direction: column; justify-content: flex-end; }
dl.figures dt { color: #555; font-size: .85rem; }
dl.figures dd { margin: 0; font-size: 1.15rem; font-variant-numeric: tabular-nums; }
figure { margin: 0; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .3rem .8rem .3rem 0;
  border-bottom: 1px solid #ddd; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums;
  white-space: nowrap; }
"""
TEMPLATE = """
{% block postamble %}<style>{{ style }}</style>{% endblock %}
{% block contents %}<main>{{ above }}
<figure role="group" aria-label="{{ label }}">{{ super() }}</figure>
{{ below }}</main>{% endblock %}
"""
_DECISION_TIP = """
<div style="max-width: 26rem; white-space: normal;">
<b>@time{0,0.[0]} @unit: @what</b> (@outcome)<br>@reason<br>@expected</div>
"""


def write_picture(
    records: Sequence[Record],
    path: str | Path,
    title: str,
    *,
    summary: Summary | None = None,
) -> None:
    """Write the picture of these records, oldest first.

    `summary` is what the run is said to have come to; without it, that of the records as they are.
    """
    path = Path(path)
    if not records:
        raise AskedWrongly("There is no record to draw: give those of at least one tick.")
    if not path.parent.is_dir():
        raise AskedWrongly(
            f"The directory {path.parent} of the picture does not exist: create it or name another."
        )
    # Imported here because bokeh takes a second to import, and most commands draw nothing.
    from bokeh.embed import file_html
    from bokeh.layouts import column
    from bokeh.resources import INLINE

    run = columns_of(records)
    told = _told(records)
    charts = _Charts(run, told)
    page = file_html(
        column(*charts.all(), sizing_mode="stretch_width"),
        INLINE,
        escape(title),
        template=TEMPLATE,
        template_variables={
            "style": STYLE,
            "label": "Charts over time: load, latency against the target, decisions, cores, tasks, "
            "imbalance and backlog. The decisions are listed below as text.",
            "above": _above(title, summary or summarise(records)),
            "below": _decisions(run, told) + _notes(run, records),
        },
    )
    path.write_text(page, encoding="utf-8")


def _told(records: Sequence[Record]) -> list[Record]:
    """Those that wanted a change; one that went on wanting the same in vain is told once."""
    told: list[Record] = []
    before = None
    for record in records:
        if changes_of(record):
            if not again(before, record):
                told.append(record)
            before = record
    return told


class _Charts:
    """Charts above each other that share their axis of time."""

    def __init__(self, run: Columns, told: Sequence[Record]) -> None:
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
        """Those that have something to show, from top to bottom."""
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
        # Only the ticks in which a batch ended: a line through the others would be all gaps.
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
            **self._common(),
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
                "expected": [_expected(record) for record, _ in marks],
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

    def _common(self) -> dict[str, Any]:
        return {
            "x_range": self._range,
            "sizing_mode": "stretch_width",
            "min_border_left": 84,
            "min_border_right": 16,
            "tools": "xpan,xwheel_zoom,xbox_zoom,reset",
            "active_scroll": None,
            "toolbar_location": "right",
        }

    def _chart(self, title: str, unit: str, height: int) -> Any:
        from bokeh.models import DataRange1d
        from bokeh.models.annotations import Legend
        from bokeh.plotting import figure

        values = DataRange1d(start=0, range_padding=0.12)
        chart = figure(title=title, height=height, y_range=values, **self._common())
        chart.yaxis.axis_label = unit
        legend = Legend(orientation="horizontal", location="top_right", click_policy="hide")
        legend.update(
            padding=0, margin=0, border_line_color=None, label_text_font_size="12px", spacing=14
        )
        chart.add_layout(legend, "above")
        return chart

    def _line(self, chart: Any, column: str, label: str, color: str, **style: Any) -> Any:
        drawn = {"source": self._source, "line_width": 2.0} | style
        return chart.line("time", column, color=color, legend_label=label, **drawn)

    def _step(self, chart: Any, column: str, label: str, color: str, **style: Any) -> Any:
        # A tick's number held during the tick, which ends at its time.
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


def _marker(record: Record, change: Change) -> str:
    if not record.acted:
        return "x"
    if change.step == 0:
        return "diamond"
    return "triangle" if change.step > 0 else "inverted_triangle"


def _color(record: Record, change: Change) -> str:
    if not record.acted:
        return GREY
    if change.step == 0:
        return PURPLE
    return RED if change.step > 0 else GREEN


def _expected(record: Record) -> str:
    expected_s = record.decision.expected_latency_s
    return "" if expected_s is None else f"expected mean latency {expected_s:.2f} s"


def _above(title: str, summary: Summary) -> str:
    figures = "".join(
        f"<div><dt>{escape(label)}</dt><dd>{escape(value)}</dd></div>"
        for label, value in summary.lines()
    )
    return f'<h1>{escape(title)}</h1><dl class="figures">{figures}</dl>'


def _decisions(run: Columns, told: Sequence[Record]) -> str:
    if not told:
        return "<h2>Decisions</h2><p>Nothing was to change.</p>"
    rows = "".join(
        f'<tr><td class="number">{run.since_start(record.measurement.at_s):,.1f}</td>'
        f"<td>{escape(words_of(record))}</td><td>{escape(outcome_of(record))}</td>"
        f"<td>{escape('; '.join(filter(None, [record.decision.reason, _expected(record)])))}</td>"
        "</tr>"
        for record in told
    )
    return (
        '<h2 id="decisions">Decisions</h2><div class="scroll" tabindex="0" role="region" '
        'aria-labelledby="decisions"><table><thead><tr>'
        f'<th class="number" scope="col">{run.unit}</th><th scope="col">what</th>'
        '<th scope="col">outcome</th><th scope="col">why</th>'
        f"</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _notes(run: Columns, records: Sequence[Record]) -> str:
    first: dict[str, float] = {}
    for record in records:
        for note in record.decision.notes:
            first.setdefault(note, run.since_start(record.measurement.at_s))
    if not first:
        return ""
    items = "".join(f"<li>{at:,.1f} {run.unit}: {escape(note)}</li>" for note, at in first.items())
    return f"<h2>Notes, when first said</h2><ul>{items}</ul>"
