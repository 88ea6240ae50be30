"""The picture of a contest: a small chart for each query and load, with a dot for each policy.

The further up, the more seconds were within the target; the further left, the fewer core-seconds it
took. An SVG without scripts, so that a page can show it.
"""

from collections.abc import Sequence
from html import escape
from pathlib import Path

from benchmarks.autoscalers_bodies.contest import OURS, POLICIES
from benchmarks.autoscalers_bodies.judged import Cell

from tidegate.errors import AskedWrongly

_CELL, _GAP, _LEFT, _TOP, _BOTTOM = 130, 16, 92, 60, 40
_MOST = 4.0
"""Core-seconds over the oracle's at the right edge; what took more is drawn there."""
_COLOURS = ("#1f6feb", "#2f9e44", "#9c36b5", "#d1602b", "#c2255c", "#8b949e", "#24292f")


def draw(cells: Sequence[Cell], path: Path) -> None:
    """Write the picture of what was found."""
    if not cells:
        raise AskedWrongly("there are no results to draw yet; run the contest first")
    queries = list(dict.fromkeys(cell.query for cell in cells))
    loads = list(dict.fromkeys(cell.load for cell in cells))
    width = _LEFT + len(loads) * (_CELL + _GAP)
    width = max(width, _LEFT + 7 * 120)
    height = _TOP + len(queries) * (_CELL + _GAP) + _BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="12" fill="#57606a">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        *_legend(),
    ]
    for column, load in enumerate(loads):
        x = _LEFT + column * (_CELL + _GAP) + _CELL / 2
        parts.append(f'<text x="{x:g}" y="{_TOP - 8}" text-anchor="middle">{escape(load)}</text>')
    for row, query in enumerate(queries):
        top = _TOP + row * (_CELL + _GAP)
        parts.append(f'<text x="8" y="{top + _CELL / 2:g}" fill="#24292f">{escape(query)}</text>')
        for share in (0.0, 0.5, 1.0):
            y = top + _CELL * (1.0 - share)
            parts.append(
                f'<text x="{_LEFT - 6}" y="{y + 4:g}" text-anchor="end">{100 * share:.0f} %</text>'
            )
    for cell in cells:
        left = _LEFT + loads.index(cell.load) * (_CELL + _GAP)
        parts += _chart(cell, left, _TOP + queries.index(cell.query) * (_CELL + _GAP))
    bottom = height - _BOTTOM + 4
    for column in range(len(loads)):
        for times in (1, 2, 3, 4):
            x = _LEFT + column * (_CELL + _GAP) + _across(float(times))
            parts.append(f'<text x="{x:g}" y="{bottom}" text-anchor="middle">{times}</text>')
    parts.append(
        f'<text x="{_LEFT}" y="{bottom + 22}">core-seconds over the oracle\'s (across), seconds'
        " within the target (up)</text>"
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([*parts, "</svg>", ""]), encoding="utf-8")


def _legend() -> list[str]:
    parts = []
    for number, (name, colour) in enumerate(zip(POLICIES, _COLOURS, strict=True)):
        x = _LEFT + number * 120
        parts.append(f'<circle cx="{x}" cy="20" r="5" fill="{colour}"/>')
        parts.append(f'<text x="{x + 10}" y="24">{escape(name)}</text>')
    return parts


def _chart(cell: Cell, left: float, top: float) -> list[str]:
    parts = [
        f'<rect x="{left:g}" y="{top:g}" width="{_CELL}" height="{_CELL}" fill="none"'
        ' stroke="#d0d7de"/>'
    ]
    colours = dict(zip(POLICIES, _COLOURS, strict=True))
    # Ours is drawn last, so that no other dot hides it.
    for name in sorted(cell.by_policy, key=lambda name: name == OURS):
        x = left + _across(cell.of_oracle(name))
        y = top + _CELL * (1.0 - cell.by_policy[name].within)
        radius = 5.5 if name == OURS else 4.0
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{colours[name]}"'
            ' fill-opacity="0.85"/>'
        )
    return parts


def _across(times: float) -> float:
    """From the left edge of a chart, where the oracle's half is."""
    return _CELL * min(max((times - 0.5) / (_MOST - 0.5), 0.0), 1.0)
