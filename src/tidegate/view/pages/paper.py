"""An experiment of a paper as one HTML file: ours beside the paper's, aims, charts and notes."""

from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from tidegate.view.pages.style import STYLE, TEMPLATE
from tidegate.view.pages.table import html_table


@dataclass(frozen=True, slots=True)
class Curve:
    """A line of a chart."""

    name: str
    x: tuple[float | str, ...]
    y: tuple[float, ...]
    paper: bool = False
    """Whether it is the paper's."""
    deviation: tuple[float, ...] = ()
    """Half the length of an error bar at each point; empty: there are none."""
    marked: bool = True
    """Whether its points are drawn as well; a line of a thousand points needs none."""


@dataclass(frozen=True, slots=True)
class Picture:
    """One chart. Its x axis has categories where the x values are texts."""

    title: str
    x_label: str
    y_label: str
    lines: tuple[Curve, ...]
    marks: tuple[str, ...] = ()
    """Categories to mark, such as the recommended split."""
    logarithmic: bool = False
    """Whether the y axis is logarithmic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperPage:
    """What a page shows; all of it is plain text."""

    title: str
    how: str
    """Where the experiment ran, and what stands for what."""
    compared: tuple[tuple[str, str, str], ...]
    """Name, the paper's value and ours."""
    aims: tuple[tuple[str, str, str, str], ...]
    """Whether it was met, its name, the value and the aim."""
    notes: tuple[str, ...] = ()
    pictures: tuple[Picture, ...] = ()


def write_paper(page: PaperPage, path: Path) -> None:
    """Write one HTML file that needs no server and no network."""
    # Imported here because bokeh takes a second to import, and most commands draw nothing.
    from bokeh.embed import file_html
    from bokeh.layouts import column
    from bokeh.models import Spacer
    from bokeh.resources import INLINE

    charts = [_chart(one) for one in page.pictures] or [Spacer(height=1)]
    text = file_html(
        column(*charts, sizing_mode="stretch_width"),
        INLINE,
        escape(page.title),
        template=TEMPLATE,
        template_variables={
            "style": STYLE,
            "label": "Charts of the values in the tables above.",
            "above": _above(page),
            "below": _notes(page),
        },
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _above(page: PaperPage) -> str:
    parts = [f"<h1>{escape(page.title)}</h1><p>{escape(page.how)}</p>"]
    labels = ("", "paper", "ours")
    parts.append(html_table("compared", "Ours beside the paper's", labels, page.compared))
    if page.aims:
        parts.append(html_table("aims", "Aims", ("", "aim", "value", "wanted"), page.aims))
    return "".join(parts)


def _notes(page: PaperPage) -> str:
    if not page.notes:
        return ""
    items = "".join(f"<li>{escape(note)}</li>" for note in page.notes)
    return f"<h2>Notes</h2><ul>{items}</ul>"


def _chart(picture: Picture) -> Any:
    from bokeh.palettes import Category10_10
    from bokeh.plotting import figure

    from tidegate.view.pages.chart import calm

    texts = [x for line in picture.lines for x in line.x if isinstance(x, str)]
    options: dict[str, Any] = {"x_range": list(dict.fromkeys(texts))} if texts else {}
    if picture.logarithmic:
        options["y_axis_type"] = "log"
    chart = figure(
        title=picture.title,
        height=340,
        sizing_mode="stretch_width",
        x_axis_label=picture.x_label,
        y_axis_label=picture.y_label,
        tools="pan,wheel_zoom,box_zoom,reset,hover",
        **options,
    )
    for place, line in enumerate(picture.lines):
        style: dict[str, Any] = {
            "color": Category10_10[place % 10],
            "legend_label": f"{line.name} (paper)" if line.paper else line.name,
        }
        dash = "dashed" if line.paper else "solid"
        chart.line(list(line.x), list(line.y), line_dash=dash, line_width=2, **style)
        if line.deviation:
            chart.add_layout(_error_bars(line, style["color"]))
        if not line.marked:
            continue
        sizes = [13 if str(x) in picture.marks else 6 for x in line.x]
        chart.scatter(list(line.x), list(line.y), size=sizes, **style)
    chart.legend.click_policy = "hide"
    return calm(chart)


def _error_bars(line: Curve, color: str) -> Any:
    from bokeh.models import ColumnDataSource
    from bokeh.models.annotations.arrows import TeeHead
    from bokeh.models.annotations.geometry import Whisker

    pairs = list(zip(line.y, line.deviation, strict=True))
    source = ColumnDataSource(
        {
            "x": list(line.x),
            "lower": [y - half for y, half in pairs],
            "upper": [y + half for y, half in pairs],
        }
    )
    head = TeeHead(size=8, line_color=color)
    return Whisker(
        source=source,
        base="x",
        lower="lower",
        upper="upper",
        line_color=color,
        lower_head=head,
        upper_head=head,
    )
