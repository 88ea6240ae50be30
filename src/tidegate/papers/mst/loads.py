"""The paper's three workloads (fig. 5), and which applications run under each of them (table II).

A real week is given as a file by an option. Without one, a generated week of the same shape takes
its place, and every result says so.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tidegate.sim.capacity.applications import APPLICATIONS, ModelledApplication
from tidegate.sim.capacity.backtest import FEWEST_ROWS, TraceForecasts
from tidegate.workload.trace import read_trace
from tidegate.workload.weeks import WEEKS


@dataclass(frozen=True, slots=True)
class PairedLoad:
    """A week of load with the applications that the paper runs under it."""

    name: str
    """As in table II."""
    option: str
    """The option that names its file."""
    generated: str
    """The generated week that stands in for the file."""
    applications: tuple[str, ...]


LOADS = (
    PairedLoad(
        "World Cup 98",
        "worldcup",
        "worldcup-like",
        ("grep", "rolling-count", "unique-visitor", "page-view", "data-clean", "vht"),
    ),
    PairedLoad("Tweets", "twitter", "tweets-like", ("rolling-hashtag-count",)),
    PairedLoad("ADS-B", "adsb", "flights-like", ("rolling-flight-distances",)),
)
"""In the order of table II."""
QUICK_APPLICATIONS = ("grep", "rolling-hashtag-count", "rolling-flight-distances")
"""One application of each load, for a short run."""
OPTIONS = {
    load.option: f"the week of {load.name}, a CSV file minute,count; generated otherwise"
    for load in LOADS
}


@dataclass(frozen=True, slots=True)
class LoadWeek:
    """A workload with its trace."""

    load: PairedLoad
    forecasts: TraceForecasts
    """The trace and its forecasts, which are computed on first use."""
    source: str
    """Where the trace comes from, in words."""


def asked_weeks(
    extra: Mapping[str, str], loads: Iterable[PairedLoad] = LOADS
) -> tuple[LoadWeek, ...]:
    """The weeks in the files that the options name, and generated ones for the others."""
    return tuple(_week(load, extra.get(load.option)) for load in loads)


def _week(load: PairedLoad, file: str | None) -> LoadWeek:
    if file is None:
        trace, source = WEEKS[load.generated](), f"generated ({load.generated})"
    else:
        trace, source = read_trace(Path(file), FEWEST_ROWS), f"read from {Path(file).name}"
    return LoadWeek(load, TraceForecasts(trace), source)


def paired(weeks: Iterable[LoadWeek], *, quick: bool) -> list[tuple[LoadWeek, ModelledApplication]]:
    """Every application beside its own week; one application per week for a short run."""
    return [
        (week, APPLICATIONS[name])
        for week in weeks
        for name in week.load.applications
        if not quick or name in QUICK_APPLICATIONS
    ]


def said(weeks: Iterable[LoadWeek]) -> str:
    """Where the weeks come from, as a note."""
    return "Loads: " + "; ".join(f"{week.load.name} {week.source}" for week in weeks) + "."
