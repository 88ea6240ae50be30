"""Starts a pipeline: checks everything, starts one query per segment, then the control loop."""

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Unpack

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tidegate.control.assembly import Assembly
from tidegate.control.rehearsal import rehearse
from tidegate.errors import AskedWrongly, TidegateError
from tidegate.pipelines.graph import Channel, Graph, Node, Source
from tidegate.pipelines.schema import struct_of
from tidegate.pipelines.shedding import ShedClass
from tidegate.pipelines.stream import Stream, set_starter
from tidegate.pipelines.traces import traced_nodes
from tidegate.pipelines.walks import dealt_out
from tidegate.spark.batch.anchors import Anchors
from tidegate.spark.batch.channel import FORMAT, PACKED_ROWS, TOPIC_OPTION, ChannelSource
from tidegate.spark.batch.checkpoint import Checkpoint
from tidegate.spark.batch.cleaner import Cleaner
from tidegate.spark.batch.committed import lay_baseline
from tidegate.spark.batch.compile import Compiler, tagged
from tidegate.spark.batch.migration import Migration
from tidegate.spark.batch.next_allocation import NextAllocation
from tidegate.spark.batch.rehearsal import Rehearsal
from tidegate.spark.batch.report import Reports
from tidegate.spark.batch.segment import SegmentRun
from tidegate.spark.batch.traces import FIELD
from tidegate.spark.checks import check_start
from tidegate.spark.hdfs.address import plain
from tidegate.spark.hdfs.session import known_to
from tidegate.spark.hdfs.web import HdfsUnavailable
from tidegate.spark.kafka.broker_watch import watch_brokers
from tidegate.spark.kafka.channel_topic import ChannelTopic, topics_of
from tidegate.spark.kafka.source_checks import check_sources
from tidegate.spark.loop.assembly import assembly_of
from tidegate.spark.loop.loop import ControlLoop
from tidegate.spark.loop.negotiate import cores_per_executor, executors_up, task_cpus
from tidegate.spark.loop.reach import check_reach
from tidegate.spark.loop.served_page import check_page, serve_page
from tidegate.spark.loop.settings import LoopSettings
from tidegate.spark.master import parse_master
from tidegate.spark.options import COMBINE, StartOptions, describe, filled, option, takes
from tidegate.spark.owner.epochs import Epochs
from tidegate.spark.owner.owner import Owner, take
from tidegate.spark.python_workers import start_workers
from tidegate.spark.run import Run
from tidegate.spark.s3.checks import check_exclusive
from tidegate.spark.s3.spark_logs import check_logs, logs_on
from tidegate.spark.savepoint.index import Savepoint
from tidegate.spark.savepoint.restore import origin_of, restore
from tidegate.spark.shared_checkpoint import check_shared
from tidegate.spark.state.cache_place import CachePlace, check_cache, remove_caches
from tidegate.spark.state.files import Durable
from tidegate.spark.state.kept_versions import KeptVersions
from tidegate.spark.state.location import location_of
from tidegate.spark.trigger import Trigger
from tidegate.spark.warm_up import warm_up
from tidegate.units import parse_duration

_CLEANING_PATIENCE_S = 5.0
CACHE_VARIABLE = "TIDEGATE_CACHE"


@takes(StartOptions)
def start(graph: Graph, checkpoint: str, **options: Unpack[StartOptions]) -> Run:
    """Check the pipeline and its checkpoint, start one query per segment, and keep the target.

    `checkpoint` is a directory or a URL. A second start with the same checkpoint continues where
    the first one ended. Everything is checked before anything runs. docs/options.md lists the
    options; docs/decisions.md and docs/overload.md explain them.
    """
    given = filled(StartOptions, options)
    checkpoint = location_of(checkpoint)
    graph.check()
    trigger = Trigger.of(given["trigger"])
    trigger.check(graph)
    _check_idle_after(given["idle_after"])
    _check_counts(given)
    KeptVersions.asked(given["versions"])
    session = _session(graph)
    checkpoint = known_to(session, checkpoint)
    with _usable(checkpoint):
        origin = origin_of(_savepoint(session, given), Durable(checkpoint))
        declared = check_start(graph, session, checkpoint, given, origin)
        sources = check_sources(graph, session, checkpoint)
    settings = assembly = None
    if given["target"] is not None:
        check_page(given["page"])
        checks = _checks(graph, session, checkpoint, trigger)
        settings = LoopSettings.of(StartOptions, given, checks)
        assembly = settings.assembly
    else:
        _refuse_without_target(given)
    with _usable(checkpoint):
        run = _prepared(graph, session, checkpoint, given, assembly, declared, origin)
    try:
        reads = {name: _reads(session, part) for name, part in run.segments.items()}
        if settings is not None and given["warm_up"]:
            _warm_up(graph, session, run, reads)
        for name, part in run.segments.items():
            run._begin(name, _query(graph, part, reads[name], trigger))
        if trigger.job is not None:
            run._is_job(Checkpoint(Durable(checkpoint)))
        if settings is not None:
            run.loop = loop = ControlLoop(run, session, settings, checkpoint)
            serve_page(loop, graph.name, given["page"])
            loop.start()
    except BaseException:
        with suppress(TidegateError):  # the error that is raised already says what happened
            run.stop()
        raise
    run._watch()
    watch_brokers(f"pipeline '{graph.name}'", sources, run._supervisor.wait)
    start_workers(session)
    return run


