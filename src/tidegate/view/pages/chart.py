"""How all charts look: nothing on them that does not tell something."""

from typing import Any


def calm(chart: Any) -> Any:
    """The chart without Bokeh's logo, frame and loud lines."""
    chart.toolbar.logo = None
    chart.toolbar.autohide = True
    chart.yaxis.minor_tick_line_color = None
    chart.outline_line_color = None
    chart.grid.grid_line_alpha = 0.5
    chart.axis.axis_label_text_font_style = "normal"
    chart.title.text_font_size = "14px"
    return chart
