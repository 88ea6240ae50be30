"""Releases surplus executors at a batch boundary, in a thread of its own.

A tick must not wait for a boundary, which may be a long batch away. Where Spark moves the shuffle
files of an executor to others before it exits (`spark.decommission.enabled` together with
`spark.storage.decommission.enabled`), no boundary is needed.
"""

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from pyspark.sql import SparkSession

from tidegate.logs import PipelineLogger, reason
from tidegate.spark.loop.boundary import Boundary
from tidegate.spark.loop.patience import ANSWER_S, Answered, Patience

Surplus = Callable[[], list[str]]
"""Returns the executors that are not needed any more, at this moment."""
Background = Callable[[Callable[[], None]], None]
"""Runs a function without waiting for it."""


def in_a_thread(work: Callable[[], None]) -> None:
    """Run a function in a new thread."""
    threading.Thread(target=work, name="tidegate-release", daemon=True).start()


class ExecutorRelease:
    """Lets surplus executors of one Spark application go; one try at a time."""

    def __init__(
        self,
        session: SparkSession,
        boundary: Boundary,
        *,
        clock: Callable[[], float] = time.monotonic,
        background: Background = in_a_thread,
    ) -> None:
        self._context: Any = session.sparkContext._jsc.sc()
        self._gateway: Any = session.sparkContext._gateway
        self._jvm: Any = session.sparkContext._jvm
        self._boundary = boundary
        self._background = background
        self._patience = Patience(clock)
        self._calls = Answered("the release of executors")
        self._log = PipelineLogger("executors", str(session.sparkContext.appName))
        self._decommissions = is_on(session, "spark.decommission.enabled")
        self._moves_files = (
            self._decommissions
            and is_on(session, "spark.storage.decommission.enabled")
            and is_on(session, "spark.storage.decommission.shuffleBlocks.enabled", default=True)
        )
        self._idle = threading.Event()
        self._idle.set()
        self._closed = False
        self._needed = True
        self.released: list[str] = []
        """The executors that were released, in order."""

    def let_go(self, surplus: Surplus) -> None:
        """Release the surplus soon. Call this every tick; it does not wait."""
        if not surplus():
            self._needed = False  # a try that still waits for a boundary gives up
            self._patience.reset()
            return
        self._needed = True
        if self._closed or not self._idle.is_set() or not self._patience.due:
            return
        self._idle.clear()
        self._background(lambda: self._try(surplus))

    def close(self) -> None:
        """Start no further try, and wait until one that is under way has given up."""
        self._closed = True
        self._idle.wait(ANSWER_S + 1.0)

    def _try(self, surplus: Surplus) -> None:
        patience_s = self._patience.patience_s
        try:
            with self._held(patience_s) as reached:
                gone = self._released(surplus()) if reached else []
            if gone:
                self.released += gone
                self._patience.reset()
                self._log.info("released the executors %s", ", ".join(gone))
                return
            if not self._closed and self._needed:
                self._patience.failed()
                what = "the executors were busy" if reached else "no batch boundary was reached"
                self._log.warning(
                    "%s within %.0f s; the next try to release executors waits up to %.0f s",
                    what,
                    patience_s,
                    self._patience.patience_s,
                )
        except Exception as error:
            self._patience.failed()
            self._log.warning("executors could not be released: %s", reason(error))
        finally:
            self._idle.set()

    def _held(self, patience_s: float) -> AbstractContextManager[bool]:
        if self._moves_files:
            return nullcontext(True)
        return self._boundary(patience_s, lambda: self._needed and not self._closed)

    def _released(self, going: list[str]) -> list[str]:
        """Ask Spark to remove executors; returns those that it removes.

        The requested total is already lowered, so none is replaced. The call is bounded, because
        the batches wait for it.
        """
        backend = self._context.schedulerBackend()
        if not self._decommissions:
            # Do not count this as a failure, and do not force the removal of a busy executor.
            named = self._sequence(going)
            gone = self._calls.call(lambda: backend.killExecutors(named, False, False, False))
            return strings(gone)
        if not self._moves_files:
            scheduler = self._context.taskScheduler()
            going = [one for one in going if not scheduler.isExecutorBusy(one)]
        info = self._jvm.org.apache.spark.scheduler.ExecutorDecommissionInfo(
            "Tidegate scales in", self._jvm.scala.Option.empty()
        )
        named = self._gateway.new_array(self._jvm.scala.Tuple2, len(going))
        for place, executor in enumerate(going):
            named[place] = self._jvm.scala.Tuple2(executor, info)
        return strings(self._calls.call(lambda: backend.decommissionExecutors(named, False, False)))

    def _sequence(self, executors: list[str]) -> Any:
        ids = self._jvm.java.util.ArrayList()
        for executor in executors:
            ids.add(executor)
        return self._jvm.PythonUtils.toSeq(ids)


def strings(sequence: Any) -> list[str]:
    """The strings of a Scala sequence."""
    return [str(sequence.apply(number)) for number in range(sequence.size())]


def is_on(session: SparkSession, key: str, *, default: bool = False) -> bool:
    """Whether a setting of Spark is true, however it is spelled: Spark ignores case and spaces."""
    found = session.sparkContext.getConf().get(key)
    return default if found is None else str(found).strip().lower() == "true"
