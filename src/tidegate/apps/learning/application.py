"""IncrementalLearning as a pipeline with a loop (Flink-ER 4.2): gradients, and a model of them."""

from pathlib import Path

from tidegate.apps.application import Application, Settings, Verdict
from tidegate.apps.collected import Collected
from tidegate.apps.learning.examples import SCHEMA, example_map
from tidegate.apps.learning.gradient import PartialGradient, examples_only
from tidegate.apps.learning.model import LearntModel, broadcast
from tidegate.apps.learning.options import MEANINGS, learning_options
from tidegate.apps.learning.reference import compare, expected_models
from tidegate.apps.numbered import NumberedFlow, behind, on_arrivals
from tidegate.apps.stretching import Stretched
from tidegate.pipelines.stream import Stream

NAME, GRADIENT, MODEL = "learning", "gradient", "model"
TASKS = (1, 24)
SHARDS = 256
"""Four times as many as there are parts, so that few parts share one and can be moved apart."""
STRETCHED_S = {GRADIENT: 0.006, MODEL: 0.0002}
"""Modelled, as the paper prints none: per example, and per gradient of a round and part."""


def flow(source: Stream, settings: Settings, directory: Path) -> NumberedFlow:
    """The operators behind a source of numbered rows."""
    options = learning_options(settings.extra)
    row_s = settings.times(STRETCHED_S)
    examples = source.map(example_map(options, settings.seed), SCHEMA, name="examples")
    back = examples.loop("back")
    gradients = examples.merge(back).keyed(
        GRADIENT,
        Stretched(PartialGradient(options), row_s[GRADIENT], examples_only),
        key="part",
        shards=SHARDS,
        tasks=TASKS,
    )
    if settings.cut:
        gradients = gradients.cut("gradients")
    models = gradients.keyed(
        MODEL,
        Stretched(LearntModel(options), row_s[MODEL]),
        key="model",
        shards=1,
        tasks=(1, 1),
    )
    models.map(broadcast, SCHEMA, name="broadcast").feed(back)
    collected = Collected(directory)

    def verify(checkpoint: str, arrived: int) -> Verdict:
        expected = expected_models(arrived, options, settings.seed)
        return compare(collected.rows(), expected, arrived, options)

    return NumberedFlow(models.to(collected, name="models"), verify)


APPLICATION = Application(
    name=NAME,
    paper="Flink-ER 4.2",
    about="a logistic regression that learns from a stream, with a loop",
    rate="ramp:100-800/60",
    target="4 seconds",
    cores=(2, 12),
    operators=(GRADIENT, MODEL),
    stretched_s=STRETCHED_S,
    most_tasks=lambda _: {GRADIENT: TASKS[1], MODEL: 1},
    build=on_arrivals(NAME, flow),
    behind=behind(flow),
    options=MEANINGS,
    read_options=learning_options,
)
