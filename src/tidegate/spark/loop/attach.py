"""Attaches to running queries: measures their progress reports and scales their executors."""

import threading
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, Unpack

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tidegate.control.assemble import new_controller
from tidegate.control.assembly import Assembly
from tidegate.control.controller import Controller
from tidegate.control.decision import Decision
from tidegate.control.measurement import Measurement
from tidegate.errors import AskedWrongly
from tidegate.spark.hdfs.session import known_to
from tidegate.spark.kafka.broker_watch import watch_query
from tidegate.spark.loop.all_queries import QueriesOfAllSessions
from tidegate.spark.loop.assembly import assembly_of
from tidegate.spark.loop.attached_queries import AttachedQueries
from tidegate.spark.loop.boundary import (
    BatchBoundary,
    queries_of_all_sessions,
    refuse_unpinned_threads,
)
from tidegate.spark.loop.negotiate import (
    ExecutorNegotiator,
    LocalBudget,
    Negotiator,
    UntouchedExecutors,
    cores_there,
    executors_expected,
)
from tidegate.spark.loop.recorder import recorder
from tidegate.spark.loop.served_page import check_page, serve_page
from tidegate.spark.loop.settings import LoopSettings
from tidegate.spark.loop.ticker import Ticker
from tidegate.spark.master import Master, parse_master
from tidegate.spark.measure.attached_meter import AttachedMeter
from tidegate.spark.measure.busy_cores import ExecutorTime, up_since_s
from tidegate.spark.measure.stage_work import StageWork
from tidegate.spark.options import CHANGEABLE, AttachOptions, filled, takes
from tidegate.spark.sharing.scaler import ATTACHMENT, scale
from tidegate.spark.state.files import Durable

_ATTACHED: dict[str, "Attachment"] = {}
"""The attachment of each Spark application. Two would undo each other's requests."""
_ONE_AT_A_TIME = threading.Lock()


@takes(AttachOptions)
def attach(
    spark_or_query: SparkSession | StreamingQuery, **options: Unpack[AttachOptions]
) -> "Attachment":
    """Keep running queries within a target by scaling executors, without changing their code.

    Given a session, it takes all its queries, including those that start later. Given a query, it
    takes only that one. On `local[...]` there are no executors: queries are measured and decisions
    recorded, but nothing is changed. docs/options.md lists the options; docs/attach.md explains
    the rest.
    """
    session, queries = _what(spark_or_query)
    query = spark_or_query if isinstance(spark_or_query, StreamingQuery) else None
    return _attached(session, query, queries, options)


def attach_to_all(session: SparkSession, **options: Unpack[AttachOptions]) -> "Attachment":
    """The same for all queries of the Spark application, of whichever of its sessions."""
    queries = QueriesOfAllSessions(session)
    return _attached(session, None, queries, options)


def _attached(
    session: SparkSession,
    query: StreamingQuery | None,
    running: Callable[[], Sequence[StreamingQuery]],
    options: AttachOptions,
) -> "Attachment":
    given = filled(AttachOptions, options)
    queries = AttachedQueries(running)
    if given["target"] is None:
        raise AskedWrongly("attach needs a target: give target='5 seconds'")
    check_page(given["page"])
    master = parse_master(str(session.sparkContext.master))

    def assembled(given: Mapping[str, Any]) -> Assembly:
        dry_run = given["dry_run"] or master.in_one_process
        return assembly_of(session, {**given, "dry_run": dry_run})

    settings = LoopSettings.of(AttachOptions, given, assembled)
    assembly = settings.assembly
    with _ONE_AT_A_TIME:
        application = str(session.sparkContext.applicationId)
        other = _ATTACHED.get(application)
        if other is not None and other.attached:
            raise AskedWrongly(
                "Tidegate is already attached to this Spark application; stop that first, or "
                "attach once to the session, which takes all its queries"
            )
        negotiator = _negotiator(session, assembly, master, dry_run=given["dry_run"])
        note = None
        if master.in_one_process:
            note = f"{master.url} has no executors to scale: queries are only measured and recorded"
        attachment = Attachment(
            session,
            query,
            new_controller(assembly),
            negotiator,
            AttachedMeter(
                queries,
                negotiator,
                ExecutorTime(session),
                StageWork(session).read,
                lambda: up_since_s(session),
            ),
            queries,
            settings,
            place=_records(session, given["records"]),
            note=note,
        )
        serve_page(attachment, attachment.name, given["page"])
        if isinstance(negotiator, ExecutorNegotiator):
            scale(application, ATTACHMENT, lambda: attachment.attached)
        _ATTACHED[application] = attachment
    attachment.start()
    return attachment


def _records(session: SparkSession, records: str | None) -> Durable | None:
    """The directory for the records; None if none are to be kept."""
    return None if records is None else Durable(known_to(session, str(records)))


