"""What an experiment of a paper found: printed, kept for the list, and written as a page."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from tidegate.benching import Aim
from tidegate.commands.output import print_json, print_line, print_table
from tidegate.errors import TidegateError
from tidegate.papers.figure import Asked, Figure, Findings, Value
from tidegate.papers.last_results import keep, place
from tidegate.view.figures import only_finite, rounded
from tidegate.view.pages.paper import PaperPage, write_paper

BODIES = {"spark": "on Spark", "simulated": "simulated", "measured": "without Spark"}
"""Where an experiment runs, in words."""
STRETCHED = (
    "Operators are stretched: after their real work they wait until the time per tuple is over, so"
    " that as many tasks are as fast as cores."
)


def tell(chosen: Figure, found: Findings, asked: Asked, json: bool) -> None:
    """Print what was found, keep it, and fail if the answers of a run were wrong.

    It is printed first, so that nothing that goes wrong later can lose it.
    """
    file = place(chosen.paper, chosen.figure, "html", quick=asked.quick, options=asked.extra)
    document = document_of(chosen, found, asked, file)
    if json:
        print_json(document)
    else:
        _print_tables(chosen, found, asked, file)
    for figure in (chosen.figure, *chosen.also):
        keep({**document, "figure": figure})
    write_paper(page_of(chosen, found, asked), file)
    if found.wrong:
        raise TidegateError(
            f"{chosen.paper} {chosen.figure}: the answers of a run were wrong"
            f" ({'; '.join(_aim(aim) for aim in found.wrong)}), so nothing that it measured counts"
        )


def document_of(chosen: Figure, found: Findings, asked: Asked, file: Path) -> dict[str, Any]:
    """The JSON document; values that are not finite are None in it."""
    document = {
        "paper": chosen.paper,
        "figure": chosen.figure,
        "about": chosen.about,
        "body": chosen.body,
        "stretched": chosen.stretched,
        "quick": asked.quick,
        "options": dict(asked.extra),
        "verified": not found.wrong if found.about_answers else None,
        "results": [asdict(one) for one in found.compared],
        "aims": [{**asdict(aim), "value": rounded(aim.value, 4)} for aim in found.aims],
        "notes": list(found.notes),
        "picture": str(file),
    }
    return {name: only_finite(value) for name, value in document.items()}


def page_of(chosen: Figure, found: Findings, asked: Asked) -> PaperPage:
    """The page with the same content, and with charts."""
    how = f"Ran {body_of(chosen, asked)}."
    return PaperPage(
        title=f"{chosen.paper} {chosen.figure}: {chosen.about}",
        how=f"{how} {STRETCHED}" if chosen.stretched else how,
        compared=tuple((one.name, _cell(one.paper), _cell(one.ours)) for one in found.compared),
        aims=tuple((_met(aim), aim.name, _number(aim.value), aim.aim) for aim in found.aims),
        notes=found.notes,
        pictures=found.pictures,
    )


def body_of(chosen: Figure, asked: Asked) -> str:
    """Where it runs and in which form, in a few words."""
    return ", ".join(
        [
            BODIES[chosen.body],
            *(["stretched by waiting"] if chosen.stretched else []),
            *(["short version"] if asked.quick else []),
            *(f"{name}={value}" for name, value in asked.extra.items()),
        ]
    )


def _print_tables(chosen: Figure, found: Findings, asked: Asked, file: Path) -> None:
    title = f"{chosen.paper} {chosen.figure}: {chosen.about} ({body_of(chosen, asked)})"
    table = Table("what", "paper", "ours", title=escape(title), title_justify="left")
    for one in found.compared:
        table.add_row(*(escape(cell) for cell in (one.name, _cell(one.paper), _cell(one.ours))))
    print_table(table)
    lines = [f"{_met(aim)}: {_aim(aim)}" for aim in found.aims]
    for line in (*lines, *found.notes, f"picture: {file}"):
        print_line(line)


def _aim(aim: Aim) -> str:
    return f"{aim.name}: {_number(aim.value)}, aim {aim.aim}"


def _met(aim: Aim) -> str:
    return "met" if aim.met else "MISSED"


def _cell(value: Value) -> str:
    return "" if value is None else str(value)


def _number(value: float | None) -> str:
    return "not measured" if value is None else f"{value:.4g}"
