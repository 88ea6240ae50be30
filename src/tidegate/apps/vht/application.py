"""The vertical Hoeffding tree as a pipeline (MST section IV-A), with its loop."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from tidegate.apps.application import Application, BuiltApplication, Settings, Verdict
from tidegate.apps.collected import Collected
from tidegate.apps.stretching import Stretched
from tidegate.apps.vht.instances import Instances, instance_map
from tidegate.apps.vht.messages import INSTANCE, KEY, TO_MODEL
from tidegate.apps.vht.model import Model
from tidegate.apps.vht.options import MEANINGS, vht_options
from tidegate.apps.vht.statistics import SLICE, AttributeStatistics, slices
from tidegate.apps.vht.tree import compile_loops
from tidegate.apps.vht.verdict import Learned, judged
from tidegate.pipelines.derived import Derived
from tidegate.pipelines.stream import Stream, pipeline
from tidegate.spark.sources.arrivals import arrivals
from tidegate.spark.state.read import read_state

MODEL, STATISTICS = "model", "statistics"
STRETCHED_S = {MODEL: 0.0001, STATISTICS: 0.000002}
"""Modelled, because the paper prints no time per tuple: its VHT does not scale at all (V-B), so the
one task of the model is what limits it, and not the ten attributes of each instance."""
PREDICTION = "seq long, label long, predicted long"
MOST_TASKS = 24


def vht_stream(
    source: Stream,
    instances: Instances,
    *,
    times: Mapping[str, float | None],
    cut: bool = False,
) -> Stream:
    """The predictions behind a source whose rows are numbered by the column `seq`.

    `times` has the seconds per tuple of each operator; None: as fast as it is.
    """
    compile_loops()
    given = source.map(instance_map(instances), TO_MODEL, name="instances")
    back = given.loop("answers")
    told = given.merge(back).keyed(
        MODEL,
        Stretched(Model(instances.options), times[MODEL]),
        key=KEY,
        shards=1,
        tasks=(1, 1),
        order_by="seq",
    )
    attributes = instances.options.attributes
    sliced = told.map(partial(slices, attributes=attributes), SLICE, name="slices")
    if cut:
        sliced = sliced.cut("sliced")
    counted = Stretched(AttributeStatistics(), times[STATISTICS])
    sliced.keyed(STATISTICS, counted, key="slot", tasks=(1, MOST_TASKS)).feed(back)
    return told.map(predictions, PREDICTION, name="predictions")


def predictions(rows: pa.Table) -> Derived:
    """A map that keeps what the model predicted."""
    kept = rows["kind"].to_numpy() == INSTANCE
    names = ["seq", "label", "predicted"]
    return Derived(rows.select(names).filter(pa.array(kept)), kept)


def behind(source: Stream, settings: Settings) -> Stream:
    """The pipeline behind any source of numbered rows, with the settings' options."""
    instances = Instances(vht_options(settings.extra), settings.seed)
    return vht_stream(source, instances, times=settings.times(STRETCHED_S), cut=settings.cut)


def build(spark: SparkSession, settings: Settings, directory: Path) -> BuiltApplication:
    """The pipeline, with a verifier of its tree and of all its predictions."""
    instances = Instances(vht_options(settings.extra), settings.seed)
    rows = arrivals(
        spark, settings.rate, seed=settings.seed, seconds=settings.seconds, partitions=2
    )
    collected = Collected(directory)
    predicted = behind(pipeline("vht", rows, arrival="timestamp"), settings)

    def verify(checkpoint: str) -> Verdict:
        from tidegate.apps.vht.river_tree import river_predictions

        learned = Learned(
            collected.rows(), read_state(checkpoint, MODEL), read_state(checkpoint, STATISTICS)
        )
        arrived = settings.arrived
        peer = river_predictions(instances, np.arange(arrived, dtype=np.int64))
        return judged(learned, instances, arrived, peer)

    return BuiltApplication(stream=predicted.to(collected, name="predicted"), verify=verify)


APPLICATION = Application(
    name="vht",
    paper="MST IV-A",
    about="vertical Hoeffding tree: a decision tree that is learned from a stream, with a loop",
    rate="constant:400",
    target="5 seconds",
    cores=(1, 8),
    operators=(MODEL, STATISTICS),
    stretched_s=STRETCHED_S,
    most_tasks=lambda _: {MODEL: 1, STATISTICS: MOST_TASKS},
    build=build,
    needs=("river",),
    options=MEANINGS,
    read_options=vht_options,
    behind=lambda source, settings: behind(source, settings).to("noop", name="predicted"),
)
