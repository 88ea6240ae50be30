"""How cores are got and given back (DRS IV-B's negotiator)."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from pyspark.sql import SparkSession

from tidegate.errors import AskedWrongly

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

    Executors are released between two micro-batches: the target is lowered first, so that none
    comes back, and those that go are idle because no batch runs while `boundary` is held.
    """

    def __init__(
        self,
        session: SparkSession,
        cores_per_executor: int,
        cores: int,
        *,
        boundary: Callable[[], AbstractContextManager[object]] = nullcontext,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        refuse_dynamic_allocation(session)
        self._context: Any = session.sparkContext._jsc.sc()
        self._jvm: Any = session.sparkContext._jvm
        self._per_executor = cores_per_executor
        self._boundary = boundary
        self._clock = clock
        self._wanted = self._executors_for(cores)
        self._asked_s: float | None = None
        self.grant_s: float | None = None
        self.released: list[str] = []
        if self._wanted != len(self._ids()):
            self.ask(cores)

    @property
    def asked(self) -> int:
        """Cores asked for: whole executors."""
        return self._wanted * self._per_executor

    def granted(self) -> int:
        """Cores of the executors that are up."""
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
            if wanted > len(there):
                self._asked_s = self._clock()
            return
        self._asked_s = None
        with self._boundary():
            self._request(wanted)
            going = self._to_release(there, len(there) - wanted)
            ids = self._jvm.java.util.ArrayList()
            for executor in going:
                ids.add(executor)
            self._context.killExecutors(self._jvm.PythonUtils.toSeq(ids))
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

    def _to_release(self, there: list[str], count: int) -> list[str]:
        """The newest executors go first: the oldest have the warmest caches."""
        return sorted(there, key=lambda name: (len(name), name), reverse=True)[:count]

    def _request(self, executors: int) -> None:
        self._context.requestTotalExecutors(
            executors, 0, self._jvm.PythonUtils.toScalaMap(self._jvm.java.util.HashMap())
        )

    def _ids(self) -> list[str]:
        found = self._context.getExecutorIds()
        return [found.apply(number) for number in range(found.size())]

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
