"""A flow network as an SVG picture: its edges with flow and capacity, and the minimum cut.

Vertices are in columns, each one column behind the last vertex that feeds it. Edges are wider the
more rows pass them, and coloured by how full they are. The minimum cut is a dashed line across the
edges it cuts, and what is behind it is shaded.
"""

from collections.abc import Mapping, Sequence
from html import escape

from tidegate.control.bottleneck import LIMITING_LOAD
from tidegate.control.flow_graph import FlowEdge, FlowGraph, FlowVertex
from tidegate.view.pages.style import BLUE, GREY, ORANGE, RED

_BOX, _HEIGHT = 156, 46
_COLUMN, _ROW = 320, 116
_MARGIN = 34
_ARC = 40
"""How far edges that lead back pass below the vertices."""
_THINNEST, _WIDEST = 1.5, 7.0
_INK, _PAPER = "var(--ink, #1a1a1a)", "var(--paper, #fff)"
"""Colours of the page that it is on; these where it names none."""

Place = tuple[float, float]


def flow_svg(graph: FlowGraph, label: str) -> str:
    """The picture, to be put into a page; the label describes it to those who cannot see it."""
    places = _places(graph)
    width = max(x for x, _ in places.values()) + _BOX + _MARGIN
    height = max(y for _, y in places.values()) + _HEIGHT + 1.5 * _MARGIN
    height += _ARC if any(edge.back for edge in graph.edges) else 0
    most = max((edge.flow_rate for edge in graph.edges), default=0.0)
    parts = [
        f'<svg role="img" aria-label="{escape(label)}" viewBox="0 0 {width:g} {height:g}"'
        f' style="fill:{_INK};width:100%;max-width:{width:g}px;min-width:{0.6 * width:g}px"'
        ' font-family="system-ui, sans-serif" font-size="13">',
        f"<title>{escape(label)}</title>",
        '<defs><marker id="flow-tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="9"'
        ' markerHeight="9" markerUnits="userSpaceOnUse" orient="auto">'
        f'<path d="M0 0L8 4L0 8z" fill="{GREY}"/></marker></defs>',
    ]
    parts += [_edge(edge, places, most) for edge in graph.edges]
    parts += [_vertex(one, places[one.name]) for one in graph.vertices]
    parts += _cut(graph, places)
    return "".join([*parts, "</svg>"])


def _places(graph: FlowGraph) -> dict[str, Place]:
    """The upper left corner of each vertex."""
    forward = [edge for edge in graph.edges if not edge.back]
    columns = _columns([one.name for one in graph.vertices], forward)
    rows: dict[str, float] = {}
    for column in range(max(columns.values()) + 1):
        names = [name for name in columns if columns[name] == column]
        names.sort(key=lambda name: _mean_row(name, forward, rows))
        for row, name in enumerate(names):
            rows[name] = row - 0.5 * (len(names) - 1)
    top = min(rows.values())
    return {
        name: (_MARGIN + columns[name] * _COLUMN, _MARGIN + (rows[name] - top) * _ROW)
        for name in columns
    }


def _columns(names: Sequence[str], forward: Sequence[FlowEdge]) -> dict[str, int]:
    """How many edges the longest way to each vertex has. Edges that lead forward have no loop."""
    columns = dict.fromkeys(names, 0)
    for _ in names:
        for edge in forward:
            columns[edge.head] = max(columns[edge.head], columns[edge.tail] + 1)
    return columns


def _mean_row(name: str, forward: Sequence[FlowEdge], rows: Mapping[str, float]) -> float:
    above = [rows[edge.tail] for edge in forward if edge.head == name and edge.tail in rows]
    return sum(above) / len(above) if above else 0.0


