"""A page of charts as one HTML file: an experiment of a paper, ours beside the paper's."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Curve:
    """A line of a chart."""

    name: str
    x: tuple[float | str, ...]
    y: tuple[float, ...]
    paper: bool = False
    """Whether it is the paper's."""


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


def write_paper(pictures: Sequence[Picture], title: str, path: Path) -> None:
    """Write one HTML file that needs no server and no network."""
    # Imported here because bokeh takes a second to import, and most commands draw nothing.
    from bokeh.embed import file_html
    from bokeh.layouts import column
    from bokeh.resources import INLINE

    charts = [_chart(one) for one in pictures]
    page = column(*charts, sizing_mode="stretch_width")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(file_html(page, INLINE, title))


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
        sizes = [13 if str(x) in picture.marks else 6 for x in line.x]
        chart.scatter(list(line.x), list(line.y), size=sizes, **style)
    chart.legend.click_policy = "hide"
    return calm(chart)
