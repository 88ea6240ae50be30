"""`tidegate calibrate`: measures how much a pipeline processes on numbers of cores."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate.commands.app import parse_extra
from tidegate.commands.output import Json, err, progress
from tidegate.errors import AskedWrongly
from tidegate.units import parse_duration

if TYPE_CHECKING:
    from tidegate.apps.capacity.full_flow import FullFlow
    from tidegate.models.capacity.calibration_plan import CalibrationPlan


def calibrate(
    pipeline: Annotated[
        str,
        typer.Argument(
            metavar="APP|SCRIPT.py",
            help="An application of `tidegate app`, or a script that defines flow(rows).",
        ),
    ],
    counts: Annotated[
        str, typer.Option(help="Numbers of cores to measure and to fit the curves to.")
    ] = "1,2,3,4,6",
    check: Annotated[
        str | None,
        typer.Option(
            help="Further numbers of cores to measure, to see how far off predictions are."
        ),
    ] = None,
    repeats: Annotated[int, typer.Option(help="How often each number is measured.")] = 2,
    target: Annotated[
        str | None,
        typer.Option(
            help="Also predict how many rows a second are possible within this mean latency.",
            show_default="that of the application",
        ),
    ] = None,
    most: Annotated[
        int | None,
        typer.Option(
            help="The largest number of cores to predict.",
            show_default="twice the largest that is measured",
        ),
    ] = None,
    batch: Annotated[
        str, typer.Option(help="How long a micro-batch is to take; its rows follow from that.")
    ] = "2s",
    k: Annotated[
        int,
        typer.Option(
            "--k",
            help="When a measurement is over: of the last --n micro-batches, so many were about as"
            " fast as the one before them.",
        ),
    ] = 4,
    n: Annotated[
        int, typer.Option("--n", help="How many of the last micro-batches --k looks at.")
    ] = 5,
    delta: Annotated[
        float, typer.Option(help="What counts as about as fast: 0.05 is a difference of 5 %.")
    ] = 0.05,
    most_samples: Annotated[
        int, typer.Option(help="A measurement that does not get steady ends after so many batches.")
    ] = 30,
    validations: Annotated[
        int,
        typer.Option(
            help="At most so many further numbers of cores are measured, where two possible curves"
            " differ most."
        ),
    ] = 2,
    stretch: Annotated[
        bool,
        typer.Option(
            "--stretch",
            help="Let each operator of an application wait for every row, as if it called a slow"
            " service; then many tasks on a laptop are as fast as on many cores.",
        ),
    ] = False,
    option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="An option that only this application has; may be repeated.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of an application's rows.")] = 1,
    rows: Annotated[
        Path | None,
        typer.Option(help="For a script: a sample of its rows, as Parquet; it is repeated."),
    ] = None,
    sinks: Annotated[
        bool,
        typer.Option(
            "--sinks", help="For a script: let its sinks write. Otherwise they drop all rows."
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="The capacity file to write.", show_default="out/capacity-NAME.json"),
    ] = None,
    json: Json = False,
) -> None:
    """Measure how many rows a second a pipeline can process on different numbers of cores.

    The pipeline is given rows as fast as it takes them, on one number of cores after the other,
    each until its throughput is steady. A curve through the measurements predicts the other
    numbers. The result is a capacity file: tidegate plan says by it how many cores a load needs,
    and start, backtest and whatif read it as well. That takes some minutes; Ctrl-C keeps what was
    measured so far.
    """
    # Imported here because Spark takes a second to import, which would slow down `--help`.
    from tidegate.apps.capacity.calibrate import calibrate as measure
    from tidegate.commands.calibrate_answer import tell
    from tidegate.commands.calibrate_progress import CalibrationProgress
    from tidegate.models.capacity.calibration_plan import CalibrationPlan
    from tidegate.models.capacity.convergence import Convergence
    from tidegate.spark.session import session

    plan = CalibrationPlan(
        counts=parse_cores("counts", counts),
        checks=() if check is None else parse_cores("check", check),
        repeats=repeats,
        rule=Convergence(close=k, latest=n, delta=delta),
        most_samples=most_samples,
        batch_s=parse_duration(batch),
        most=most,
        validations=validations,
    )
    target_s = None if target is None else parse_duration(target)
    flow = _flow(pipeline, stretch, option or [], seed, rows, sinks=sinks)
    flow.check_cores(plan.largest)
    file = out or Path(f"out/capacity-{flow.name}.json")
    if file.is_dir() or (out is not None and not file.parent.is_dir()):
        raise AskedWrongly(
            f"--out {file}: a file cannot be written there; give a path in a directory that exists"
        )
    master = f"local[{plan.predicted}]"
    _say(f"starting Spark on {master} ...")
    for note in notes(flow, plan):
        _say(note)
    spark = session(master, f"tidegate calibrate {flow.name}")
    try:
        with progress(f"calibrate {flow.name}") as shown:
            told = CalibrationProgress(shown, plan)
            found = measure(spark, flow, plan, on_step=told.step, on_measured=told.measured)
    finally:
        spark.stop()
    file.parent.mkdir(parents=True, exist_ok=True)
    found.measured.write(file)
    tell(found, target_s or flow.target_s, notes(flow, plan), file, json)
    if found.interrupted:
        raise KeyboardInterrupt  # the command line ends with the code for it


def parse_cores(option: str, text: str) -> tuple[int, ...]:
    """Numbers of cores from a text such as `1,2,4`, each once, in rising order."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise AskedWrongly(f"--{option} {text}: give numbers of cores, such as 1,2,3,4,6")
    return tuple(sorted({int(part) for part in parts}))


def notes(flow: "FullFlow", plan: "CalibrationPlan") -> tuple[str, ...]:
    """What a reader of the figures has to know about the machine."""
    if flow.stretched:
        return (
            "stretched: operators wait until the paper's time per tuple is over, so a core is a"
            " task that waits",
        )
    here = os.cpu_count() or 1
    beyond = [str(one) for one in sorted({*plan.counts, *plan.checks}) if one > here]
    if not beyond:
        return ()
    return (
        f"this machine has {here} cores: on {', '.join(beyond)} cores, tasks share them, and"
        " whatever computes gets no faster",
    )


def _flow(
    pipeline: str,
    stretch: bool,
    option: list[str],
    seed: int,
    rows: Path | None,
    *,
    sinks: bool,
) -> "FullFlow":
    if not pipeline.endswith(".py"):
        from tidegate.apps.capacity.application_flow import application_flow

        for name, given in (("--rows", rows is not None), ("--sinks", sinks)):
            if given:
                raise AskedWrongly(f"{name} is for a script; '{pipeline}' makes its own rows")
        return application_flow(pipeline, stretch=stretch, seed=seed, extra=parse_extra(option))
    from tidegate.apps.capacity.script_flow import script_flow

    for name, given in (("--stretch", stretch), ("--option", bool(option))):
        if given:
            raise AskedWrongly(f"{name} is for an application; {pipeline} is a script")
    if rows is None:
        raise AskedWrongly(
            f"{pipeline} needs --rows: give a sample of the rows that it reads, as Parquet"
        )
    return script_flow(Path(pipeline), rows, sinks=sinks)


def _say(line: str) -> None:
    err.print(line, highlight=False, markup=False)
