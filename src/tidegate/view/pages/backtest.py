"""The MST paper's figure 10 for any run, as one HTML file: load, capacity, machines, backlog."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The run of one policy, with one value per minute in each column."""

    application: str
    policy: str
    load: NDArray[np.float64]
    """MB/s, the same for every policy."""
    capacity: NDArray[np.float64]
    """MB/s that its machines sustained."""
    machines: NDArray[np.int64] | NDArray[np.float64]
    backlog: NDArray[np.float64]
    """MB."""


def write_plot(shown: list[Shown], title: str, path: Path) -> None:
    """Write one HTML file that needs no server and no network."""
    # Imported here because bokeh takes a second to import, and most commands draw nothing.
    from bokeh.embed import file_html
    from bokeh.layouts import column
    from bokeh.models import ColumnDataSource, HoverTool
    from bokeh.palettes import Category10_10
    from bokeh.plotting import figure
    from bokeh.resources import INLINE

    days = np.arange(len(shown[0].load)) / 1440.0
    wide: dict[str, Any] = {
        "width": 1200,
        "output_backend": "canvas",
        "tools": "xpan,xwheel_zoom,box_zoom,reset",
    }
    load = figure(
        title=f"{shown[0].application}: load and allocated capacity ({title})",
        height=320,
        y_axis_label="MB/s",
        **wide,
    )
    machines = figure(
        title="Machines", height=260, x_range=load.x_range, y_axis_label="machines", **wide
    )
    backlog = figure(
        title="Backlog",
        height=220,
        x_range=load.x_range,
        y_axis_label="MB",
        x_axis_label="days",
        **wide,
    )
    load.line(days, shown[0].load, color="#333333", legend_label="load", line_width=1.2)
    for place, one in enumerate(shown):
        color = Category10_10[place % 10]
        source = ColumnDataSource(
            {
                "day": days,
                "capacity": one.capacity,
                "machines": one.machines,
                "backlog": one.backlog,
            }
        )
        style: dict[str, Any] = {
            "source": source,
            "color": color,
            "legend_label": one.policy,
            "alpha": 0.8,
        }
        load.line("day", "capacity", **style)
        machines.step("day", "machines", mode="after", **style)
        backlog.line("day", "backlog", **style)
    for drawn in (load, machines, backlog):
        drawn.legend.click_policy = "hide"
        drawn.legend.location = "top_left"
        drawn.add_tools(HoverTool(tooltips=[("day", "$x{0.00}"), ("value", "$y{0.00}")]))
    path.write_text(file_html(column(load, machines, backlog), INLINE, title), encoding="utf-8")
