"""What moves when the parallelism of an operator is increased from 3 to 4 (Flink-ER, figure 5).

Four executors have a core and a cache of state files each, as four machines do. The operator that
has the state runs on three of them. Its fourth task is new on its executor, which fetches the state
of its shards from the checkpoint. Then the query is stopped and started again, as the paper's
Original Flink is for any other number of tasks: all executors fetch all their state.
"""

import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from pyspark.sql import SparkSession

from tidegate.apps.application import Settings
from tidegate.apps.campaigns import application as campaigns
from tidegate.apps.full_pipeline import FullPipeline
from tidegate.apps.full_source import full_source
from tidegate.apps.numbered import FlowMaker, NumberedFlow
from tidegate.apps.sentiment import application as sentiment
from tidegate.errors import TidegateError
from tidegate.pipelines.stream import Stream, pipeline
from tidegate.spark.batch.result import BatchResult
from tidegate.spark.measure.operator_meter import nodes_of
from tidegate.workload.keys import Keys
from tidegate.workload.profile import constant

FEW, MANY = 3, 4
MASTER = f"local-cluster[{MANY},1,1024]"
CACHE = "tidegate-cache"
"""A relative directory: every executor has its own."""
BATCH_ROWS = 3000
WARM_BATCHES, AROUND = 8, 4
_FIRST_QUIET = 3
"""The first batch fills the state, and the two after it warm up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stateful:
    """An application whose state moves."""

    title: str
    flow: FlowMaker
    reader: str
    """The first operator, which gets every row of the source once."""
    operator: str
    """The operator with the state."""
    maps: tuple[str, ...]
    """The operators before it. They have a task on each executor from the start."""


SENTIMENT = Stateful(
    title="TwitterSentiment",
    flow=sentiment.flow,
    reader="tweets",
    operator=sentiment.MOOD,
    maps=(sentiment.SCORE,),
)
CAMPAIGNS = Stateful(
    title="Streaming-Benchmarks",
    flow=campaigns.flow,
    reader="events",
    operator=campaigns.COUNT,
    maps=(campaigns.PARSE, campaigns.JOIN),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filling:
    """What the first batch fills the state with."""

    about: str
    extra: Mapping[str, str]
    """Options of the application: how many keys there are."""
    rows: int
    """Rows of the first batch, so that most keys have state."""
    event_s: float = 8.0
    """Event time that they take, at the end of which windows are still open."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """What a change of the number of tasks took."""

    fetched_bytes: int
    """State that tasks fetched from the checkpoint."""
    gap_s: float
    """From the result before the change to the one after it."""
    usual_s: float
    """The median gap between results around it."""

    @property
    def extra_s(self) -> float:
        """How much longer than usual no result came; never below 0."""
        return max(self.gap_s - self.usual_s, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateMove:
    """One size of the state of one application."""

    title: str
    filled: str
    """What the state was filled with."""
    state_bytes: int
    written_bytes: float
    """What a batch writes to the checkpoint, the median: only what changed."""
    moved_shards: float
    """The share of shards that got another task in the rescale."""
    rescaled: Transfer
    restarted: Transfer
    wrong: str | None = None
    """What was wrong with the answers."""


def measure(
    spark: SparkSession, app: Stateful, filling: Filling, *, cache: str | None = CACHE
) -> StateMove:
    """Fill the state, increase the parallelism of a running query, and then restart it."""
    settings = Settings(
        rate=constant(filling.rows / filling.event_s), seconds=0.0, extra=filling.extra
    )
    with tempfile.TemporaryDirectory(prefix="tidegate-state-moves-") as directory:
        made: list[NumberedFlow] = []

        def build() -> Stream:
            rows = full_source(
                spark, Keys(1), seed=settings.seed, batch_rows=BATCH_ROWS, first_rows=filling.rows
            )
            source = pipeline("state-moves", rows, arrival="timestamp")
            made.append(app.flow(source, settings, Path(directory) / "collected"))
            return made[-1].stream

        full = FullPipeline(
            spark,
            build,
            str(Path(directory) / "checkpoint"),
            operator=app.operator,
            tasks=FEW,
            options={"cache": cache},
        )
        try:
            for name in app.maps:
                full.run.rescale(name, MANY)
            full.await_batches(WARM_BATCHES)
            full.run.rescale(app.operator, MANY)
            full.await_batches(AROUND + 2)  # the one that runs already, and the one that moves
            full.again()
            restart = len(full.results)
            full.await_batches(AROUND)
        finally:
            full.stop()
        read = sum(one.rows_in for result in full.results for one in result.of(app.reader))
        verdict = made[-1].verify(full.checkpoint, read)
    wrong = None if verdict.correct else f"{app.title}: {verdict.said}"
    return told_by(full.results, restart, app, filling.about, wrong=wrong)


def told_by(
    results: Sequence[BatchResult],
    restart: int,
    app: Stateful,
    filled: str,
    *,
    wrong: str | None = None,
) -> StateMove:
    """Judge the batches of such a run; the one at `restart` was the first after the restart."""
    tasks = [result.plan.operators[app.operator].tasks for result in results]
    if MANY not in tasks or not _FIRST_QUIET < tasks.index(MANY) < restart < len(results):
        raise TidegateError(f"'{app.operator}' was not rescaled and restarted: {tasks}")
    rescale = tasks.index(MANY)
    quiet = results[_FIRST_QUIET:rescale]
    changes = [one.change for result in quiet for one in result.of(app.operator)]
    written = sum(change.file.size_bytes for change in changes if change is not None)
    before, after = (_homes(results[at], app.operator) for at in (rescale - 1, rescale))
    return StateMove(
        title=app.title,
        filled=filled,
        state_bytes=sum(one.state_bytes for one in results[rescale - 1].of(app.operator)),
        written_bytes=written / max(len(quiet), 1),
        moved_shards=sum(a != b for a, b in zip(before, after, strict=True)) / len(before),
        rescaled=_transfer(results, app.operator, rescale, {rescale, restart}),
        restarted=_transfer(results, app.operator, restart, {rescale, restart}),
        wrong=wrong,
    )


def _homes(result: BatchResult, operator: str) -> list[str]:
    """The node on which each shard was."""
    nodes = nodes_of(result.of(operator))
    return [nodes[task] for task in result.plan.operators[operator].route]


def _transfer(
    results: Sequence[BatchResult], operator: str, place: int, changed: Collection[int]
) -> Transfer:
    """What the batch at a place took, against those before and after it that changed nothing."""
    gaps = {at + 1: b.ended_s - a.ended_s for at, (a, b) in enumerate(pairwise(results))}
    near = range(max(place - AROUND, _FIRST_QUIET), place + AROUND + 1)
    usual = [gaps[at] for at in near if at in gaps and at not in changed]
    fetched = sum(one.durable_bytes for one in results[place].of(operator))
    return Transfer(fetched, gaps[place], float(np.median(usual)))
