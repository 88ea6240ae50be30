"""Warms up executors that have just come, before they count.

A new executor first loads classes and compiles code, and its Python workers start and import
modules. The first micro-batch that used it was many seconds longer for that, and meanwhile nothing
was decided. So the operators of the pipelines are rehearsed there first, in a thread of its own. As
long as that lasts, the executor is not counted as granted, and no task is kept on it. It counts
anyway once its warm-up has failed, or has taken too long.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence

from pyspark.sql import SparkSession

from tidegate.logs import reason
from tidegate.spark.batch.anchors import ExecutorNames, host_of, working_executors
from tidegate.spark.batch.located import located
from tidegate.spark.batch.rehearsal import Rehearsal
from tidegate.spark.batch.rehearsed_task import load_and_hold
from tidegate.spark.batch.segment import with_our_settings
from tidegate.spark.loop.release import Background

_log = logging.getLogger("tidegate.executors")

PATIENCE_S = 60.0
"""An executor that is not warm after so long counts as it is. First micro-batches on new executors
have taken half a minute."""
HANGS_S = 180.0
"""A warm-up that takes as long as this is cancelled: it occupies cores."""
_LISTED_S = 3.0

Warming = Callable[[Sequence[str]], None]
"""Warms up the executors with these ids, and returns when they are warm."""


def in_a_thread(work: Callable[[], None]) -> None:
    """Run a function in a new thread."""
    threading.Thread(target=work, name="tidegate-warm-executors", daemon=True).start()


class WarmExecutors:
    """Knows which executors count, and has those warmed up that have come."""

    def __init__(
        self,
        warm: Warming,
        wanted: Callable[[], bool] = lambda: True,
        *,
        give_up: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
        background: Background = in_a_thread,
    ) -> None:
        self._warm = warm
        self._wanted = wanted
        """Whether anything is known that new executors can be warmed up with."""
        self._give_up = give_up
        """Cancels the warm-ups that still run."""
        self._clock = clock
        self._background = background
        self._lock = threading.Lock()
        self._since_s: dict[str, float] = {}
        """When each executor was first seen."""
        self._count: set[str] = set()
        """The executors that count."""
        self._warming: dict[str, float] = {}
        """Executors on which a warm-up runs, and since when."""

    @property
    def busy(self) -> bool:
        """Whether a warm-up runs on any executor."""
        with self._lock:
            return bool(self._warming)

    def note_warm(self, executors: ExecutorNames) -> None:
        """Note executors that were warmed up by other means, by Spark's names of them."""
        with self._lock:
            for name in executors:
                self._since_s.setdefault(_id(name), self._clock())
                self._count.add(_id(name))

    def count(self, executors: Sequence[str]) -> list[str]:
        """Those of the executors, by their ids, that count. Call this every tick, with all."""
        with self._lock:
            # Others have gone. Their ids do not come back.
            self._since_s = {one: self._since_s[one] for one in executors if one in self._since_s}
            self._count.intersection_update(executors)
        return self._counted(executors)

    def counted(self, executors: ExecutorNames) -> ExecutorNames:
        """The same by Spark's names; all of them if none counts yet, for they have to be used."""
        warm = set(self._counted([_id(name) for name in executors]))
        return frozenset(name for name in executors if _id(name) in warm) or executors

    def _counted(self, executors: Sequence[str]) -> list[str]:
        """Those that count; what was not seen before begins to be warmed up."""
        wanted = self._wanted()
        with self._lock:
            now_s = self._clock()
            new = [one for one in executors if one not in self._since_s]
            self._since_s |= dict.fromkeys(new, now_s)
            late = [
                one
                for one, since_s in self._since_s.items()
                if one not in self._count and now_s - since_s >= PATIENCE_S
            ]
            self._count.update(late if wanted else [*late, *new])
            if wanted:
                self._warming |= dict.fromkeys(new, now_s)
            hangs = any(now_s - since_s >= HANGS_S for since_s in self._warming.values())
            if hangs:
                self._warming = dict.fromkeys(self._warming, now_s)
        if late:
            _log.info("executors %s count although they are not warm yet", ", ".join(late))
        if hangs:
            try:
                self._give_up()
            except Exception as error:
                _log.debug("a warm-up could not be cancelled: %s", reason(error))
        if new and wanted:
            self._background(lambda: self._warm_up(new))
        with self._lock:
            return [one for one in executors if one in self._count]

    def _warm_up(self, executors: Sequence[str]) -> None:
        begun_s = self._clock()
        try:
            self._warm(executors)
            took_s = self._clock() - begun_s
            _log.info("executors %s were warmed up for %.1f s", ", ".join(executors), took_s)
        except Exception as error:
            _log.debug("executors %s were not warmed up: %s", executors, reason(error))
        with self._lock:
            self._count.update(one for one in executors if one in self._since_s)
            for one in executors:
                self._warming.pop(one, None)


class ExecutorRehearsals:
    """Rehearses the operators of running pipelines on single executors."""

    def __init__(
        self,
        session: SparkSession,
        cores_per_executor: int,
        rehearsals: Callable[[], Sequence[Rehearsal]],
    ) -> None:
        self._session = session
        self._per_executor = cores_per_executor
        self._rehearsals = rehearsals
        self._group = f"tidegate-warm-executors-{id(self):x}"

    def wanted(self) -> bool:
        """Whether any pipeline is to be warmed up for."""
        return bool(self._rehearsals())

    def cancel(self) -> None:
        """Cancel the jobs that still run."""
        self._session.sparkContext.cancelJobGroup(self._group)

    def warm(self, executors: Sequence[str]) -> None:
        """Start a Python worker on every core of these executors, and rehearse all operators.

        Behind a shuffle Spark places tasks wherever a core is free. So there are as many tasks as
        cores: those of new executors are idle, and get some.
        """
        session = with_our_settings(self._session.newSession())
        session.sparkContext.setJobGroup(self._group, "warm up new executors", True)
        up = self._listed(session, executors)
        places = [name for name in sorted(up) if _id(name) in executors] * self._per_executor
        if not places:
            return
        rehearsals = list(self._rehearsals())
        frame = located(session, places)
        stages = tuple(dict.fromkeys(s for one in rehearsals for s in one.compiler.stages))
        roots = tuple(dict.fromkeys(one.checkpoint for one in rehearsals))
        held = frame.mapInArrow(lambda blocks: load_and_hold(blocks, stages, roots), frame.schema)
        blind = {host_of(places[number]) for number in held.toArrow()["number"].to_pylist()}
        if blind:
            _log.error(
                "%s cannot see the checkpoint, so that tasks there will fail; let all machines of "
                "the cluster reach it, or take these out",
                ", ".join(sorted(blind)),
            )
        for one in rehearsals:
            one.run(one.empty_batch(frame), tasks=len(up) * self._per_executor)

    def _listed(self, session: SparkSession, executors: Sequence[str]) -> ExecutorNames:
        """Spark's names of all executors. They are listed a moment after they have come."""
        until_s = time.monotonic() + _LISTED_S
        while True:
            up = working_executors(session)
            if {_id(name) for name in up}.issuperset(executors) or time.monotonic() > until_s:
                return up
            time.sleep(0.05)


def _id(name: str) -> str:
    """The id of an executor in Spark's name of it."""
    return name.rsplit("_", 1)[-1]
