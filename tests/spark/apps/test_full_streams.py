"""MST's applications behind a source that is always full, as they are calibrated."""

from collections.abc import Callable

import pytest

from tidegate.apps.application import Settings
from tidegate.apps.flights.application import STRETCHED_S as FLIGHTS_S
from tidegate.apps.flights.application import TRACK, flight_stream
from tidegate.apps.flights.options import FlightOptions
from tidegate.apps.flights.tracks import Tracks
from tidegate.apps.full_pipeline import FullPipeline
from tidegate.apps.full_source import full_source
from tidegate.apps.hashtags.application import COUNT, hashtag_stream
from tidegate.apps.hashtags.application import STRETCHED_S as HASHTAGS_S
from tidegate.apps.hashtags.options import HashtagOptions
from tidegate.apps.hashtags.tweets import HashtagTweets
from tidegate.apps.vht.application import MODEL, vht_stream
from tidegate.apps.vht.application import STRETCHED_S as VHT_S
from tidegate.apps.vht.instances import Instances
from tidegate.apps.vht.options import VhtOptions
from tidegate.pipelines.stream import Stream, pipeline
from tidegate.workload.keys import Keys
from tidegate.workload.profile import constant

pytestmark = pytest.mark.spark

RATE = constant(1000)
"""Rows in a second of event time. The source hands them out as fast as they are processed."""
SETTINGS = Settings(rate=RATE, seconds=1.0)


def vht(source: Stream) -> Stream:
    plain = SETTINGS.times(VHT_S)
    return vht_stream(source, Instances(VhtOptions(attributes=4), 1), times=plain)


def hashtags(source: Stream) -> Stream:
    plain = SETTINGS.times(HASHTAGS_S)
    tweets = HashtagTweets(RATE, HashtagOptions(), 1)
    return hashtag_stream(source, tweets, times=plain, extract_tasks=None)


def flights(source: Stream) -> Stream:
    plain = SETTINGS.times(FLIGHTS_S)
    options = FlightOptions(aircraft=500)
    return flight_stream(source, Tracks(RATE, 500, 1), options, times=plain)


@pytest.mark.parametrize(
    ("stream", "operator", "least"),
    [(vht, MODEL, 6000), (hashtags, COUNT, 5000), (flights, TRACK, 6000)],
)
def test_rows_are_processed_at_once(
    spark, tmp_path, stream: Callable[[Stream], Stream], operator: str, least: int
) -> None:
    def build() -> Stream:
        rows = full_source(spark, Keys(1), seed=1, batch_rows=3000)
        return stream(pipeline("full", rows, arrival="timestamp"))

    full = FullPipeline(spark, build, str(tmp_path / "checkpoint"), operator=operator, tasks=2)
    try:
        full.await_batches(2, patience_s=120.0)
    finally:
        full.stop()
    assert full.rows >= least
