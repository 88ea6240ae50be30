"""`tidegate app`: runs one of the papers' applications, and verifies its answers."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from tidegate.commands.output import Json, err, print_json, print_line, print_table
from tidegate.commands.recorded_assembly import parse_bounds
from tidegate.control.names import policy_name
from tidegate.errors import AskedWrongly, TidegateError
from tidegate.spark.options import option as start_option
from tidegate.units import exact_duration, parse_duration

if TYPE_CHECKING:
    from tidegate.apps.application import Application
    from tidegate.apps.run_application import ApplicationRun

POLICY, CAPACITY = start_option("policy"), start_option("capacity")
WARM_S = 20.0
"""Seconds at the start that are not judged, while the JVM compiles and the models learn."""


def app(
    name: Annotated[str | None, typer.Argument(help="An application; without it, a list.")] = None,
    target: Annotated[
        str | None, typer.Option(help="The mean latency to keep, such as 2s.")
    ] = None,
    cores: Annotated[str | None, typer.Option(help="FEWEST:MOST cores, such as 2:16.")] = None,
    policy: Annotated[str, typer.Option(help=POLICY.help)] = POLICY.default,
    capacity: Annotated[Path | None, typer.Option(help=CAPACITY.help)] = CAPACITY.default,
    rate: Annotated[
        str | None,
        typer.Option(
            help="Rows a second: constant:13, sine:500+-400/20 (mean, swing, period in seconds),"
            " csv:FILE, ..."
        ),
    ] = None,
    seconds: Annotated[float | None, typer.Option(help="How many seconds rows arrive for.")] = None,
    stretch: Annotated[
        bool,
        typer.Option(
            "--stretch",
            help="Let each operator wait for every row, as if it called a slow service; then many"
            " tasks on a laptop are as fast as on many cores. How long is taken from the paper, or"
            " modelled where it does not say.",
        ),
    ] = False,
    cut: Annotated[
        bool,
        typer.Option(
            "--cut",
            help="Make each operator a streaming query of its own, so that each has its own pace;"
            " sse is cut once, behind its transactor.",
        ),
    ] = False,
    split: Annotated[
        str | None,
        typer.Option(help="Tasks that the operators begin with, in their order, such as 10:11:1."),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="An option that only this application has, such as omega=16; may be repeated."
            " `tidegate app` lists them.",
        ),
    ] = None,
    picture: Annotated[
        str | None, typer.Option(help="Where to write the picture; default: out/app-NAME.html.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the generated rows.")] = 1,
    json: Json = False,
) -> None:
    """Run a ready-made streaming application under a load, watch it, and verify its answers.

    Without a name it lists them: counts of words and clicks, a stock exchange, logos in a video,
    decision trees and others, most of them from research papers. Each computes real answers from
    rows that it makes up, and they are compared with those of a simple program over the same rows.
    """
    # Imported here because Spark takes a second to import, which would slow down `--help`.
    from tidegate.apps.application import Settings
    from tidegate.apps.catalogue import application, applications
    from tidegate.apps.run_application import run_application
    from tidegate.control.assembly import Assembly
    from tidegate.control.bounds import Bounds
    from tidegate.control.target import Target
    from tidegate.models.capacity.measured import read_capacity
    from tidegate.spark.session import session
    from tidegate.view.live.terminal import LiveView
    from tidegate.workload.parse import parse_profile

    if name is None:
        _print_list(applications(), json)
        return
    chosen = application(name)
    chosen.check()
    duration_s = chosen.seconds if seconds is None else seconds
    if not 1.0 <= duration_s <= 86_400.0:
        raise AskedWrongly(f"{duration_s:g} seconds are not possible; give 1 to 86400 (a day)")
    bounds = parse_bounds(cores)
    wanted = chosen.cores if bounds is None else (bounds.least, bounds.most)
    target_s = parse_duration(target or chosen.target)
    extra = parse_extra(option or [])
    chosen.check_options(extra)
    settings = Settings(
        rate=parse_profile(rate or chosen.rate),
        seconds=duration_s,
        seed=seed,
        stretch=stretch,
        cut=cut,
        extra=extra,
    )
    first = parse_split(split, chosen, extra)
    decides = policy_name(policy)
    drawn = picture or f"out/app-{name}.html"
    check_writable(drawn)
    # What no controller can be assembled from is refused here, before Spark starts.
    Assembly(
        target=Target(target_s),
        bounds=Bounds(*wanted),
        policy=decides,
        capacity=None if capacity is None else read_capacity(capacity),
    )
    asked: dict[str, Any] = {
        "app": name,
        "rate": rate or chosen.rate,
        "stretched": stretch,
        "cut": cut,
        "options": extra,
    }
    master = f"local[{max(wanted[1], sum((first or {}).values())) + 2}]"
    err.print(f"starting Spark on {master} ...", highlight=False, markup=False)
    spark = session(master, f"tidegate app {name}")
    try:
        title = title_of(name, stretched=stretch)
        with LiveView(err, target_s, title, seconds=duration_s) as live:
            ran = run_application(
                spark,
                chosen,
                settings,
                target=target,
                cores=wanted,
                policy=decides,
                capacity=capacity,
                split=first,
                on_record=live.show,
                on_failure=live.show_failure,
            )
    finally:
        spark.stop()
    _tell(ran, asked, drawn, json)


def title_of(name: str, *, stretched: bool) -> str:
    """What a run is called in its live view, its summary and its picture.

    Whoever sees a latency there has to know that it was made by waiting.
    """
    title = f"tidegate app {name}"
    return f"{title}, stretched: operators wait for every row" if stretched else title


def check_writable(picture: str) -> None:
    """Refuse a place where no file can be written, before a run and not after it."""
    place = Path(picture)
    try:
        there = place.exists()
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("a", encoding="utf-8"):
            pass
        if not there:
            place.unlink()
    except OSError as error:
        raise AskedWrongly(
            f"--picture {picture}: no file can be written there ({error.strerror}); give another"
            " place"
        ) from None


def parse_split(
    text: str | None, chosen: "Application", extra: Mapping[str, str]
) -> dict[str, int] | None:
    """Tasks by operator from a text such as `10:11:1`."""
    if text is None:
        return None
    parts = text.split(":")
    names = chosen.operators
    if len(parts) != len(names) or not all(one.isascii() and one.isdigit() for one in parts):
        raise AskedWrongly(
            f"--split {text}: give the tasks of {', '.join(names)}, such as"
            f" {':'.join('1' for _ in names)}"
        )
    tasks = dict(zip(names, (int(one) for one in parts), strict=True))
    chosen.check_split(tasks, extra)
    return tasks


def parse_extra(texts: list[str]) -> dict[str, str]:
    """Options by name from texts such as `omega=16`."""
    extra: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise AskedWrongly(f"--option {text}: write it as NAME=VALUE, such as omega=16")
        if name in extra:
            raise AskedWrongly(f"--option {text}: '{name}' is given twice; give it once")
        extra[name] = value
    return extra


def _print_list(known: "list[Application]", json: bool) -> None:
    if json:
        rows = [
            {
                "name": one.name,
                "paper": one.paper,
                "about": one.about,
                "rate": one.rate,
                "target": one.target,
                "options": dict(one.options),
            }
            for one in known
        ]
        print_json({"apps": rows})
        return
    table = Table("name", "what it computes", "rows a second")
    table.add_column("target", justify="right")
    for one in known:
        table.add_row(one.name, one.about, one.rate, exact_duration(parse_duration(one.target)))
    print_table(table)
    options = Table("name", "--option", "meaning")
    for one in known:
        for option, meaning in one.options.items():
            options.add_row(one.name, option, meaning)
    print_table(options)
    print_line("tidegate app NAME runs one; tidegate app --help has the options.")


def _tell(ran: "ApplicationRun", asked: dict[str, Any], picture: str, json: bool) -> None:
    """Write the picture, print the figures, and fail if the answers are wrong."""
    from tidegate.view.pages.run import write_picture
    from tidegate.view.summary import summarise

    title = title_of(ran.name, stretched=asked["stretched"])
    summary = summarise(ran.records, warm_up_s=min(WARM_S, ran.seconds / 3))
    summary = replace(summary, arrived_rows=ran.arrived)  # which is known exactly here
    verdict = ran.verdict
    document: dict[str, Any] = {
        **asked,
        **summary.document(),
        "verified": None if verdict is None else verdict.correct,
        "verdict": None if verdict is None else verdict.said,
        "figures": {} if verdict is None else dict(verdict.figures),
    }
    if picture:
        Path(picture).parent.mkdir(parents=True, exist_ok=True)
        write_picture(ran.records, picture, title, summary=summary)
        document["picture"] = picture
    if json:
        print_json(document)
    else:
        print_table(summary.table(title))
        lines = [summary.headline]
        if asked["stretched"]:
            lines.append("Operators waited for every row, as --stretch asks for.")
        lines.append("ended before all rows were processed" if verdict is None else verdict.said)
        lines += [f"picture: {picture}"] if picture else []
        for line in lines:
            print_line(line)
    if verdict is None:
        raise KeyboardInterrupt  # the command line ends with the code for it
    if not verdict.correct:
        raise TidegateError(f"the answers of '{ran.name}' are wrong: {verdict.said}")
