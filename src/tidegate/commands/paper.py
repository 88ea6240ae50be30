"""`tidegate paper`: runs an experiment of the papers, ours beside theirs."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from tidegate.commands.app import parse_extra
from tidegate.commands.output import Json, err, out, print_json
from tidegate.errors import AskedWrongly, nearest
from tidegate.view.figures import rounded

if TYPE_CHECKING:
    from tidegate.papers.figure import Figure, Findings


def paper(
    paper: Annotated[
        str | None, typer.Argument(help="drs, elasticutor, overload, mst, flink-er.")
    ] = None,
    figure: Annotated[str | None, typer.Argument(help="Such as fig6 or table2.")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Run a short version, for a first look.")
    ] = False,
    option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="An option that only this figure has, such as app=vld; may be repeated.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Run a figure or a table of one of the five papers, and show ours beside the paper's.

    Without arguments, all of them are listed: what they show, on Spark or simulated, how long they
    take, and the last result. Results and pictures go to out/papers.
    """
    # Imported here because experiments import Spark, which would slow down `--help`.
    from tidegate.papers.catalogue import FIGURES
    from tidegate.papers.figure import Asked

    papers = list(dict.fromkeys(one.paper for one in FIGURES))
    if paper is not None and paper not in papers:
        raise AskedWrongly(f"there is no paper '{paper}'{nearest(paper, papers)}")
    mine = [one for one in FIGURES if paper is None or one.paper == paper]
    if figure is None:
        _print_list(mine, json)
        return
    known = {one.figure: one for one in mine}
    if figure not in known:
        raise AskedWrongly(f"'{paper}' has no '{figure}'{nearest(figure, known)}")
    chosen = known[figure]
    if chosen.run is None:
        raise AskedWrongly(
            f"{paper} {figure} cannot be run yet; docs/papers.md says what there is of it"
        )
    extra = parse_extra(option or [])
    for name in extra:
        if name not in chosen.options:
            raise AskedWrongly(
                f"{paper} {figure} has no option '{name}'{nearest(name, chosen.options)}"
            )
    short = ", short version" if quick else f", about {chosen.minutes:g} minutes"
    _say(f"{paper} {figure}: {chosen.about} ({_body(chosen)}{short})")
    _tell(chosen, chosen.run(Asked(quick=quick, say=_say, extra=extra)), quick, json)


def _say(line: str) -> None:
    err.print(line, highlight=False, markup=False)


def _tell(chosen: "Figure", outcome: "Findings", quick: bool, json: bool) -> None:
    from tidegate.papers.last_results import keep, place
    from tidegate.view.pages.paper import write_paper

    document: dict[str, Any] = {
        "paper": chosen.paper,
        "figure": chosen.figure,
        "about": chosen.about,
        "body": chosen.body,
        "stretched": chosen.stretched,
        "quick": quick,
        "results": [one.document() for one in outcome.compared],
        "aims": [{**asdict(aim), "value": rounded(aim.value, 4)} for aim in outcome.aims],
        "notes": list(outcome.notes),
    }
    if outcome.pictures:
        file = place(chosen.paper, chosen.figure, "html")
        write_paper(outcome.pictures, f"{chosen.paper} {chosen.figure}", file)
        document["picture"] = str(file)
    for figure in (chosen.figure, *chosen.also):
        keep({**document, "figure": figure})
    if json:
        print_json(document)
        return
    title = f"{chosen.paper} {chosen.figure}: {chosen.about} ({_body(chosen)})"
    table = Table("", "paper", "ours", title=title, title_justify="left")
    for one in outcome.compared:
        theirs = "" if one.paper is None else f"{one.paper}{' (read off)' if one.read_off else ''}"
        table.add_row(one.name, theirs, "" if one.ours is None else str(one.ours))
    out.print(table)
    for aim in outcome.aims:
        met = "met" if aim.met else "MISSED"
        out.print(f"{met}: {aim.name}: {aim.value:.4g}, aim {aim.aim}", highlight=False)
    for note in outcome.notes:
        out.print(note, highlight=False)
    if "picture" in document:
        out.print(f"picture: {document['picture']}", highlight=False)


def _body(chosen: "Figure") -> str:
    where = "on Spark" if chosen.body == "spark" else "simulated"
    return f"{where}, stretched by waiting" if chosen.stretched else where


def _print_list(listed: "list[Figure]", json: bool) -> None:
    from tidegate.papers.last_results import in_short, last

    rows = [
        {
            "paper": one.paper,
            "figure": one.figure,
            "about": one.about,
            "body": one.body,
            "minutes": one.minutes,
            "status": "ready" if one.run is not None else "not yet",
            "last": in_short(last(one.paper, one.figure)),
        }
        for one in listed
    ]
    if json:
        print_json({"rows": rows})
        return
    table = Table("paper", "figure", "what it shows", "body", "minutes", "status", "last result")
    for row in rows:
        table.add_row(*("" if value is None else f"{value}" for value in row.values()))
    out.print(table)
    out.print("tidegate paper PAPER FIGURE runs one; --quick runs a short version.")
