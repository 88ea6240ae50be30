"""Queries that run already, unchanged: measured by their progress, scaled by executors."""

import threading
from collections.abc import Callable, Sequence
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
from tidegate.recording import RecordWriter
from tidegate.spark.loop.assembly import assembly_of
from tidegate.spark.loop.boundary import QueryBoundary
from tidegate.spark.loop.negotiate import (
    ExecutorNegotiator,
    LocalBudget,
    Negotiator,
    executors_up,
)
from tidegate.spark.loop.ticker import Ticker
from tidegate.spark.master import Master, parse_master
from tidegate.spark.measure.attached_meter import AttachedMeter
from tidegate.spark.measure.busy_cores import ExecutorTime
from tidegate.spark.options import AttachOptions, filled, takes

_ATTACHED: dict[str, "Attachment"] = {}
"""The attachment of each Spark application: two would undo each other's work."""
_ONE_AT_A_TIME = threading.Lock()


@takes(AttachOptions)
def attach(
    spark_or_query: SparkSession | StreamingQuery, **options: Unpack[AttachOptions]
) -> "Attachment":
    """Keep running queries within a target by executors alone, with no change to their code.

    A session means all its queries, those that start later included; a query means that one. On
    `local[...]` there are no executors: queries are measured, decisions are recorded, and nothing
    is changed. docs/options.md has the options, docs/attach.md has the rest.
    """
    given = filled(AttachOptions, options)
    session, queries = _what(spark_or_query)
    if given["target"] is None:
        raise AskedWrongly("attach needs a target: give target='5 seconds'")
    master = parse_master(str(session.sparkContext.master))
    assembly = assembly_of(session, {**given, "dry_run": given["dry_run"] or master.in_one_process})
    with _ONE_AT_A_TIME:
        application = str(session.sparkContext.applicationId)
        other = _ATTACHED.get(application)
        if other is not None and other.attached:
            raise AskedWrongly(
                "something is attached to this Spark application already; stop it first, or attach "
                "to the session, which takes all its queries"
            )
        negotiator = _negotiator(session, assembly, master, dry_run=given["dry_run"])
        note = None
        if master.in_one_process:
            note = f"{master.url} has no executors to scale: measured and recorded only"
        attachment = Attachment(
            session,
            spark_or_query if isinstance(spark_or_query, StreamingQuery) else None,
            new_controller(assembly),
            negotiator,
            AttachedMeter(queries, negotiator, ExecutorTime(session)),
            tick_s=assembly.tick_s,
            writer=None if given["records"] is None else RecordWriter(given["records"]),
            note=note,
        )
        _ATTACHED[application] = attachment
    attachment.start()
    return attachment


def _negotiator(
    session: SparkSession, assembly: Assembly, master: Master, *, dry_run: bool
) -> Negotiator:
    """Who asks for executors: nobody in one process and in a dry run."""
    per_executor = assembly.cores_per_executor
    if master.in_one_process:
        return LocalBudget(session.sparkContext.defaultParallelism)
    if dry_run:
        return _Untouched(session, per_executor)
    return ExecutorNegotiator(
        session,
        per_executor,
        assembly.bounds.clamp(executors_up(session) * per_executor),
        # All queries, also those it is not attached to: they need their shuffle files, too.
        boundary=QueryBoundary(session, lambda: session.streams.active),
    )


class Attachment(Ticker):
    """What looks after attached queries; `stop` ends it, and leaves queries and executors alone."""

    def __init__(
        self,
        session: SparkSession,
        query: StreamingQuery | None,
        controller: Controller,
        negotiator: Negotiator,
        meter: AttachedMeter,
        *,
        tick_s: float,
        writer: RecordWriter | None,
        note: str | None,
    ) -> None:
        super().__init__(controller, negotiator, tick_s=tick_s, writer=writer)
        self.meter = meter
        self._context: Any = session.sparkContext._jsc.sc()
        self._query = query
        self._note = note

    @property
    def attached(self) -> bool:
        """Whether it still looks: neither stopped, nor its query ended, nor failed."""
        return not self._ended.is_set() and not self.over and self.failure is None

    @property
    def alive(self) -> bool:
        """Whether the Spark application runs, and the query when it was attached to one."""
        if self._context.isStopped():
            return False
        return self._query is None or self._query.isActive

    @property
    def over(self) -> bool:
        """The query that it was attached to has ended, or the whole application."""
        return not self.alive

    def measure(self, now_s: float) -> Measurement:
        """By the queries' progress."""
        return self.meter.measure(now_s)

    def act(self, decision: Decision) -> None:
        """Ask for executors or let them go; tasks are the queries' own."""
        if decision.cores is not None:
            self.negotiator.ask(decision.cores)

    def notes(self) -> tuple[str, ...]:
        """Executors that have not come in time; that there are none to scale."""
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


class _Untouched:
    """The executors that are there, for a dry run: nothing is asked for and nothing let go."""

    grant_s: float | None = None

    def __init__(self, session: SparkSession, cores_per_executor: int) -> None:
        self._session = session
        self._per_executor = cores_per_executor

    @property
    def asked(self) -> int:
        """Those that are there."""
        return self.granted()

    def granted(self) -> int:
        """Cores of the executors that are up."""
        return executors_up(self._session) * self._per_executor

    def ask(self, cores: int) -> None:
        """A dry run acts on nothing, so this is never called."""
        raise AssertionError(f"a dry run asked for {cores} cores")

    def let_go(self) -> None:
        """Nothing."""

    def overdue(self) -> str | None:
        """Nothing was asked for."""
        return None


def _what(
    given: SparkSession | StreamingQuery,
) -> tuple[SparkSession, Callable[[], Sequence[StreamingQuery]]]:
    """The session, and how to find the queries that run now."""
    if isinstance(given, StreamingQuery):
        query = given
        if not query.isActive:
            raise AskedWrongly("the query has ended; attach to one that runs")
        session = SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
        return session, lambda: [query] if query.isActive else []
    if isinstance(given, SparkSession):
        streams = given.streams
        return given, lambda: streams.active
    raise AskedWrongly(
        f"attach takes a SparkSession or a StreamingQuery of the driver, not a "
        f"{type(given).__module__}.{type(given).__name__}"
    )
