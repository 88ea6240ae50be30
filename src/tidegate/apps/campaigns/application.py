"""Yahoo's advertising pipeline, Streaming-Benchmarks in the paper (Flink-ER 4.2)."""

from pathlib import Path

from tidegate.apps.application import Application, Settings, Verdict
from tidegate.apps.campaigns.events import SCHEMA, AdEvents, event_map
from tidegate.apps.campaigns.operators import JOINED, VIEWS, join, parse, views_in_windows
from tidegate.apps.campaigns.options import MEANINGS, campaign_options
from tidegate.apps.campaigns.reference import compare, expected_views
from tidegate.apps.collected import Collected
from tidegate.apps.event_progress import EventProgress
from tidegate.apps.numbered import NumberedFlow, behind, on_arrivals
from tidegate.apps.stretching import Stretched, stretched_map
from tidegate.pipelines.stream import Stream
from tidegate.spark.state.read import read_state

NAME, PARSE, JOIN, COUNT = "campaigns", "parse", "join", "count"
TASKS = (1, 24)
SHARDS = 128
STRETCHED_S = {PARSE: 0.002, JOIN: 0.003, COUNT: 0.002}
"""Modelled, as the paper prints none: per event, and per view behind `parse`."""


def flow(source: Stream, settings: Settings, directory: Path) -> NumberedFlow:
    """The operators behind a source of numbered rows; event time follows the settings' rate."""
    options = campaign_options(settings.extra)
    events = AdEvents(settings.rate, options, settings.seed)
    row_s = settings.times(STRETCHED_S)
    views = source.map(event_map(events), SCHEMA, name="events").map(
        stretched_map(parse, row_s[PARSE]), VIEWS, name=PARSE, tasks=TASKS
    )
    if settings.cut:
        views = views.cut("views")
    joined = views.map(
        stretched_map(join(options, settings.seed), row_s[JOIN]), JOINED, name=JOIN, tasks=TASKS
    )
    if settings.cut:
        joined = joined.cut("joined")
    counted = joined.keyed(
        COUNT,
        Stretched(views_in_windows(options), row_s[COUNT]),
        key="campaign",
        shards=SHARDS,
        tasks=TASKS,
    )
    collected = Collected(directory)

    def verify(checkpoint: str, arrived: int) -> Verdict:
        expected = expected_views(events, arrived)
        state, progress = read_state(checkpoint, COUNT), EventProgress.of(checkpoint, COUNT)
        return compare(collected.rows(), state, expected, arrived, progress, options)

    return NumberedFlow(counted.to(collected, name="windows"), verify)


APPLICATION = Application(
    name=NAME,
    paper="Flink-ER 4.2",
    about="Yahoo's benchmark: views per campaign and window, from events in JSON",
    rate="ramp:150-1200/60",
    target="4 seconds",
    cores=(3, 12),
    operators=(PARSE, JOIN, COUNT),
    stretched_s=STRETCHED_S,
    most_tasks=lambda _: dict.fromkeys((PARSE, JOIN, COUNT), TASKS[1]),
    build=on_arrivals(NAME, flow),
    behind=behind(flow),
    options=MEANINGS,
    read_options=campaign_options,
)
