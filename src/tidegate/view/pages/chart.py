"""How charts over time are built and styled."""

from typing import Any


def over_time(range_: Any) -> dict[str, Any]:
    """Options of a chart that shares its time axis with those above and below it."""
    return {
        "x_range": range_,
        "sizing_mode": "stretch_width",
        "min_border_left": 84,
        "min_border_right": 16,
        "tools": "xpan,xwheel_zoom,xbox_zoom,reset",
        "active_scroll": None,
        "toolbar_location": "right",
    }


def chart_over_time(title: str, unit: str, height: int, range_: Any, **options: Any) -> Any:
    """An empty chart whose values start at 0; options are those of a figure of Bokeh."""
    from bokeh.models import DataRange1d
    from bokeh.plotting import figure

    values = DataRange1d(start=0, range_padding=0.12)
    chart = figure(title=title, height=height, y_range=values, **over_time(range_) | options)
    chart.yaxis.axis_label = unit
    return chart


def with_legend(chart: Any) -> Any:
    """The chart with a legend above it; a click on a name hides its line."""
    from bokeh.models.annotations import Legend

    legend = Legend(orientation="horizontal", location="top_right", click_policy="hide")
    legend.update(
        padding=0,
        margin=0,
        background_fill_color=None,
        border_line_color=None,
        label_text_font_size="12px",
        spacing=14,
    )
    chart.add_layout(legend, "above")
    return chart


def calm(chart: Any) -> Any:
    """Remove Bokeh's logo, frame and heavy lines from a chart."""
    chart.toolbar.logo = None
    chart.toolbar.autohide = True
    chart.yaxis.minor_tick_line_color = None
    chart.outline_line_color = None
    chart.grid.grid_line_alpha = 0.5
    chart.axis.axis_label_text_font_style = "normal"
    chart.title.text_font_size = "14px"
    return chart
