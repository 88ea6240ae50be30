"""Windows are closed and emitted on Spark: behind a full source it is known in which batch.

A batch has three seconds of event time, so windows of one and two seconds are closed in the second
batch, however slow the machine is.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tidegate.apps.application import Settings, Verdict
from tidegate.apps.campaigns.application import COUNT as CAMPAIGNS
from tidegate.apps.campaigns.application import flow
from tidegate.apps.collected import Collected
from tidegate.apps.event_progress import EventProgress
from tidegate.apps.flights.application import STRETCHED_S as FLIGHTS_S
from tidegate.apps.flights.application import TRACK, flight_stream
from tidegate.apps.flights.options import FlightOptions
from tidegate.apps.flights.reference import AllReports
from tidegate.apps.flights.reference import judged as flights_judged
from tidegate.apps.flights.tracks import Tracks
from tidegate.apps.full_pipeline import FullPipeline
from tidegate.apps.full_source import full_source
from tidegate.apps.hashtags.application import COUNT, hashtag_stream
from tidegate.apps.hashtags.application import STRETCHED_S as HASHTAGS_S
from tidegate.apps.hashtags.options import HashtagOptions
from tidegate.apps.hashtags.reference import judged as hashtags_judged
from tidegate.apps.hashtags.tweets import HashtagTweets
from tidegate.apps.storm_benchmark import rolling_count, unique_visitor
from tidegate.apps.storm_benchmark.topology import Answers, Topology
from tidegate.pipelines.stream import Stream, pipeline
from tidegate.spark.state.read import read_state
from tidegate.workload.keys import Keys
from tidegate.workload.profile import constant

pytestmark = pytest.mark.spark
ROWS_PER_S = 400
RATE = constant(ROWS_PER_S)
SETTINGS = Settings(rate=RATE, seconds=1.0)

Verify = Callable[[str, int, Collected], Verdict]
Made = tuple[str, Callable[[Stream, Collected], Stream], Verify]
"""The windowed operator, the pipeline behind a source, and the verifier of so many rows."""


def of_hashtags() -> Made:
    tweets = HashtagTweets(RATE, HashtagOptions(window_s=2, every_s=1), 1)

    def build(source: Stream, emitted: Collected) -> Stream:
        plain = SETTINGS.times(HASHTAGS_S)
        return hashtag_stream(source, tweets, times=plain, extract_tasks=None).to(emitted)

    def verify(checkpoint: str, rows: int, emitted: Collected) -> Verdict:
        state, progress = read_state(checkpoint, COUNT), EventProgress.of(checkpoint, COUNT)
        return hashtags_judged(tweets, rows, emitted.rows(), state, progress)

    return COUNT, build, verify


def of_flights() -> Made:
    options = FlightOptions(aircraft=300, window_s=2, every_s=1, near_km=80.0)
    tracks = Tracks(RATE, options.aircraft, 1)

    def build(source: Stream, emitted: Collected) -> Stream:
        return flight_stream(source, tracks, options, times=SETTINGS.times(FLIGHTS_S)).to(emitted)

    def verify(checkpoint: str, rows: int, emitted: Collected) -> Verdict:
        state, progress = read_state(checkpoint, TRACK), EventProgress.of(checkpoint, TRACK)
        reports = AllReports.of(tracks, rows, options)
        return flights_judged(reports, emitted.rows(), state, rows, progress)

    return TRACK, build, verify


def of_campaigns() -> Made:
    settings = replace(SETTINGS, extra={"campaigns": "10", "window_s": "1"})
    made = []

    def build(source: Stream, emitted: Collected) -> Stream:
        made.append(flow(source, settings, emitted.directory))
        return made[-1].stream

    def verify(checkpoint: str, rows: int, emitted: Collected) -> Verdict:
        return made[-1].verify(checkpoint, rows)

    return CAMPAIGNS, build, verify


def of_topology(topology: Topology) -> Made:
    extra = {"window_s": "2", "every_s": "1"}
    assert topology.keyed is not None
    keyed = topology.keyed

    def build(source: Stream, emitted: Collected) -> Stream:
        settings = replace(SETTINGS, extra=extra)
        return topology.behind(source, settings, RATE).to(emitted)

    def verify(checkpoint: str, rows: int, emitted: Collected) -> Verdict:
        settings = replace(SETTINGS, seconds=rows / ROWS_PER_S, extra=extra)
        state, progress = read_state(checkpoint, keyed), EventProgress.of(checkpoint, keyed)
        return topology.check(settings, Answers(state, emitted.rows(), progress))

    return keyed, build, verify


CASES: dict[str, Callable[[], Made]] = {
    "hashtags": of_hashtags,
    "flights": of_flights,
    "campaigns": of_campaigns,
    "rolling-count": lambda: of_topology(rolling_count.TOPOLOGY),
    "unique-visitor": lambda: of_topology(unique_visitor.TOPOLOGY),
}


@pytest.mark.parametrize("case", CASES)
def test_windows_are_emitted_and_right(spark, tmp_path: Path, case: str) -> None:
    operator, build, verify = CASES[case]()
    emitted = Collected(tmp_path / "emitted")

    def started() -> Stream:
        rows = full_source(spark, Keys(1), seed=1, batch_rows=3 * ROWS_PER_S)
        return build(pipeline("full", rows, arrival="timestamp"), emitted)

    place = str(tmp_path / "checkpoint")
    full = FullPipeline(spark, started, place, operator=operator, tasks=2)
    try:
        full.await_batches(3)
    finally:
        full.stop()
    arrived = 3 * ROWS_PER_S * len(full.results)
    verdict = verify(place, arrived, emitted)
    assert verdict.correct, verdict.said
    told = emitted.rows()
    assert told is not None and told.num_rows > 0
    nothing = Collected(tmp_path / "nothing")
    if case != "campaigns":  # its verifier has a sink of its own
        assert not verify(place, arrived, nothing).correct
