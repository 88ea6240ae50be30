"""Rolling Flight Distances as a pipeline (MST section IV-A)."""

from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from tidegate.apps.application import Application, BuiltApplication, Settings, Verdict
from tidegate.apps.collected import Collected
from tidegate.apps.event_progress import EventProgress
from tidegate.apps.flights.cells import PLACE, cell_map
from tidegate.apps.flights.near import NearPairs
from tidegate.apps.flights.options import MEANINGS, FlightOptions, flight_options
from tidegate.apps.flights.predict import REPORT
from tidegate.apps.flights.reference import AllReports, judged
from tidegate.apps.flights.tracks import SCHEMA, Tracks, report_map
from tidegate.apps.stretching import Stretched
from tidegate.pipelines.functions import latest, window
from tidegate.pipelines.keyed import KeyedFunction
from tidegate.pipelines.stream import Stream, pipeline
from tidegate.spark.sources.arrivals import arrivals
from tidegate.spark.state.read import read_state

TRACK, NEAR = "track", "near"
STRETCHED_S = {TRACK: 0.0004, NEAR: 0.0004}
"""Modelled: the paper prints no time per tuple."""
MOST_TASKS = 24


def flight_stream(
    source: Stream,
    tracks: Tracks,
    options: FlightOptions,
    *,
    times: Mapping[str, float | None],
    cut: bool = False,
) -> Stream:
    """The pairs behind a source whose rows are numbered by the column `seq`.

    `times` has the seconds per tuple of each operator; None: as fast as it is.
    """
    last = Stretched(tracked_reports(options), times[TRACK])
    tracked = source.map(report_map(tracks), SCHEMA, name="reports").keyed(
        TRACK, last, key="flight", tasks=(1, MOST_TASKS)
    )
    if cut:
        tracked = tracked.cut("tracked")
    return tracked.map(cell_map(options), PLACE, name="cells").keyed(
        NEAR,
        Stretched(NearPairs(options.near_m), times[NEAR]),
        key="cell",
        tasks=(1, MOST_TASKS),
    )


def tracked_reports(options: FlightOptions) -> KeyedFunction:
    """The last report of a flight in each window."""
    every, size = f"{options.every_s} seconds", f"{options.window_s} seconds"
    return window(latest("seq", *REPORT, by="seq"), every=every, size=size, event_time="at")


def behind(source: Stream, settings: Settings) -> Stream:
    """The pairs behind any source of numbered rows, with the settings' options."""
    options = flight_options(settings.extra)
    tracks = Tracks(settings.rate, options.aircraft, settings.seed)
    return flight_stream(
        source, tracks, options, times=settings.times(STRETCHED_S), cut=settings.cut
    )


def build(spark: SparkSession, settings: Settings, directory: Path) -> BuiltApplication:
    """The pipeline over reports that arrive when they are sent."""
    options = flight_options(settings.extra)
    tracks = Tracks(settings.rate, options.aircraft, settings.seed)
    rows = arrivals(
        spark, settings.rate, seed=settings.seed, seconds=settings.seconds, partitions=2
    )
    collected = Collected(directory)
    pairs = behind(pipeline("flights", rows, arrival="timestamp"), settings)

    def verify(checkpoint: str) -> Verdict:
        reports = AllReports.of(tracks, settings.arrived, options)
        state, progress = read_state(checkpoint, TRACK), EventProgress.of(checkpoint, TRACK)
        return judged(reports, collected.rows(), state, settings.arrived, progress)

    return BuiltApplication(stream=pairs.to(collected, name="pairs"), verify=verify)


APPLICATION = Application(
    name="flights",
    paper="MST IV-A",
    about="Rolling Flight Distances: flights that will soon be close to each other",
    rate="constant:1000",
    target="5 seconds",
    cores=(1, 8),
    operators=(TRACK, NEAR),
    stretched_s=STRETCHED_S,
    most_tasks=lambda _: dict.fromkeys((TRACK, NEAR), MOST_TASKS),
    build=build,
    options=MEANINGS,
    read_options=flight_options,
    behind=lambda source, settings: behind(source, settings).to("noop", name="pairs"),
)
