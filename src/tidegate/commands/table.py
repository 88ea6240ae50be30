"""Tables that fit the terminal: columns as wide as their words, or a block per row if they do not.

Left alone, rich narrows columns until words break in the middle or end in dots.
"""

from rich.console import Console, Group, RenderableType
from rich.measure import Measurement
from rich.table import Column, Table
from rich.text import Text


def fitted(table: Table, console: Console) -> RenderableType:
    """The table, without its lines if need be; its rows one below the other if that is no help."""
    if _fits(table, console):
        return table
    table.box, table.pad_edge, table.padding, table.header_style = None, False, (0, 1), "bold"
    return table if _fits(table, console) else _blocks(table)


def _fits(table: Table, console: Console) -> bool:
    """Give each column the width that it needs; no if there is not enough for all words."""
    wide = console.options.update(max_width=1_000_000)
    spans = [_span(column, console) for column in table.columns]
    most = sum(span.maximum for span in spans)
    around = Measurement.get(console, wide, table).maximum - most
    spare = console.width - around - sum(span.minimum for span in spans)
    if most + around <= console.width or spare < 0:
        return spare >= 0
    widths = [span.minimum for span in spans]
    for _ in range(spare):
        missing = [span.maximum - width for span, width in zip(spans, widths, strict=True)]
        widths[missing.index(max(missing))] += 1
    for column, width in zip(table.columns, widths, strict=True):
        column.width = width
    return True


def _span(column: Column, console: Console) -> Measurement:
    """The widths from which no word is cut to which no line is broken."""
    wide = console.options.update(max_width=1_000_000)
    spans = [Measurement.get(console, wide, cell) for cell in (column.header, *column.cells)]
    longest = max(span.maximum for span in spans)
    if column.no_wrap:
        return Measurement(longest, longest)
    if column.justify == "right":  # numbers with their units: `81 %` stays on one line
        heading, *cells = spans
        return Measurement(max([heading.minimum, *(cell.maximum for cell in cells)]), longest)
    return Measurement(max(span.minimum for span in spans), longest)


def _blocks(table: Table) -> Group:
    """Each row as a block of lines, with the headings in front."""
    parts: list[RenderableType] = []
    if table.title is not None:
        parts.append(_text(table.title, "italic"))
    for cells in zip(*(column.cells for column in table.columns), strict=True):
        block = Table.grid(padding=(0, 2))
        block.add_column(style="dim")
        block.add_column(overflow="fold")
        for column, cell in zip(table.columns, cells, strict=True):
            if cell not in ("", None):
                block.add_row(column.header, cell)
        parts += ["", block]
    if table.caption is not None:
        parts += ["", _text(table.caption, "dim")]
    return Group(*parts)


def _text(words: RenderableType, style: str) -> RenderableType:
    return Text.from_markup(words, style=style) if isinstance(words, str) else words
