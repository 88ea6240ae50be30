"""The micro-benchmark as an application: the topology of Elasticutor's figure 5."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import SparkSession

from tidegate.apps.application import Application, BuiltApplication, Settings, Verdict
from tidegate.apps.micro import calculator as calculating
from tidegate.apps.micro.calculator import Calculator
from tidegate.apps.micro.generator import SCHEMA, generator
from tidegate.apps.micro.options import MEANINGS, MicroOptions, micro_options
from tidegate.apps.micro.reference import compare, reference
from tidegate.apps.stretching import Stretched, Weights
from tidegate.pipelines.stream import Stream, pipeline
from tidegate.pipelines.task_bounds import Tasks
from tidegate.spark.sources.arrivals import arrivals
from tidegate.spark.state.read import read_state

GENERATOR, CALCULATOR = "generator", calculating.NAME
MOST_TASKS = 24


def micro_stream(
    source: Stream,
    options: MicroOptions,
    *,
    seed: int,
    row_s: float | None,
    cut: bool = False,
    generator_tasks: Tasks = (1, MOST_TASKS),
    calculator_tasks: Tasks = None,
) -> Stream:
    """Generator and calculator behind a source with the columns of `arrivals`.

    The calculator takes `row_s` for a tuple; None: as fast as it is.
    """
    tuples = source.map(
        generator(options, seed),
        SCHEMA,
        name=GENERATOR,
        tasks=generator_tasks,
    )
    if cut:
        tuples = tuples.cut("tuples")
    return tuples.keyed(
        CALCULATOR,
        Stretched(Calculator(options, seed), row_s, _weights(options)),
        key="key",
        shards=options.shards,
        tasks=calculator_tasks,
        order_by="seq",
    )


def build(spark: SparkSession, settings: Settings, collected: Path) -> BuiltApplication:
    """The pipeline over rows that arrive by the settings' rate. Its answers are its state."""
    options = micro_options(settings.extra)
    rows = arrivals(
        spark,
        settings.rate,
        keys=options.distribution,
        seed=settings.seed,
        seconds=settings.seconds,
        partitions=2,
    )
    stream = micro_stream(
        pipeline("micro", rows, arrival="timestamp"),
        options,
        seed=settings.seed,
        row_s=settings.times({CALCULATOR: options.row_s})[CALCULATOR],
        cut=settings.cut,
        calculator_tasks=(1, most_tasks(settings.extra)[CALCULATOR]),
    )

    def verify(checkpoint: str) -> Verdict:
        expected = reference(settings.rate, options, settings.seed, settings.arrived)
        return compare(read_state(checkpoint, CALCULATOR), expected, options, settings.seed)

    return BuiltApplication(stream=stream, verify=verify)


def most_tasks(extra: Mapping[str, str]) -> dict[str, int]:
    """How many tasks each operator can have; a task of the calculator needs a shard."""
    return {GENERATOR: MOST_TASKS, CALCULATOR: min(MOST_TASKS, micro_options(extra).shards)}


def _weights(options: MicroOptions) -> Weights | None:
    """With `fill`, the first tuples only bring the state, and cost no time."""
    if not options.fill:
        return None

    def weights(rows: pa.Table) -> npt.NDArray[np.float64]:
        return np.asarray(rows["seq"].to_numpy() >= options.keys, np.float64)

    return weights


APPLICATION = Application(
    name="micro",
    paper="Elasticutor 5.1",
    about="generator to calculator: skewed keys, whose frequencies are shuffled",
    rate="constant:4000",
    target="2 seconds",
    cores=(2, MOST_TASKS),
    operators=(GENERATOR, CALCULATOR),
    stretched_s={GENERATOR: 0.0, CALCULATOR: MicroOptions().row_s},
    most_tasks=most_tasks,
    build=build,
    options=MEANINGS,
    read_options=micro_options,
)
