"""Rolling Hashtag Count as a pipeline (MST section IV-A)."""

from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from tidegate.apps.application import Application, BuiltApplication, Settings, Verdict
from tidegate.apps.collected import Collected
from tidegate.apps.event_progress import EventProgress
from tidegate.apps.hashtags.extract import HASHTAG, hashtags
from tidegate.apps.hashtags.options import MEANINGS, HashtagOptions, hashtag_options
from tidegate.apps.hashtags.reference import judged
from tidegate.apps.hashtags.tweets import SCHEMA, HashtagTweets, tweet_map
from tidegate.apps.stretching import Stretched, stretched_map
from tidegate.pipelines.functions import count, window
from tidegate.pipelines.keyed import KeyedFunction
from tidegate.pipelines.stream import Stream, pipeline
from tidegate.pipelines.task_bounds import Tasks
from tidegate.spark.sources.arrivals import arrivals
from tidegate.spark.state.read import read_state

EXTRACT, COUNT = "extract", "count"
STRETCHED_S = {EXTRACT: 0.0002, COUNT: 0.0001}
"""Modelled: the paper prints no time per tuple."""
MOST_TASKS = 24


def hashtag_stream(
    source: Stream,
    tweets: HashtagTweets,
    *,
    times: Mapping[str, float | None],
    cut: bool = False,
    extract_tasks: Tasks = (1, MOST_TASKS),
) -> Stream:
    """The counts behind a source whose rows are numbered by the column `seq`.

    `times` has the seconds per tuple of each operator; None: as fast as it is.
    """
    found = source.map(tweet_map(tweets), SCHEMA, name="tweets").map(
        stretched_map(hashtags, times[EXTRACT]), HASHTAG, name=EXTRACT, tasks=extract_tasks
    )
    if cut:
        found = found.cut("hashtags")
    counts = Stretched(counted(tweets.options), times[COUNT])
    return found.keyed(COUNT, counts, key="hashtag", tasks=(1, MOST_TASKS))


def counted(options: HashtagOptions) -> KeyedFunction:
    """How often a hashtag occurs in each window."""
    every, size = f"{options.every_s} seconds", f"{options.window_s} seconds"
    return window(count(), every=every, size=size, event_time="at")


def behind(source: Stream, settings: Settings) -> Stream:
    """The counts behind any source of numbered rows, with the settings' options."""
    tweets = HashtagTweets(settings.rate, hashtag_options(settings.extra), settings.seed)
    return hashtag_stream(source, tweets, times=settings.times(STRETCHED_S), cut=settings.cut)


def build(spark: SparkSession, settings: Settings, directory: Path) -> BuiltApplication:
    """The pipeline over tweets that arrive when they are written."""
    tweets = HashtagTweets(settings.rate, hashtag_options(settings.extra), settings.seed)
    rows = arrivals(
        spark, settings.rate, seed=settings.seed, seconds=settings.seconds, partitions=2
    )
    collected = Collected(directory)
    counts = behind(pipeline("hashtags", rows, arrival="timestamp"), settings)

    def verify(checkpoint: str) -> Verdict:
        state, progress = read_state(checkpoint, COUNT), EventProgress.of(checkpoint, COUNT)
        return judged(tweets, settings.arrived, collected.rows(), state, progress)

    return BuiltApplication(stream=counts.to(collected, name="counts"), verify=verify)


APPLICATION = Application(
    name="hashtags",
    paper="MST IV-A",
    about="Rolling Hashtag Count: hashtags of tweets in the last 60 seconds, every 5 seconds",
    rate="constant:2000",
    target="5 seconds",
    cores=(1, 8),
    operators=(EXTRACT, COUNT),
    stretched_s=STRETCHED_S,
    most_tasks=lambda _: dict.fromkeys((EXTRACT, COUNT), MOST_TASKS),
    build=build,
    options=MEANINGS,
    read_options=hashtag_options,
    behind=lambda source, settings: behind(source, settings).to("noop", name="counts"),
)