def _checks(
    graph: Graph, session: SparkSession, checkpoint: str, trigger: Trigger
) -> Callable[[Mapping[str, Any]], Assembly]:
    """What the options of a target must pass, at the start and whenever they change."""
    classes = _classes(graph)

    def checked(given: Mapping[str, Any]) -> Assembly:
        assembly = assembly_of(session, given, classes=classes)
        check_reach(session, assembly, checkpoint, trigger.interval_s)
        rehearse(assembly)
        return assembly

    return checked


@contextmanager
def _usable(checkpoint: str) -> Iterator[None]:
    """Say in one sentence that the filesystem refuses the checkpoint."""
    try:
        yield
    except HdfsUnavailable as error:  # it says itself what to do
        raise TidegateError(
            f"the checkpoint {plain(checkpoint)} cannot be used; nothing was lost: {error}"
        ) from error
    except OSError as error:
        raise TidegateError(
            f"the checkpoint {checkpoint} cannot be read or written ({error}); nothing was lost; "
            "give a directory that can be created and written, or make room for it"
        ) from error


def _refuse_without_target(given: Mapping[str, Any]) -> None:
    """Refuse options that say how to keep a target when no target is given."""
    without = (
        *("cores", "executors", "policy", "capacity", "excluded", "floors", "dry_run", "shed"),
        *("approve", "page", "notify", "warm_up"),
    )
    named = [name for name in without if given[name] != option(name).default]
    if named:
        raise AskedWrongly(
            f"{' and '.join(named)} say{'s' if len(named) == 1 else ''} how to keep a target;"
            f" give target=, or leave {'it' if len(named) == 1 else 'them'} out"
        )


def _prepared(
    graph: Graph,
    session: SparkSession,
    checkpoint: str,
    given: Mapping[str, Any],
    assembly: Assembly | None,
    declared: Migration,
    origin: Savepoint | None,
) -> Run:
    """Check the checkpoint, take it, and make everything ready to start the queries."""
    place = Checkpoint(Durable(checkpoint))
    check_cache(session, _cache(checkpoint, given))
    check_exclusive(checkpoint)
    check_logs(session, place.root)
    owner = take(Epochs(place.root.below("owner")), graph.name)
    cleaner = Cleaner(graph.name)

    def release() -> None:
        cleaner.close(_CLEANING_PATIENCE_S)
        owner.release()

    try:
        check_shared(session, place.root)
        if origin is not None:
            restore(origin, place.root)
        return _owned(graph, session, place, given, assembly, declared, owner, cleaner, release)
    except BaseException:
        release()
        raise


def _owned(
    graph: Graph,
    session: SparkSession,
    place: Checkpoint,
    given: Mapping[str, Any],
    assembly: Assembly | None,
    declared: Migration,
    owner: Owner,
    cleaner: Cleaner,
    release: Callable[[], None],
) -> Run:
    """Make the segments ready on a checkpoint that this driver owns."""
    checkpoint = place.root.url
    with owner.lease.blamed():  # to a driver that was paused its successor's work looks wrong
        lay_baseline(place)
        place = place.open(graph, declared, owner.lease.check)
    session.dataSource.register(ChannelSource)
    for topic in topics_of(graph, checkpoint):
        topic.make()
    tasks = given["tasks"] or _first_tasks(session, assembly)
    cache = _cache(checkpoint, given)
    segments: dict[str, SegmentRun] = {}
    # Without a control loop nobody measures.
    traced = frozenset[str]() if assembly is None else traced_nodes(graph)
    for segment in graph.segments():
        reports = Reports(session.sparkContext)
        part = SegmentRun(
            segment,
            place,
            NextAllocation(segment.nodes, tasks),
            Compiler(
                segment,
                place.state,
                cache,
                reports.accumulator,
                given["sample_every"],
                traced,
                place.earlier,
                combines=given["combine"] != "never",
            ),
            reports,
            Anchors(session, shared=cache.shared),
            owner.lease,
            cleaner,
            pipeline=graph.name,
            idle_after_us=round(parse_duration(given["idle_after"]) * 1e6),
            rule=KeptVersions.asked(given["versions"]),
            combine=given["combine"],
        )
        part.prepare()
        segments[segment.name] = part
    # `prepare` has created all channel directories, so segments can start in any order.
    run = Run(graph, segments, lambda: remove_caches(session, cache), release)
    owner.when_lost(run.lost)
    return run


def _savepoint(session: SparkSession, given: Mapping[str, Any]) -> str | None:
    """The savepoint that a new checkpoint is to begin with, so that this driver finds it."""
    return (
        None if given["savepoint"] is None else known_to(session, location_of(given["savepoint"]))
    )


