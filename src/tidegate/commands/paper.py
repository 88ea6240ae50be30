"""`tidegate paper`: runs an experiment of the papers, ours beside theirs."""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from tidegate.commands.app import parse_extra
from tidegate.commands.output import Json, print_json, print_line, print_table, progress
from tidegate.errors import AskedWrongly, check_options, nearest

if TYPE_CHECKING:
    from tidegate.papers.figure import Figure


def paper(
    paper: Annotated[
        str | None,
        typer.Argument(
            help="Whose: drs, elasticutor, overload, mst or flink-er; without it, a list."
        ),
    ] = None,
    figure: Annotated[
        str | None, typer.Argument(help="Which one, such as fig6; without it, a list.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Run a short version, for a first look.")
    ] = False,
    option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="An option that only this figure has, such as app=vld; may be repeated."
            " `tidegate paper PAPER` lists them.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Run an experiment of one of the research papers behind Tidegate, and compare the results.

    Each figure or table is run with Tidegate, on Spark or in a simulator, and what was found is
    shown beside what the paper prints. Without arguments, all are listed: what they show, how long
    they take, and the last result. Results and pages go to out/papers; those of a short version or
    with options are kept beside the full ones. It fails if the answers of a run were wrong.
    """
    # Imported here because experiments import Spark, which would slow down `--help`.
    from tidegate.commands.paper_answer import body_of, tell
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
    extra = parse_extra(option or [])
    check_options(extra, chosen.options, f"{paper} {figure}")
    with progress(f"paper {paper} {figure}") as shown:
        asked = Asked(quick=quick, say=shown.say, progress=shown.progress, extra=extra)
        takes = "" if quick else f", about {chosen.minutes:g} minutes"
        shown.say(f"{paper} {figure}: {chosen.about} ({body_of(chosen, asked)}{takes})")
        if not quick:
            shown.progress.expect(1.0, takes_s=60.0 * chosen.minutes)
            shown.progress.step("running")
        found = chosen.run(asked)
    tell(chosen, found, asked, json)


def _print_list(listed: "list[Figure]", json: bool) -> None:
    from tidegate.papers.last_results import in_short, last

    rows = [
        {
            "paper": one.paper,
            "figure": one.figure,
            "about": one.about,
            "body": one.body,
            "minutes": one.minutes,
            "status": "ready",
            "last": in_short(last(one.paper, one.figure)),
            "options": dict(one.options),
        }
        for one in listed
    ]
    if json:
        print_json({"rows": rows})
        return
    from tidegate.commands.paper_answer import BODIES

    table = Table("paper", "figure", "what it shows", "runs", "minutes", "last result")
    for one, row in zip(listed, rows, strict=True):
        result = "-" if row["last"] is None else escape(f"{row['last']}")
        about, minutes = escape(one.about), f"{one.minutes:g}"
        table.add_row(one.paper, one.figure, about, BODIES[one.body], minutes, result)
    print_table(table)
    if any(one.options for one in listed):
        options = Table("paper", "figure", "--option", "meaning")
        for one in listed:
            for name, meaning in one.options.items():
                options.add_row(one.paper, one.figure, name, escape(meaning))
        print_table(options)
    print_line("tidegate paper PAPER FIGURE runs one; --quick runs a short version.")
