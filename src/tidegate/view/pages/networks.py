"""The flow networks of an explained run: each as a picture, with its edges as a table below it."""

from collections.abc import Sequence
from html import escape

from tidegate.control.flow_graph import FlowEdge
from tidegate.view.networks import NetworkMoment
from tidegate.view.pages.flow_svg import flow_svg
from tidegate.view.pages.table import html_table

_LABELS = ("from", "to", "offered rows/s", "carried", "capacity", "load", "")
_NUMBERS = {2, 3, 4, 5}


def networks(moments: Sequence[NetworkMoment]) -> str:
    """The part of the page with all of them."""
    return "".join(_network(number, moment) for number, moment in enumerate(moments))


def _network(number: int, moment: NetworkMoment) -> str:
    picture = flow_svg(moment.graph, moment.headline)
    return html_table(
        f"network-{number}",
        f"The flow network at second {moment.at_s:,.0f}",
        _LABELS,
        [_row(edge) for edge in moment.graph.edges],
        _NUMBERS,
        above=f'<p>{escape(moment.headline)}</p><div class="scroll" tabindex="0">{picture}</div>',
    )


def _row(edge: FlowEdge) -> tuple[str, ...]:
    return (
        edge.tail,
        edge.head,
        f"{edge.offered_rate:,.0f}",
        f"{edge.flow_rate:,.0f}",
        "" if edge.capacity_rate is None else f"{edge.capacity_rate:,.0f}",
        "" if edge.load is None else f"{edge.load:.0%}",
        "narrowest place" if edge.cut else "",
    )
