"""Lines over time as a small SVG file, for pages that show a picture without scripts."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _GAP = 720, 150, 64, 12, 28, 46
_MOST_POINTS = 600
_COLOURS = ("#1f6feb", "#d1602b", "#8b949e", "#2f9e44")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line: times, values and a name."""

    name: str
    at_s: Sequence[float]
    values: Sequence[float]
    stairs: bool = False
    """Draw steps: each value holds until the next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """A chart with one vertical axis."""

    title: str
    lines: Sequence[Line]
    most: float
    """The upper end of the axis; values above it are drawn at the edge."""
    mark: float | None = None
    """A level to draw as a horizontal line, such as a target."""


def write_svg(panels: Sequence[Panel], path: Path) -> None:
    """Write panels one below the other, over the same time."""
    end_s = max(max(line.at_s) for panel in panels for line in panel.lines)
    height = _TOP + len(panels) * (_HEIGHT + _GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        'font-family="sans-serif" font-size="12" fill="#57606a">',
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
    for number, panel in enumerate(panels):
        parts += _panel(panel, _TOP + number * (_HEIGHT + _GAP), end_s)
    path.write_text("\n".join([*parts, "</svg>", ""]), encoding="utf-8")


def _panel(panel: Panel, top: float, end_s: float) -> list[str]:
    right = _WIDTH - _RIGHT
    bottom = top + _HEIGHT
    parts = [f'<text x="{_LEFT}" y="{top - 8:g}" fill="#24292f">{escape(panel.title)}</text>']
    for share in (0.0, 0.5, 1.0):
        y = bottom - share * _HEIGHT
        parts.append(f'<path d="M{_LEFT} {y:g}H{right}" stroke="#d0d7de"/>')
        label = f"{share * panel.most:,.4g}"
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:g}" text-anchor="end">{label}</text>')
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        x = _LEFT + share * (right - _LEFT)
        label = f"{share * end_s:.0f} s"
        parts.append(f'<text x="{x:g}" y="{bottom + 16:g}" text-anchor="middle">{label}</text>')
    if panel.mark is not None:
        y = bottom - min(panel.mark / panel.most, 1.0) * _HEIGHT
        parts.append(f'<path d="M{_LEFT} {y:g}H{right}" stroke="#24292f" stroke-dasharray="5 4"/>')
    x = float(right)
    for colour, line in reversed(list(zip(_COLOURS, panel.lines, strict=False))):
        parts.append(_path(line, panel, top, end_s, colour))
        parts.append(
            f'<text x="{x:g}" y="{top - 8:g}" text-anchor="end" fill="{colour}">'
            f"{escape(line.name)}</text>"
        )
        x -= 7.0 * len(line.name) + 14.0
    return parts


def _path(line: Line, panel: Panel, top: float, end_s: float, colour: str) -> str:
    every = max(1, -(-len(line.at_s) // _MOST_POINTS))
    points = [
        (
            _LEFT + at_s / end_s * (_WIDTH - _LEFT - _RIGHT),
            top + _HEIGHT * (1.0 - min(max(value / panel.most, 0.0), 1.0)),
        )
        for at_s, value in list(zip(line.at_s, line.values, strict=True))[::every]
    ]
    drawn = "M{:.1f} {:.1f}".format(*points[0])
    for x, y in points[1:]:
        drawn += f"H{x:.1f}V{y:.1f}" if line.stairs else f"L{x:.1f} {y:.1f}"
    return f'<path d="{drawn}" fill="none" stroke="{colour}" stroke-width="1.4"/>'
