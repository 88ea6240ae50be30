"""An explained run as one HTML file that needs no server and no network.

The charts show which operator was the fullest when, how full it was, the latency, and the cores
beside those that were enough. The text below them has the same, each decision with its effect, and
what was wrong in hindsight.
"""

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from tidegate.control.bottleneck import LIMITING_LOAD
from tidegate.control.record import Record
from tidegate.errors import AskedWrongly
from tidegate.view.explain import bottlenecks_of
from tidegate.view.explanation import Explanation
from tidegate.view.hindsight.hindsight import Hindsight
from tidegate.view.pages.chart import calm, chart_over_time, over_time
from tidegate.view.pages.columns import RunColumns, columns_of
from tidegate.view.pages.hindsight import cores_chart, hindsight_section
from tidegate.view.pages.networks import networks
from tidegate.view.pages.style import BLUE, GREY, ORANGE, RED, STYLE, TEMPLATE
from tidegate.view.pages.table import html_table

_LABEL = (
    "Charts over time: which operator was the fullest, its load, load against capacity, latency"
    " against the target, cores against those that were enough. The tables below have the same as"
    " text."
)


def write_page(
    records: Sequence[Record],
    told: Explanation,
    path: str | Path,
    title: str,
    left_out: Sequence[str] = (),
) -> None:
    """Write the page of these records, given oldest first, with what is said about them."""
    path = Path(path)
    if not path.parent.is_dir():
        raise AskedWrongly(
            f"The directory {path.parent} of the page does not exist: create it or name another."
        )
    # Imported here because bokeh takes a second to import, and most commands draw nothing.
    from bokeh.embed import file_html
    from bokeh.layouts import column
    from bokeh.resources import INLINE

    run = columns_of(records)
    page = file_html(
        column(*_charts(records, run, told), sizing_mode="stretch_width"),
        INLINE,
        escape(title),
        template=TEMPLATE,
        template_variables={
            "style": STYLE,
            "label": _LABEL,
            "above": _above(title, told, left_out),
            "below": networks(told.networks)
            + _spans(told, run)
            + _steps(told, run)
            + hindsight_section(told.hindsight),
        },
    )
    path.write_text(page, encoding="utf-8")


def _charts(records: Sequence[Record], run: RunColumns, told: Explanation) -> list[Any]:
    from bokeh.models import ColumnDataSource, Range1d

    end = float(run.time[-1])
    range_ = Range1d(start=0, end=end, bounds=(0, end))
    found = bottlenecks_of(records)
    source = ColumnDataSource(
        {
            "time": run.time,
            "rate": run.load,
            "capacity": [np.nan if one is None else one.capacity_rate for one in found],
            "filled": [np.nan if one is None else 100.0 * one.load for one in found],
            "name": ["" if one is None else one.operator for one in found],
        }
    )
    charts = []
    if told.spans:
        charts = [_timeline(told, run, range_), _filled(source, run, range_)]
    charts.append(_carried(source, run, range_, capacity=bool(told.spans)))
    charts += [_latency(run, range_), cores_chart(told.hindsight, run, range_)]
    charts[-1].xaxis.axis_label = f"{run.unit} since the start"
    charts[-1].height += 22
    return charts


def _timeline(told: Explanation, run: RunColumns, range_: Any) -> Any:
    """A row for each operator, with dark boxes where it limited the pipeline."""
    from bokeh.models import ColumnDataSource, FactorRange, HoverTool
    from bokeh.plotting import figure

    names = list(told.by_operator())
    chart = figure(
        title="The fullest operator: dark where it limited the pipeline for most of the span",
        y_range=FactorRange(factors=list(reversed(names))),
        height=62 + 26 * len(names),
        **over_time(range_),
    )
    spans = told.spans
    source = ColumnDataSource(
        {
            "operator": [span.operator for span in spans],
            "begin": [span.begin_s / run.per_unit_s for span in spans],
            "end": [span.end_s / run.per_unit_s for span in spans],
            "alpha": [0.9 if span.limiting_s > span.seconds / 2 else 0.35 for span in spans],
            "load": [100.0 * span.load for span in spans],
            "gain": [100.0 * span.gain for span in spans],
            "tasks": [_tasks(span.least_tasks, span.most_tasks) for span in spans],
        }
    )
    bars = chart.hbar(
        y="operator",
        left="begin",
        right="end",
        height=0.7,
        fill_color=RED,
        fill_alpha="alpha",
        line_color=RED,
        source=source,
    )
    tips = [
        ("operator", "@operator"),
        ("from, to", f"@begin{{0,0.[0]}} to @end{{0,0.[0]}} {run.unit}"),
        ("tasks", "@tasks"),
        ("mean load", "@load{0} %"),
        ("with one more task", "+@gain{0} %"),
    ]
    chart.add_tools(HoverTool(renderers=[bars], tooltips=tips))
    chart.ygrid.grid_line_color = None
    return calm(chart)