def _first_tasks(session: SparkSession, assembly: Assembly | None) -> int:
    """The tasks that operators begin with, until the control loop knows better.

    On a cluster that is one per core that is up: a restart into a backlog begins with all it has.
    """
    local = parse_master(str(session.sparkContext.master)).in_one_process
    if assembly is None or (local and assembly.limits.dry_run):
        return max(1, session.sparkContext.defaultParallelism // task_cpus(session))
    if local:
        return assembly.bounds.least
    up = max(1, executors_up(session) * assembly.cores_per_executor)
    return up if assembly.limits.dry_run else assembly.bounds.clamp(up)


def _warm_up(graph: Graph, session: SparkSession, run: Run, reads: Mapping[str, DataFrame]) -> None:
    """Rehearse the segments before their queries start; executors that come later do the same."""
    for name, part in run.segments.items():
        part.rehearsal = Rehearsal(
            part.segment, part.compiler, part.allocation, reads[name].schema, part.checkpoint.root
        )
    rehearsals = [part.rehearsal for part in run.segments.values() if part.rehearsal is not None]
    run.warmed = warm_up(session, graph.name, rehearsals, _cores_up(session))


def _cores_up(session: SparkSession) -> int:
    """How many tasks can run at a time now."""
    if parse_master(str(session.sparkContext.master)).in_one_process:
        return int(session.sparkContext.defaultParallelism) // task_cpus(session)
    return executors_up(session) * cores_per_executor(session)


def _reads(session: SparkSession, part: SegmentRun) -> DataFrame:
    """The rows that a segment reads, of all its sources and channels."""
    traced = part.compiler.traced
    return tagged(
        {
            node.name: _stream(session, node, part, node.name in traced)
            for node in part.segment.reads
        }
    )


def _query(graph: Graph, part: SegmentRun, rows: DataFrame, trigger: Trigger) -> StreamingQuery:
    """Start the streaming query of a segment."""
    name, place = part.segment.name, part.checkpoint
    writer = (
        rows.writeStream.queryName(f"{graph.name}.{name}")
        .option("checkpointLocation", place.segment(name).below("spark").location)
        .foreachBatch(part)
    )
    sources = any(isinstance(node, Source) for node in part.segment.reads)
    with logs_on(rows.sparkSession, place.root):
        query: StreamingQuery = trigger.on(writer, sources).start()
        return query


def _check_idle_after(text: str) -> None:
    """Refuse what is no duration, before anything is written."""
    try:
        parse_duration(text)
    except AskedWrongly as error:
        raise AskedWrongly(f"idle_after: {error}") from None


def _check_counts(given: Mapping[str, Any]) -> None:
    if given["combine"] not in COMBINE:
        raise AskedWrongly(
            f"combine={given['combine']!r}: give one of {', '.join(map(repr, COMBINE))}"
        )
    for name in ("tasks", "sample_every"):
        value = given[name]
        if value is not None and value < 1:
            raise AskedWrongly(f"{name}={value}: give a whole number of 1 or more")


def _stream(session: SparkSession, node: Node, part: SegmentRun, traced: bool) -> DataFrame:
    if isinstance(node, Source):
        return node.frame  # type: ignore[no-any-return]
    schema = node.schema.append(FIELD) if traced else node.schema
    # Whatever runs where its rows already are keeps a task for each file.
    most_rows = PACKED_ROWS if dealt_out(part.segment, node.name) else 0
    assert isinstance(node, Channel)
    topic = ChannelTopic.of(part.pipeline, node, part.checkpoint.root.url)
    return (
        session.readStream.format(FORMAT)
        .option("columns", struct_of(schema).json())
        .option("packedRows", most_rows)
        .option(TOPIC_OPTION, json.dumps(None if topic is None else topic.to_options()))
        .load(part.checkpoint.channel(node.name).url)
    )


def _classes(graph: Graph) -> dict[str, ShedClass]:
    """The shedding classes of all sources; two sources must agree on a class of the same name."""
    found: dict[str, ShedClass] = {}
    for node in graph.nodes.values():
        if not isinstance(node, Source) or node.shedding is None:
            continue
        for name, worth in node.shedding.classes.items():
            if found.setdefault(name, worth) != worth:
                raise AskedWrongly(
                    f"two sources declare the class '{name}' differently; declare it the same way, "
                    "or rename it in one of them"
                )
    return found


def _session(graph: Graph) -> SparkSession:
    source = next(node for node in graph.nodes.values() if isinstance(node, Source))
    session: SparkSession = source.frame.sparkSession
    return session


def _cache(checkpoint: str, given: Mapping[str, Any]) -> CachePlace:
    """Where the nodes are to keep the state files of the pipeline with this checkpoint."""
    return CachePlace(_mark(checkpoint), given["cache"] or os.environ.get(CACHE_VARIABLE))


def _mark(checkpoint: str) -> str:
    """A name derived from the checkpoint, so that pipelines on a node have separate caches."""
    return hashlib.sha256(str(Durable(checkpoint).path("")).encode()).hexdigest()[:16]


set_starter(start)
describe(Stream.start, StartOptions)
