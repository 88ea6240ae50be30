"""A run as one HTML file: load, latency, and what was decided and why.

The file needs no server and no network. It gives the content of the charts as text, too: a summary
above them, and every decision with its reason below. Lines differ in dashes and markers in shape,
so that nothing depends on telling colours apart.
"""

from collections.abc import Sequence
from html import escape
from pathlib import Path

from tidegate.control.record import Record
from tidegate.errors import AskedWrongly
from tidegate.view.changes import again, changes_of, expected_of, outcome_of, words_of
from tidegate.view.pages.columns import RunColumns, columns_of
from tidegate.view.pages.run_charts import RunCharts
from tidegate.view.pages.style import STYLE, TEMPLATE
from tidegate.view.summary import Summary, summarise


def write_picture(
    records: Sequence[Record],
    path: str | Path,
    title: str,
    *,
    summary: Summary | None = None,
) -> None:
    """Write the picture of these records, given oldest first.

    `summary` is shown above the charts; by default it is made from these records.
    """
    path = Path(path)
    if not records:
        raise AskedWrongly("There is no record to draw: give those of at least one tick.")
    if not path.parent.is_dir():
        raise AskedWrongly(
            f"The directory {path.parent} of the picture does not exist: create it or name another."
        )
    # Imported here because bokeh takes a second to import, and most commands draw nothing.
    from bokeh.embed import file_html
    from bokeh.layouts import column
    from bokeh.resources import INLINE

    run = columns_of(records)
    told = _told(records)
    charts = RunCharts(run, told)
    page = file_html(
        column(*charts.all(), sizing_mode="stretch_width"),
        INLINE,
        escape(title),
        template=TEMPLATE,
        template_variables={
            "style": STYLE,
            "label": "Charts over time: load, latency against the target, decisions, cores, tasks, "
            "imbalance and backlog. The decisions are listed below as text.",
            "above": _above(title, summary or summarise(records)),
            "below": _decisions(run, told) + _notes(run, records),
        },
    )
    path.write_text(page, encoding="utf-8")


def _told(records: Sequence[Record]) -> list[Record]:
    """Records that ask for a change; one that is repeated while held back is listed once."""
    told: list[Record] = []
    before = None
    for record in records:
        if changes_of(record):
            if not again(before, record):
                told.append(record)
            before = record
    return told


def _above(title: str, summary: Summary) -> str:
    figures = "".join(
        f"<div><dt>{escape(label)}</dt><dd>{escape(value)}</dd></div>"
        for label, value in summary.lines()
    )
    return f'<h1>{escape(title)}</h1><dl class="figures">{figures}</dl>'


def _decisions(run: RunColumns, told: Sequence[Record]) -> str:
    if not told:
        return "<h2>Decisions</h2><p>No change was needed.</p>"
    rows = "".join(
        f'<tr><td class="number">{run.since_start(record.measurement.at_s):,.1f}</td>'
        f"<td>{escape(words_of(record))}</td><td>{escape(outcome_of(record))}</td>"
        f"<td>{escape('; '.join(filter(None, [record.decision.reason, expected_of(record)])))}</td>"
        "</tr>"
        for record in told
    )
    return (
        '<h2 id="decisions">Decisions</h2><div class="scroll" tabindex="0" role="region" '
        'aria-labelledby="decisions"><table><thead><tr>'
        f'<th class="number" scope="col">{run.unit}</th><th scope="col">what</th>'
        '<th scope="col">outcome</th><th scope="col">why</th>'
        f"</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _notes(run: RunColumns, records: Sequence[Record]) -> str:
    first: dict[str, float] = {}
    for record in records:
        for note in record.decision.notes:
            first.setdefault(note, run.since_start(record.measurement.at_s))
    if not first:
        return ""
    items = "".join(f"<li>{at:,.1f} {run.unit}: {escape(note)}</li>" for note, at in first.items())
    return f"<h2>Notes, with the time of the first</h2><ul>{items}</ul>"
