"""Start a pipeline: check all there is to check, then one query per segment, then the loop."""

import hashlib
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from tidegate.control.rehearsal import rehearse
from tidegate.errors import AskedWrongly
from tidegate.pipelines.graph import Graph, Node, Source
from tidegate.pipelines.schema import struct_of
from tidegate.pipelines.shedding import ShedClass
from tidegate.pipelines.stream import set_starter
from tidegate.spark.batch.anchors import Anchors
from tidegate.spark.batch.channel import FORMAT, ChannelSource
from tidegate.spark.batch.checkpoint import Checkpoint
from tidegate.spark.batch.compile import Compiler, tagged
from tidegate.spark.batch.next_allocation import NextAllocation
from tidegate.spark.batch.report import Reports
from tidegate.spark.batch.segment import SegmentRun
from tidegate.spark.loop.loop import ControlLoop, ControlOptions, control_options, new_controller
from tidegate.spark.loop.reach import check_reach
from tidegate.spark.python_workers import start_workers
from tidegate.spark.run import Run
from tidegate.spark.state.files import Durable
from tidegate.units import parse_duration

CACHE_VARIABLE = "TIDEGATE_CACHE"


def start(
    graph: Graph,
    *,
    checkpoint: str,
    trigger: str | None = None,
    tasks: int | None = None,
    cache: str | None = None,
    sample_every: int = 1,
    target: str | None = None,
    cores: int | tuple[int, int] | None = None,
    policy: str = "tidegate",
    percentile: int | None = None,
    tick: str = "1 second",
    catch_up: str = "5 seconds",
    scale_in_after: str = "10 seconds",
    between_changes: str | None = None,
    excluded: Sequence[str] = (),
    dry_run: bool = False,
    shed: bool | str = False,
) -> Run:
    """Check the pipeline and its checkpoint, start one query per segment, and keep the target.

    `Stream.start` says what each option does; its options are these.
    """
    graph.check()
    trigger_ms = None if trigger is None else _interval_ms(trigger)
    _check_counts(tasks, sample_every)
    session = _session(graph)
    if "://" not in checkpoint:
        checkpoint = str(Path(checkpoint).absolute())  # tasks have other working directories
    options = None
    asked = cores is not None or dry_run or excluded or policy != "tidegate" or shed
    if target is None and asked:
        raise AskedWrongly(
            "cores, policy, excluded, dry_run and shed say how a target is to be kept; give "
            "target=, or leave them out"
        )
    if target is not None:
        options = control_options(
            session,
            target=target,
            cores=cores,
            policy=policy,
            percentile=percentile,
            tick=tick,
            catch_up=catch_up,
            scale_in_after=scale_in_after,
            between_changes=between_changes,
            excluded=excluded,
            dry_run=dry_run,
            shed=shed,
            classes=_classes(graph),
        )
    if options is not None:
        known = options
        check_reach(session, options, checkpoint, (trigger_ms or 0) / 1e3)
        rehearse(lambda: new_controller(known), options.tick_s)
    start_workers(session)
    run = _queries(graph, session, checkpoint, trigger_ms, tasks, cache, sample_every, options)
    if options is not None:
        run.loop = ControlLoop(run, session, options, checkpoint)
        run.loop.start()
    return run


def _queries(
    graph: Graph,
    session: SparkSession,
    checkpoint: str,
    trigger_ms: int | None,
    tasks: int | None,
    cache: str | None,
    sample_every: int,
    options: ControlOptions | None,
) -> Run:
    place = Checkpoint(Durable(checkpoint))
    place.open(graph)
    mark = _mark(checkpoint)
    session.dataSource.register(ChannelSource)
    least = session.sparkContext.defaultParallelism if options is None else options.bounds.least
    given = cache or os.environ.get(CACHE_VARIABLE)
    shared = str(Path(tempfile.gettempdir()) / f"tidegate-{os.getuid()}")
    folder = f"{given or shared}/{mark}"
    segments: dict[str, SegmentRun] = {}
    for segment in graph.segments():
        reports = Reports(session.sparkContext)
        part = SegmentRun(
            segment,
            place,
            NextAllocation(segment.nodes, tasks or least),
            Compiler(segment, place.state, folder, reports.accumulator, sample_every),
            reports,
            Anchors(session, shared=Path(folder).is_absolute()),
        )
        part.prepare()
        segments[segment.name] = part
    local_cache = folder if session.sparkContext._jsc.sc().isLocal() else None
    run = Run(graph, segments, local_cache)
    # Writers of channels make their directories in prepare, so any order of starting works.
    for name, part in segments.items():
        frames = {node.name: _stream(session, node, place) for node in part.segment.reads}
        writer = (
            tagged(frames)
            .writeStream.queryName(f"{graph.name}.{name}")
            .option("checkpointLocation", place.segment(name).below("spark").location)
            .foreachBatch(part)
        )
        if trigger_ms is not None:
            writer = writer.trigger(processingTime=f"{trigger_ms} milliseconds")
        try:
            run._begin(name, writer.start())
        except Exception:
            run.stop()
            raise
    return run


def _interval_ms(text: str) -> int:
    """An interval between micro-batches; Spark counts milliseconds."""
    try:
        milliseconds = round(parse_duration(text) * 1e3)
    except AskedWrongly as error:
        raise AskedWrongly(f"trigger: {error}") from None
    if milliseconds < 1:
        raise AskedWrongly(
            f"trigger: '{text}' is shorter than a millisecond; give a longer one, or leave trigger "
            "out and one micro-batch follows the other"
        )
    return milliseconds


def _check_counts(tasks: int | None, sample_every: int) -> None:
    for name, value in (("tasks", tasks), ("sample_every", sample_every)):
        if value is not None and value < 1:
            raise AskedWrongly(f"{name}={value}: give a whole number from 1")


def _stream(session: SparkSession, node: Node, place: Checkpoint) -> DataFrame:
    if isinstance(node, Source):
        return node.frame  # type: ignore[no-any-return]
    return (
        session.readStream.format(FORMAT)
        .option("columns", struct_of(node.schema).json())
        .load(place.channel(node.name).url)
    )


def _classes(graph: Graph) -> dict[str, ShedClass]:
    """What the classes of its sources' rows are worth; a name means the same in all of them."""
    found: dict[str, ShedClass] = {}
    for node in graph.nodes.values():
        if not isinstance(node, Source) or node.shedding is None:
            continue
        for name, worth in node.shedding.classes.items():
            if found.setdefault(name, worth) != worth:
                raise AskedWrongly(
                    f"two sources say different things of the class '{name}'; say the same, or "
                    "give one of them another name"
                )
    return found


def _session(graph: Graph) -> SparkSession:
    source = next(node for node in graph.nodes.values() if isinstance(node, Source))
    session: SparkSession = source.frame.sparkSession
    return session


def _mark(checkpoint: str) -> str:
    """One name per checkpoint, so that pipelines on a node keep out of each other's caches."""
    return hashlib.sha256(str(Durable(checkpoint).path("")).encode()).hexdigest()[:16]


set_starter(start)
