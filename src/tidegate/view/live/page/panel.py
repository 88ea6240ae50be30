"""A part of the page with an address of its own, and how its charts are drawn."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from tidegate.view.live.page.sources import SessionSources
from tidegate.view.live.page.style import LEGEND_STYLE, PART_STYLE
from tidegate.view.pages.chart import calm, chart_over_time, with_legend

LINES = (
    ("#0072B2", "solid"),
    ("#E69F00", "dashed"),
    ("#009E73", "dotdash"),
    ("#CC79A7", "dotted"),
    ("#56B4E9", "dashdot"),
    ("#D55E00", "solid"),
)
"""One for each operator of a chart; more could not be told apart."""


class PagePanel(ABC):
    """A part of the page, in one browser session."""

    name: ClassVar[str]
    """Its address: `?plot=NAME`."""
    title: ClassVar[str]
    about: ClassVar[str]
    """What it shows, in one sentence for a stranger."""
    wide: ClassVar[bool] = False
    """Whether it takes the whole width of a large screen."""
    tall: ClassVar[bool] = False
    """Whether it is as high as two others."""
    alert: ClassVar[bool] = False
    """Whether it can change without a new record."""

    def __init__(self, sources: SessionSources) -> None:
        self.sources = sources
        self.feed = sources.feed
        self.root = self.drawn()

    @abstractmethod
    def drawn(self) -> Any:
        """Bokeh's model of it."""

    def update(self) -> None:  # noqa: B027 (charts follow their sources by themselves)
        """Bring up to date what does not follow from the sources."""


class TextPanel(PagePanel):
    """A panel that is HTML; it is sent again only when it has changed."""

    def drawn(self) -> Any:
        """An empty part of the page."""
        self._text = part()
        return self._text

    @abstractmethod
    def html(self) -> str:
        """What to show now."""

    def update(self) -> None:
        """Show it."""
        show(self._text, self.html())


def part() -> Any:
    """A piece of HTML on the page, in the page's style."""
    from bokeh.models import InlineStyleSheet
    from bokeh.models.widgets import Div

    return Div(text="", sizing_mode="stretch_width", stylesheets=[InlineStyleSheet(css=PART_STYLE)])


def show(shown: Any, html: str) -> None:
    """Change a piece of HTML, if it has changed."""
    if shown.text != html:
        shown.text = html


def live_chart(sources: SessionSources, unit: str, height: int = 190, **options: Any) -> Any:
    """An empty chart over the session's time, with the time of day below it."""
    from bokeh.models import InlineStyleSheet

    chart = with_legend(
        chart_over_time(
            "",
            unit,
            height,
            sources.time,
            x_axis_type="datetime",
            **{"min_border_left": 64, "toolbar_location": None} | options,
        )
    )
    chart.legend.stylesheets = [InlineStyleSheet(css=LEGEND_STYLE)]
    return chart


def line(chart: Any, source: Any, column: str, label: str, colour: str, **style: Any) -> Any:
    """A line over time."""
    drawn = {"line_width": 2.0, "x": "time"} | style
    return chart.line(y=column, source=source, color=colour, legend_label=label, **drawn)


def steps(chart: Any, source: Any, column: str, label: str, colour: str, **style: Any) -> Any:
    """A line that holds each value over the interval that ends at its time."""
    drawn = {"line_width": 2.0, "mode": "before", "x": "time"} | style
    return chart.step(y=column, source=source, color=colour, legend_label=label, **drawn)


def finished(chart: Any, hovered: Any, tips: Mapping[str, str], number: str = "0,0.[00]") -> Any:
    """The chart in its calm form, with what it says under the pointer."""
    from bokeh.models import DatetimeTickFormatter, HoverTool, NumeralTickFormatter

    chart.add_tools(
        HoverTool(
            renderers=[hovered],
            tooltips=[("at", "@time{%H:%M:%S}"), *tips.items()],
            formatters={"@time": "datetime"},
            mode="vline",
        )
    )
    chart.yaxis.formatter = NumeralTickFormatter(format=number)
    chart.yaxis.ticker.desired_num_ticks = 4
    chart.xaxis.formatter = DatetimeTickFormatter(
        milliseconds="%H:%M:%S",
        seconds="%H:%M:%S",
        minsec="%H:%M:%S",
        minutes="%H:%M",
        hourmin="%H:%M",
        hours="%H:%M",
        days="%d %b",
    )
    chart.xaxis.ticker.desired_num_ticks = 5
    return calm(chart)


def stacked(*charts: Any) -> Any:
    """Charts one below the other."""
    from bokeh.layouts import column

    return column(*charts, sizing_mode="stretch_width")