def _edge(edge: FlowEdge, places: Mapping[str, Place], most: float) -> str:
    (x1, y1), (x2, y2) = places[edge.tail], places[edge.head]
    if edge.back:
        below = max(y for _, y in places.values()) + _HEIGHT + _ARC
        begin, end = (x1 + _BOX / 2, y1 + _HEIGHT), (x2 + _BOX / 2, y2 + _HEIGHT)
        way = f"M{begin[0]:g} {begin[1]:g}C{begin[0]:g} {below:g} {end[0]:g} {below:g}"
        way += f" {end[0]:g} {end[1] + 4:g}"
        middle = ((begin[0] + end[0]) / 2, below - _ARC / 2)
    else:
        begin, end = (x1 + _BOX, y1 + _HEIGHT / 2), (x2 - 3, y2 + _HEIGHT / 2)
        bend = (end[0] - begin[0]) / 2
        way = f"M{begin[0]:g} {begin[1]:g}C{begin[0] + bend:g} {begin[1]:g}"
        way += f" {end[0] - bend:g} {end[1]:g} {end[0]:g} {end[1]:g}"
        middle = ((begin[0] + end[0]) / 2, (begin[1] + end[1]) / 2)
    share = edge.flow_rate / most if most > 0.0 else 0.0
    stroke = _THINNEST + (_WIDEST - _THINNEST) * share
    drawn = (
        f'<path d="{way}" fill="none" stroke="{_colour(edge)}" stroke-width="{stroke:.1f}"'
        ' stroke-opacity="0.75" marker-end="url(#flow-tip)"/>'
    )
    return drawn + _label(edge, middle)


def _label(edge: FlowEdge, middle: Place) -> str:
    x, y = middle
    first = f"{edge.offered_rate:,.0f} rows/s"
    lines = [(y - 8, first, "")]
    if edge.capacity_rate is not None and edge.load is not None:
        first = f"{edge.offered_rate:,.0f} of {edge.capacity_rate:,.0f} rows/s"
        bold = ' font-weight="600"' if edge.load >= LIMITING_LOAD else ""
        lines = [(y - 8, first, ""), (y + 18, f"{edge.load:.0%}", bold)]
    return "".join(
        f'<text x="{x:g}" y="{at:g}" text-anchor="middle"{weight} stroke-width="3"'
        f' style="stroke:{_PAPER}" paint-order="stroke">{escape(words)}</text>'
        for at, words, weight in lines
    )


def _colour(edge: FlowEdge) -> str:
    if edge.load is None:
        return GREY
    if edge.load > 1.0:
        return RED
    return ORANGE if edge.load >= LIMITING_LOAD else BLUE


def _vertex(one: FlowVertex, place: Place) -> str:
    x, y = place
    fill = "var(--behind, #fdeee3)" if one.behind else "var(--box, #f4f6f8)"
    rounded = 6 if one.tasks is not None else _HEIGHT / 2
    box = (
        f'<rect x="{x:g}" y="{y:g}" width="{_BOX}" height="{_HEIGHT}" rx="{rounded:g}"'
        f' style="fill:{fill}" stroke="#888"/>'
    )
    name = _short(one.name)
    lines = [(y + 27.0, name, ' font-weight="600"')]
    if one.tasks is not None and one.occupied is not None:
        tasks = "1 task" if one.tasks == 1 else f"{one.tasks} tasks"
        lines = [
            (y + 19.0, name, ' font-weight="600"'),
            (
                y + 36.0,
                f"{tasks}, occupied {one.occupied:.0%}",
                ' style="fill:var(--faint, #555)" font-size="12"',
            ),
        ]
    return box + "".join(
        f'<text x="{x + _BOX / 2:g}" y="{at:g}" text-anchor="middle"{extra}>{escape(words)}</text>'
        for at, words, extra in lines
    )


def _short(name: str, most: int = 19) -> str:
    """A name that fits into a box."""
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _cut(graph: FlowGraph, places: Mapping[str, Place]) -> list[str]:
    """The dashed line right before the operator behind the cut, and what it lets through."""
    x, y = places[graph.operator]
    left, top, bottom = x - 16, y - 16, y + _HEIGHT + 16
    words = f"narrowest place, {graph.load:.0%} full"
    return [
        f'<path class="cut" d="M{left:g} {top:g}V{bottom:g}" stroke="{RED}" stroke-width="3"'
        ' stroke-dasharray="7 4"/>',
        f'<text x="{left:g}" y="{bottom + 14:g}" text-anchor="middle" fill="{RED}"'
        f' font-weight="600">{escape(words)}</text>',
    ]