def _negotiator(
    session: SparkSession, assembly: Assembly, master: Master, *, dry_run: bool
) -> Negotiator:
    """The negotiator for executors; in one process and in a dry run it requests nothing."""
    per_executor = assembly.cores_per_executor
    if master.in_one_process:
        return LocalBudget(cores_there(session) or 1)
    if dry_run:
        return UntouchedExecutors(session, per_executor)
    refuse_unpinned_threads(session)
    return ExecutorNegotiator(
        session,
        per_executor,
        assembly.bounds.clamp(executors_expected(session) * per_executor),
        most=assembly.bounds.most,
        # All queries of all sessions, because those not attached to need their shuffle files, too.
        boundary=BatchBoundary(lambda: queries_of_all_sessions(session)),
    )


class Attachment(Ticker):
    """The control loop of attached queries. `stop` ends it; queries and executors stay."""

    def __init__(
        self,
        session: SparkSession,
        query: StreamingQuery | None,
        controller: Controller,
        negotiator: Negotiator,
        meter: AttachedMeter,
        queries: AttachedQueries,
        settings: LoopSettings,
        *,
        place: Durable | None,
        note: str | None,
    ) -> None:
        name = (query.name or str(query.id)) if query is not None else session.sparkContext.appName
        writer = None if place is None else recorder(place)
        super().__init__(
            controller,
            negotiator,
            name=str(name),
            tick_s=settings.assembly.tick_s,
            writer=writer,
            place=place,
            settings=settings,
        )
        self.name = str(name)
        self._session = session
        self.meter = meter
        self._queries = queries
        queries.began = self._began
        self._context: Any = session.sparkContext._jsc.sc()
        self._query = query
        self._note = note

    @takes(AttachOptions, CHANGEABLE)
    def update(self, **options: Unpack[AttachOptions]) -> None:
        """Change settings of the running attachment, from its next tick on.

        What is not given stays as it is. Everything is checked as at the start, and a refused
        setting changes nothing. The record of the next tick says what has changed.
        """
        if not self.attached:
            raise AskedWrongly("this attachment has ended; attach again with other options")
        self.change_settings(options)

    def negotiator_for(self, assembly: Assembly, now: Negotiator) -> Negotiator:
        """After a dry run, one that requests executors; one that does so is kept."""
        if assembly.limits.dry_run or not isinstance(now, UntouchedExecutors):
            return now
        application = str(self._session.sparkContext.applicationId)
        scale(application, ATTACHMENT, lambda: self.attached)
        master = parse_master(str(self._session.sparkContext.master))
        return _negotiator(self._session, assembly, master, dry_run=False)

    def took_over(self, assembly: Assembly) -> None:
        """Measure what the new negotiator requests."""
        super().took_over(assembly)
        self.meter.negotiator = self.negotiator

    @property
    def attached(self) -> bool:
        """Whether the loop still works: it was not stopped, did not fail, and its query runs."""
        return not self._ended.is_set() and not self.over and self.failure is None

    @property
    def alive(self) -> bool:
        """Whether the Spark application is running, and the query if attached to a single one."""
        if self._context.isStopped():
            return False
        return self._query is None or self._query.isActive

    @property
    def over(self) -> bool:
        """Whether the query it was attached to, or the whole application, has ended."""
        if self.alive:
            return False
        if not self._context.isStopped():
            self._queries()  # tells why the query has ended
        return True

    def measure(self, now_s: float) -> Measurement:
        """Measure the tick that ends now from the queries' progress reports."""
        return self.meter.measure(now_s)

    def act(self, decision: Decision) -> None:
        """Request or release executors. The number of tasks is left to the queries."""
        if decision.cores is not None:
            self.negotiator.ask(decision.cores)

    def _began(self, query: StreamingQuery) -> None:
        """Tell of its brokers that go and come back, for as long as it runs and is attached."""
        run_id = str(query.runId)
        watch_query(
            query, lambda up_to_s: self._ended.wait(up_to_s) or not self._queries.runs(run_id)
        )

    def notes(self) -> tuple[str, ...]:
        """Notes for the record: that there are no executors to scale."""
        said = super().notes()
        return said if self._note is None else (*said, self._note)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


def _what(
    given: SparkSession | StreamingQuery,
) -> tuple[SparkSession, Callable[[], Sequence[StreamingQuery]]]:
    """The session, and a function that returns the queries running now."""
    if isinstance(given, StreamingQuery):
        query = given
        if not query.isActive:
            raise AskedWrongly("the query has ended; attach to a running one")
        session = SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
        return session, lambda: [query] if query.isActive else []
    if isinstance(given, SparkSession):
        streams = given.streams
        return given, lambda: streams.active
    raise AskedWrongly(
        f"attach takes a SparkSession or a StreamingQuery of the driver, not a "
        f"{type(given).__module__}.{type(given).__name__}"
    )
