"""A table of a page, with its heading; it scrolls by itself where it is too wide."""

from collections.abc import Collection, Sequence
from html import escape


def html_table(
    name: str,
    title: str,
    labels: Sequence[str],
    rows: Sequence[Sequence[str]],
    numbers: Collection[int] = (),
    above: str = "",
) -> str:
    """The table as HTML; `name` identifies it on its page, `numbers` are columns to align right.

    `above` is HTML between the heading and the table.
    """

    def kind(place: int) -> str:
        return ' class="number"' if place in numbers else ""

    head = "".join(
        f'<th scope="col"{kind(place)}>{escape(label)}</th>' for place, label in enumerate(labels)
    )
    body = "".join(
        "<tr>"
        + "".join(f"<td{kind(place)}>{escape(cell)}</td>" for place, cell in enumerate(row))
        + "</tr>"
        for row in rows
    )
    return (
        f'<h2 id="{name}">{escape(title)}</h2>{above}<div class="scroll" tabindex="0" '
        f'role="region" aria-labelledby="{name}"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )
