"""The pipeline of video logo detection: spout, extractor, matcher, aggregator (DRS fig. 4)."""

from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from tidegate.apps.application import BuiltApplication, Settings, Verdict
from tidegate.apps.collected import Collected
from tidegate.apps.vld.operators import (
    FEATURES,
    FRAMES,
    PAIRS,
    aggregator,
    extractor,
    frames,
    matcher,
)
from tidegate.apps.vld.verdict import emitted, judged
from tidegate.pipelines.stream import pipeline
from tidegate.spark.sources.arrivals import arrivals

SHARDS = 64


def vld_flow(
    spark: SparkSession,
    settings: Settings,
    directory: Path,
    stretched_s: Mapping[str, float],
    most_tasks: int,
) -> BuiltApplication:
    """Make it; `stretched_s` has the seconds per frame of each operator if it is stretched."""
    tasks = (1, most_tasks)
    row_s = settings.times(stretched_s)
    source = arrivals(
        spark, settings.rate, seed=settings.seed, seconds=settings.seconds, partitions=2
    )
    video = pipeline("vld", source, arrival="timestamp").map(
        frames(settings.seed), FRAMES, name="frames"
    )
    features = video.map(extractor(row_s["extract"]), FEATURES, name="extract", tasks=tasks)
    if settings.cut:
        features = features.cut("features")
    pairs = features.map(matcher(row_s["match"]), PAIRS, name="match", tasks=tasks)
    if settings.cut:
        pairs = pairs.cut("pairs")
    logos = pairs.keyed(
        "aggregate",
        aggregator(row_s["aggregate"]),
        key="frame",
        shards=SHARDS,
        tasks=tasks,
    )
    collected = Collected(directory)

    def verify(checkpoint: str) -> Verdict:
        return judged(emitted(collected.rows()), settings.arrived, settings.seed)

    return BuiltApplication(stream=logos.to(collected, name="logos"), verify=verify)
