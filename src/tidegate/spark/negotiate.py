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
QUIET_S = 0.25
"""How long a tick waits for a moment without any running task before executors go."""
QUIET_TRIES = 5
"""After so many ticks without one, executors that are idle go though others are busy."""


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

    def overdue(self) -> str | None:
        """Never."""
        return None


class ExecutorNegotiator:
    """Executors of any cluster manager, through Spark's own calls.

    The target is lowered first, so that none comes back. With a `boundary` those that go are idle
    because no batch runs while it is held. Without one (queries that are not ours) they are asked
    for tick by tick: preferably in a moment when no task runs at all, most likely between two
    batches, so that none needs their shuffle files, and after a few tries whichever are idle. Spark
    itself refuses to remove a busy one, under the lock by which it hands out tasks.
    """

    def __init__(
        self,
        session: SparkSession,
        cores_per_executor: int,
        cores: int,
        *,
        boundary: Callable[[], AbstractContextManager[object]] | None = None,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        refuse_dynamic_allocation(session)
        self._context: Any = session.sparkContext._jsc.sc()
        self._jvm: Any = session.sparkContext._jvm
        self._per_executor = cores_per_executor
        self._boundary = boundary
        self._clock = clock
        self._pause = pause
        self._tries = 0
        self._wanted = self._executors_for(cores)
        self._asked_s: float | None = None
        self.grant_s: float | None = None
        self.released: list[str] = []
        """Executors that were let go, in order."""
        if self._wanted != len(self._ids()):
            self.ask(cores)

    @property
    def asked(self) -> int:
        """Cores asked for: whole executors."""
        return self._wanted * self._per_executor

    def granted(self) -> int:
        """Cores of the executors that are up and stay."""
        if self._boundary is None:
            self._release_idle()
        count = len(self._ids())
        if self._asked_s is not None and count >= self._wanted:
            self.grant_s = self._learned(self._clock() - self._asked_s)
            self._asked_s = None
        return count * self._per_executor

    def ask(self, cores: int) -> None:
        """Request executors, or release idle ones between two micro-batches."""
        wanted = self._executors_for(cores)
        there = self._ids()
        self._wanted = wanted
        if wanted >= len(there):
            self._request(wanted)
            self._asked_s = self._clock() if wanted > len(there) else None
            return
        self._asked_s = None
        if self._boundary is None:
            self._request(wanted)
            self._tries = 0
            self._release_idle()
            return
        with self._boundary():
            self._request(wanted)
            going = _newest_first(there)[: len(there) - wanted]
            self._context.killExecutors(self._sequence(going))
            self.released += going
            self._request(wanted)  # killExecutors lowers the target once more

    def overdue(self) -> str | None:
        """A request that was not granted in three times the usual time."""
        if self._asked_s is None:
            return None
        waited_s = self._clock() - self._asked_s
        usual_s = self.grant_s or GRANT_PATIENCE_S / 3
        if waited_s <= 3 * usual_s:
            return None
        missing = self._wanted - len(self._ids())
        return (
            f"{missing} of {self._wanted} executors asked for {waited_s:.0f} s ago have not come "
            f"(usual: {usual_s:.0f} s); the cluster may be full"
        )

    def _release_idle(self) -> None:
        """As many as are too many and can go now."""
        there = self._ids()
        if len(there) <= self._wanted:
            return
        if not self._quiet(there) and self._tries < QUIET_TRIES:
            self._tries += 1
            return
        idle = [executor for executor in _newest_first(there) if not self._busy(executor)]
        going = idle[: len(there) - self._wanted]
        if going:
            # Neither the target nor the failures change, and a busy one is not forced.
            gone = self._context.schedulerBackend().killExecutors(
                self._sequence(going), False, False, False
            )
            self.released += _strings(gone)

    def _quiet(self, there: list[str]) -> bool:
        """Whether a moment without any running task came within `QUIET_S`."""
        until_s = self._clock() + QUIET_S
        while any(self._busy(executor) for executor in there):
            if self._clock() >= until_s:
                return False
            self._pause(QUIET_S / 25)
        return True

    def _busy(self, executor: str) -> bool:
        return bool(self._context.taskScheduler().isExecutorBusy(executor))

    def _request(self, executors: int) -> None:
        self._context.requestTotalExecutors(
            executors, 0, self._jvm.PythonUtils.toScalaMap(self._jvm.java.util.HashMap())
        )

    def _ids(self) -> list[str]:
        gone = set(self.released)
        return [one for one in _strings(self._context.getExecutorIds()) if one not in gone]

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


def executors_up(session: SparkSession) -> int:
    """How many executors are registered now."""
    return int(session.sparkContext._jsc.sc().getExecutorIds().size())


def _newest_first(executors: list[str]) -> list[str]:
    """The newest go first: the oldest have the warmest caches."""
    return sorted(executors, key=lambda name: (len(name), name), reverse=True)


def _strings(sequence: Any) -> list[str]:
    return [str(sequence.apply(number)) for number in range(sequence.size())]
