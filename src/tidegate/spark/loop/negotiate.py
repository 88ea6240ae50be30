"""How cores are got and given back (DRS IV-B's negotiator)."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from pyspark.sql import SparkSession

from tidegate.errors import AskedWrongly
from tidegate.spark.master import parse_master

GRANT_PATIENCE_S = 60.0
"""Without a time learned yet, a request is overdue after this."""


class Negotiator(Protocol):
    """Asks for cores and knows how many there are."""

    @property
    def asked(self) -> int:
        """Cores asked for."""
        ...

    @property
    def grant_s(self) -> float | None:
        """How long a grant takes here, as observed; None before the first one."""
        ...

    def granted(self) -> int:
        """Cores that are up; call it every tick, it learns how long grants take."""
        ...

    def ask(self, cores: int) -> None:
        """Have so many cores in all, from as soon as they can be had."""
        ...

    def let_go(self) -> None:
        """Give back what is too many, as far as it can go now; call it every tick."""
        ...

    def overdue(self) -> str | None:
        """What was asked for and did not come in time, in words."""
        ...


class LocalBudget:
    """Threads of one process: cores are a budget that is there at once."""

    grant_s: float | None = 0.0

    def __init__(self, cores: int) -> None:
        self.asked = cores

    def granted(self) -> int:
        """All that was asked for."""
        return self.asked

    def ask(self, cores: int) -> None:
        """There at once."""
        self.asked = cores

    def let_go(self) -> None:
        """A budget is gone when it is asked no more."""

    def overdue(self) -> str | None:
        """Never."""
        return None


class ExecutorNegotiator:
    """Executors of any cluster manager, through Spark's own calls.

    Those that are too many go at a batch boundary: none has a task or a shuffle file that a batch
    still needs. The target is lowered first, so that none comes back. Spark itself refuses to
    remove one that is busy all the same, with somebody else's job, under the lock by which it hands
    out tasks: it goes at a later boundary.
    """

    def __init__(
        self,
        session: SparkSession,
        cores_per_executor: int,
        cores: int,
        *,
        boundary: Callable[[], AbstractContextManager[bool]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        refuse_dynamic_allocation(session)
        self._context: Any = session.sparkContext._jsc.sc()
        self._jvm: Any = session.sparkContext._jvm
        self._per_executor = cores_per_executor
        self._boundary = boundary
        self._clock = clock
        self._wanted = self._executors_for(cores)
        self._waiting: list[tuple[int, float]] = []
        """Executors asked for in all, and when; the oldest first, those that have come left out."""
        self.grant_s: float | None = None
        self.released: list[str] = []
        """Executors that were let go, in order."""
        if self._wanted != len(self._staying()):
            self.ask(cores)

    @property
    def asked(self) -> int:
        """Cores asked for: whole executors."""
        return self._wanted * self._per_executor

    def granted(self) -> int:
        """Cores of the executors that are up and stay."""
        count = len(self._staying())
        while self._waiting and self._waiting[0][0] <= count:
            _, asked_s = self._waiting.pop(0)
            self.grant_s = self._learned(self._clock() - asked_s)
        return count * self._per_executor

    def ask(self, cores: int) -> None:
        """Request executors; with fewer than there are, `let_go` will have some to release."""
        self._wanted = self._executors_for(cores)
        self._request(self._wanted)
        self._waiting = [one for one in self._waiting if one[0] <= self._wanted]
        if self._wanted > max(len(self._staying()), *(count for count, _ in self._waiting), 0):
            self._waiting.append((self._wanted, self._clock()))

    def let_go(self) -> None:
        """Release those that are too many, the newest first, if a batch boundary comes in time."""
        if len(self._staying()) <= self._wanted:
            return
        with self._boundary() as reached:
            there = self._staying()
            going = _newest_first(there)[: max(0, len(there) - self._wanted)]
            if not reached or not going:
                return
            # The target is lowered already; a failure is not counted, and a busy one not forced.
            gone = self._context.schedulerBackend().killExecutors(
                self._sequence(going), False, False, False
            )
            self.released += _strings(gone)

    def overdue(self) -> str | None:
        """A request that was not granted in three times the usual time."""
        if not self._waiting:
            return None
        executors, asked_s = self._waiting[0]
        waited_s = self._clock() - asked_s
        usual_s = self.grant_s or GRANT_PATIENCE_S / 3
        if waited_s <= 3 * usual_s:
            return None
        missing = executors - len(self._staying())
        return (
            f"{missing} of {executors} executors asked for {waited_s:.0f} s ago have not come "
            f"(usual: {usual_s:.0f} s); the cluster may be full"
        )

    def _request(self, executors: int) -> None:
        self._context.requestTotalExecutors(
            executors, 0, self._jvm.PythonUtils.toScalaMap(self._jvm.java.util.HashMap())
        )

    def _staying(self) -> list[str]:
        """Executors that are up; one that was told to go is listed until its process has ended."""
        backend = self._context.schedulerBackend()
        return [one for one in _strings(backend.getExecutorIds()) if backend.isExecutorActive(one)]

    def _sequence(self, executors: list[str]) -> Any:
        ids = self._jvm.java.util.ArrayList()
        for executor in executors:
            ids.add(executor)
        return self._jvm.PythonUtils.toSeq(ids)

    def _executors_for(self, cores: int) -> int:
        return max(1, -(-cores // self._per_executor))

    def _learned(self, seconds: float) -> float:
        """Halfway to the newest observation: what a scaling takes, not what was configured."""
        return seconds if self.grant_s is None else 0.5 * (self.grant_s + seconds)


def refuse_dynamic_allocation(session: SparkSession) -> None:
    """Two that ask for executors would undo each other's work."""
    if session.sparkContext.getConf().get("spark.dynamicAllocation.enabled", "false") == "true":
        raise AskedWrongly(
            "spark.dynamicAllocation.enabled is true, and it would undo what Tidegate decides; set "
            "it to false, or give no executors to scale"
        )


def cores_per_executor(session: SparkSession) -> int:
    """Cores of one executor: as configured, else as those that are up have them."""
    url = parse_master(str(session.sparkContext.master)).url
    if url.startswith("local-cluster"):
        return int(url.split("[")[1].split(",")[1])
    configured = session.sparkContext.getConf().get("spark.executor.cores")
    if configured:
        return int(configured)
    listed: Any = session.sparkContext._jsc.sc().statusStore().executorList(True)
    entries = (listed.apply(number) for number in range(listed.size()))
    return max((int(one.totalCores()) for one in entries if one.id() != "driver"), default=1) or 1


def cores_there(session: SparkSession) -> int | None:
    """All the cores that can be had, where the master or the configuration says so."""
    master = parse_master(str(session.sparkContext.master))
    if master.in_one_process:
        return int(session.sparkContext.defaultParallelism)
    most = session.sparkContext.getConf().get("spark.cores.max")
    known = [cores for cores in (master.cores, most and int(most)) if cores]
    return min(known, default=None)


def executors_up(session: SparkSession) -> int:
    """How many executors are registered now."""
    return int(session.sparkContext._jsc.sc().getExecutorIds().size())


def _newest_first(executors: list[str]) -> list[str]:
    """The newest go first: the oldest have the warmest caches."""
    return sorted(executors, key=lambda name: (len(name), name), reverse=True)


def _strings(sequence: Any) -> list[str]:
    return [str(sequence.apply(number)) for number in range(sequence.size())]