def _filled(source: Any, run: RunColumns, range_: Any) -> Any:
    from bokeh.models import HoverTool
    from bokeh.models.annotations import Span as Level

    chart = chart_over_time("Load of the fullest operator", "% of capacity", 170, range_)
    line = chart.line("time", "filled", source=source, color=ORANGE, line_width=2.0)
    level = Level(
        location=100.0 * LIMITING_LOAD, dimension="width", line_color=RED, line_dash="dashed"
    )
    chart.add_layout(level)
    tips = [("at", f"@time{{0,0.[0]}} {run.unit}"), ("`@name`", "@filled{0} %")]
    chart.add_tools(HoverTool(renderers=[line], tooltips=tips, mode="vline"))
    return calm(chart)


def _carried(source: Any, run: RunColumns, range_: Any, *, capacity: bool) -> Any:
    """The load, and the capacity where operators tell it."""
    from bokeh.models import HoverTool

    title = "Load, and capacity of the pipeline" if capacity else "Load"
    chart = chart_over_time(title, "rows/s", 170, range_)
    line = chart.line(
        "time", "rate", source=source, color=BLUE, line_width=2.0, legend_label="arrived"
    )
    tips = [("at", f"@time{{0,0.[0]}} {run.unit}"), ("arrived", "@rate{0,0} rows/s")]
    if capacity:
        chart.line(
            "time",
            "capacity",
            source=source,
            color=GREY,
            line_dash="dashed",
            legend_label="capacity",
        )
        tips.append(("capacity", "@capacity{0,0} rows/s"))
    chart.add_tools(HoverTool(renderers=[line], tooltips=tips, mode="vline"))
    chart.legend.location = "top_right"
    return calm(chart)


def _latency(run: RunColumns, range_: Any) -> Any:
    seen = ~np.isnan(run.mean_s)
    chart = chart_over_time("Latency", "seconds", 170, range_)
    chart.line(run.time[seen], run.mean_s[seen], color=BLUE, line_width=2.0, legend_label="mean")
    if not np.isnan(run.predicted_s[seen]).all():
        chart.line(
            run.time[seen],
            run.predicted_s[seen],
            color=GREY,
            line_dash="dotted",
            legend_label="expected",
        )
    if not np.isnan(run.target_s).all():
        chart.step(
            run.time,
            run.target_s,
            mode="before",
            color=RED,
            line_dash="dashed",
            legend_label="target",
        )
    chart.legend.location = "top_right"
    return calm(chart)


def _above(title: str, told: Explanation, left_out: Sequence[str]) -> str:
    figures = [
        ("seconds", f"{told.seconds:,.0f}"),
        ("seconds limited", f"{told.limiting_s:,.0f}"),
        ("changes wanted", f"{len(told.steps):,d}"),
        ("core-seconds used", f"{told.hindsight.core_seconds:,.0f}"),
        ("would have been enough", _known(told.hindsight)),
        ("decisions wrong in hindsight", f"{len(told.hindsight.wrong)} of {told.hindsight.judged}"),
        ("policy", ", ".join(told.policies)),
    ]
    shown = "".join(
        f"<div><dt>{escape(label)}</dt><dd>{escape(value)}</dd></div>" for label, value in figures
    )
    said = "".join(f"<p>{escape(one)}</p>" for one in _said(told, left_out))
    return f'<h1>{escape(title)}</h1>{said}<dl class="figures">{shown}</dl>'


def _known(found: Hindsight) -> str:
    unknown = found.why_unknown is not None
    return "not known" if unknown else f"{found.enough_core_seconds:,.0f}"


def _said(told: Explanation, left_out: Sequence[str]) -> list[str]:
    sources = [f"At the source, for {s:,.0f} s: {what}." for what, s in told.source_limits]
    batches = [" ".join(one.sentences) for one in told.batches]
    executors = [f"For {s:,.0f} s: {what}." for what, s in told.executors]
    said = [told.headline, told.cores.words, *batches, told.fetching, told.lag]
    said += [*sources, *executors, *left_out]
    return [one for one in said if one]


def _spans(told: Explanation, run: RunColumns) -> str:
    if not told.spans:
        return ""
    rows = [
        (
            f"{span.begin_s / run.per_unit_s:,.1f}",
            f"{span.end_s / run.per_unit_s:,.1f}",
            span.operator,
            _tasks(span.least_tasks, span.most_tasks),
            f"{span.load:.0%}",
            f"{span.peak_load:.0%}",
            f"+{span.gain:.0%}",
            f"{span.limiting_s:,.0f}",
        )
        for span in told.spans
    ]
    labels = (
        f"from ({run.unit})",
        "to",
        "operator",
        "tasks",
        "load",
        "peak load",
        "with one more task",
        "seconds limiting",
    )
    return html_table(
        "bottlenecks", "The fullest operator", labels, rows, numbers={0, 1, 4, 5, 6, 7}
    )


def _steps(told: Explanation, run: RunColumns) -> str:
    if not told.steps:
        return "<h2>Decisions</h2><p>No change was decided.</p>"
    rows = [
        (f"{step.at_s / run.per_unit_s:,.1f}", step.what, step.outcome, step.why, step.came)
        for step in told.steps
    ]
    labels = (run.unit, "what", "outcome", "why", "what it did")
    return html_table("decisions", "Decisions, and what they did", labels, rows, numbers={0})


def _tasks(least: int, most: int) -> str:
    return f"{least}" if least == most else f"{least} to {most}"
