"""An application of the papers behind a source that is always full."""

from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from tidegate.apps.application import Settings
from tidegate.apps.capacity.full_flow import FullFlow, check_form, without_sinks
from tidegate.apps.catalogue import application, applications
from tidegate.apps.full_source import full_source
from tidegate.errors import AskedWrongly
from tidegate.pipelines.stream import Stream, pipeline
from tidegate.units import parse_duration
from tidegate.workload.keys import Keys
from tidegate.workload.parse import parse_profile
from tidegate.workload.profile import Profile, constant


def application_flow(
    name: str,
    *,
    stretch: bool = False,
    pace: float = 1.0,
    seed: int = 1,
    rate: str | None = None,
    extra: Mapping[str, str] | None = None,
) -> FullFlow:
    """The application of this name; `extra` are options that only it has, as texts.

    `rate` is how many rows a second of event time has, as a profile; None: the application's own.

    With `stretch` its operators take the paper's time per tuple, divided by `pace`, by waiting.
    """
    chosen = application(name)
    behind = chosen.behind
    if behind is None:
        known = ", ".join(one.name for one in applications() if one.behind is not None)
        raise AskedWrongly(
            f"'{name}' has a source of its own, which cannot always be full; calibrate one of"
            f" {known}"
        )
    chosen.check()
    options = dict(extra or {})
    chosen.check_options(options)
    settings = Settings(
        rate=steady(parse_profile(rate or chosen.rate), chosen.seconds),
        seconds=chosen.seconds,
        seed=seed,
        stretch=stretch,
        pace=pace,
        extra=options,
    )

    def put(spark: SparkSession, size_file: Path, partitions: int) -> Stream:
        rows = full_source(spark, Keys(1), seed=seed, batch_rows=size_file, partitions=partitions)
        stream = behind(pipeline(name, rows, arrival="timestamp"), settings)
        check_form(stream, f"'{name}'")
        return without_sinks(stream)

    return FullFlow(
        name=name,
        behind=put,
        stretched=stretch,
        most_tasks=max(chosen.most_tasks(options).values()),
        target_s=parse_duration(chosen.target),
    )


def steady(rate: Profile, seconds: float) -> Profile:
    """The mean of a rate over so long: a second of event time then always has as many rows.

    Rows are handed out as fast as they are processed, so event time follows their numbers and not
    the clock. With a rate that rises and falls, the rows of a window would too, and no throughput
    would converge.
    """
    return constant(rate.count(round(seconds * 1000)) / seconds)
