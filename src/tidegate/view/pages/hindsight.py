"""The part of an explained run's page that looks back: sentences, a chart of cores, and tables."""

from html import escape
from typing import Any

import numpy as np

from tidegate.view.hindsight import words
from tidegate.view.hindsight.hindsight import Hindsight
from tidegate.view.pages.chart import calm, chart_over_time
from tidegate.view.pages.columns import RunColumns
from tidegate.view.pages.style import BLUE, GREEN, GREY
from tidegate.view.pages.table import html_table


def hindsight_section(found: Hindsight) -> str:
    """What would have been enough, where the rest went, and which decisions were wrong."""
    said = "".join(f"<p>{escape(one)}</p>" for one in words.sentences(found))
    tables = ""
    above = words.above_rows(found)
    if above:
        title = "Core-seconds above enough, and why"
        tables += html_table("above", title, words.ABOVE_LABELS, above, numbers={0, 1})
    wrong = words.wrong_rows(found)
    if wrong:
        title = "Decisions that were wrong"
        tables += html_table("wrong", title, words.WRONG_LABELS, wrong, numbers={0})
    return f'<h2 id="hindsight">In hindsight</h2>{said}{tables}'


def cores_chart(found: Hindsight, run: RunColumns, range_: Any) -> Any:
    """Cores that were there, those that were asked for, and those that were enough."""
    from bokeh.models import ColumnDataSource, HoverTool

    enough = [np.nan if one is None else float(one) for one in found.enough_by_tick]
    source = ColumnDataSource(
        {
            "time": run.time,
            "granted": run.cores_granted,
            "asked": run.cores_asked,
            "enough": enough,
        }
    )
    chart = chart_over_time("Cores, and those that were enough", "cores", 170, range_)
    line = chart.step(
        "time",
        "granted",
        source=source,
        mode="before",
        color=BLUE,
        line_width=2.0,
        legend_label="there",
    )
    chart.step(
        "time",
        "asked",
        source=source,
        mode="before",
        color=GREY,
        line_dash="dotted",
        legend_label="asked for",
    )
    chart.step(
        "time",
        "enough",
        source=source,
        mode="before",
        color=GREEN,
        line_dash="dashed",
        line_width=2.0,
        legend_label="enough",
    )
    tips = [
        ("at", f"@time{{0,0.[0]}} {run.unit}"),
        ("there", "@granted"),
        ("asked for", "@asked"),
        ("enough", "@enough"),
    ]
    chart.add_tools(HoverTool(renderers=[line], tooltips=tips, mode="vline"))
    chart.legend.location = "top_right"
    return calm(chart)
