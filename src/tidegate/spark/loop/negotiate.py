"""Requests cores and gives them back (the negotiator of DRS, section IV-B)."""

import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from pyspark.sql import SparkSession

from tidegate.control.measurement import Overdue
from tidegate.errors import AskedWrongly
from tidegate.logs import PipelineLogger, reason
from tidegate.spark.loop.boundary import Boundary
from tidegate.spark.loop.patience import Answered, NoAnswer
from tidegate.spark.loop.release import Background, ExecutorRelease, in_a_thread, is_on, strings
from tidegate.spark.loop.warm_executors import WarmExecutors
from tidegate.spark.master import parse_master

GRANT_PATIENCE_S = 60.0
"""A request is overdue after this long, until the usual time of a grant is known."""

_DEFAULT_INSTANCES = 2
"""The executors that Spark starts on YARN and Kubernetes if it is not told a number."""
_REQUESTED: dict[str, int] = {}
"""The executors that Tidegate last requested for each Spark application."""


class Negotiator(Protocol):
    """Requests cores, gives them back, and knows how many are up."""

    @property
    def asked(self) -> int:
        """The number of cores requested in all."""
        ...

    @property
    def grant_s(self) -> float | None:
        """The observed time from a request to its grant; None before the first grant."""
        ...

    def granted(self) -> int:
        """The cores that are up. Call this every tick: it also measures how long grants take."""
        ...

    def ask(self, cores: int) -> None:
        """Request this many cores in all."""
        ...

    def let_go(self) -> None:
        """Give back surplus cores that can be released now. Call this every tick."""
        ...

    def overdue(self) -> Overdue | None:
        """The request that was not granted in time; None if there is none."""
        ...

    def close(self) -> None:
        """Give nothing back any more, because the loop has ended."""
        ...


class LocalBudget:
    """Cores of a single process: its threads, of which any number is available at once."""

    grant_s: float | None = 0.0

    def __init__(self, cores: int) -> None:
        self.asked = cores

    def granted(self) -> int:
        """All cores that were requested."""
        return self.asked

    def ask(self, cores: int) -> None:
        """Set the number of cores, which takes effect at once."""
        self.asked = cores

    def let_go(self) -> None:
        """Do nothing: `ask` has already lowered the number."""

    def overdue(self) -> Overdue | None:
        """None, because every request is granted at once."""
        return None

    def close(self) -> None:
        """Do nothing."""


class UntouchedExecutors:
    """The negotiator of a dry run: counts executors, and neither requests nor releases any."""

    grant_s: float | None = None

    def __init__(self, session: SparkSession, cores_per_executor: int) -> None:
        self._session = session
        self._per_executor = cores_per_executor

    @property
    def asked(self) -> int:
        """The cores that are up, because a dry run requests none."""
        return self.granted()

    def granted(self) -> int:
        """Cores of the executors that are up and not being released by others."""
        return len(_staying(self._session.sparkContext._jsc.sc())) * self._per_executor

    def ask(self, cores: int) -> None:
        """Fail: a dry run acts on nothing, so nobody may call this."""
        raise AssertionError(f"a dry run asked for {cores} cores")

    def let_go(self) -> None:
        """Do nothing."""

    def overdue(self) -> Overdue | None:
        """None, because nothing was requested."""
        return None

    def close(self) -> None:
        """Do nothing."""


class ExecutorNegotiator:
    """Requests and releases executors of any cluster manager through Spark's own calls.

    Surplus executors are released at a batch boundary (`release.py`), when no batch needs their
    tasks or shuffle files. The requested total is lowered first, so that Spark does not replace
    them. An executor may still be busy with a job of another part of the application. Spark checks
    this under the lock by which it assigns tasks, and refuses to remove it; it is released at a
    later boundary.

    Until the first request, Spark may still be starting executors by its own configuration. With
    `most` they are taken over as they come, up to so many cores, and none of them is cancelled.
    """

    def __init__(
        self,
        session: SparkSession,
        cores_per_executor: int,
        cores: int,
        *,
        boundary: Boundary,
        most: int | None = None,
        warm: WarmExecutors | None = None,
        clock: Callable[[], float] = time.monotonic,
        background: Background = in_a_thread,
    ) -> None:
        refuse_dynamic_allocation(session)
        self._warm = warm
        """Knows which executors count; None: all that are up."""
        self._application = str(session.sparkContext.applicationId)
        self._context: Any = session.sparkContext._jsc.sc()
        self._jvm: Any = session.sparkContext._jvm
        self._per_executor = cores_per_executor
        self._release = ExecutorRelease(session, boundary, clock=clock, background=background)
        self._requests = Answered("the request for executors")
        self._clock = clock
        self._wanted = self._executors_for(cores)
        self._waiting: list[tuple[int, float]] = []
        """Requests not granted yet, oldest first: total executors, and the time of the request."""
        self.grant_s: float | None = None
        self._first: list[str] = []
        """Executors that go before others, by Spark's numbers."""
        self._adopts = 0 if most is None else most // cores_per_executor
        """While nothing has been requested: how many executors are taken over as they come."""
        if self._wanted != (_target(session) or len(self._staying())):
            try:
                self.ask(cores)
            except NoAnswer as error:
                # The pipeline can begin with what is up. A later decision makes the next request.
                self._wanted = max(1, len(self._staying()))
                log = PipelineLogger("executors", str(session.sparkContext.appName))
                log.warning(
                    "the cluster manager does not answer, so that the pipeline begins with the"
                    " executors that are up: %s",
                    reason(error),
                )

    @property
    def asked(self) -> int:
        """The cores requested, in whole executors."""
        return self._wanted * self._per_executor

    @property
    def released(self) -> list[str]:
        """The executors that were released, in order."""
        return self._release.released

    @property
    def adopts(self) -> bool:
        """Whether it still takes over executors that Spark starts by its own configuration."""
        return self._adopts > 0

    def granted(self) -> int:
        """The cores of the executors that are up and warm, and not being released."""
        there = self._adopted()
        count = len(there if self._warm is None else self._warm.count(there))
        while self._waiting and self._waiting[0][0] <= count:
            _, asked_s = self._waiting.pop(0)
            self.grant_s = self._learned(self._clock() - asked_s)
        return count * self._per_executor

    def ask(self, cores: int) -> None:
        """Request executors. If these are fewer than are up, `let_go` releases the surplus."""
        wanted = self._executors_for(cores)
        self._request(wanted)
        self._wanted, self._adopts = wanted, 0
        self._waiting = [one for one in self._waiting if one[0] <= self._wanted]
        if self._wanted > max(len(self._staying()), *(count for count, _ in self._waiting), 0):
            self._waiting.append((self._wanted, self._clock()))

    def let_go(self) -> None:
        """Release surplus executors at the next batch boundary: slow ones, then the newest."""
        self._release.let_go(self._surplus)

    def release_first(self, executors: Sequence[str]) -> None:
        """Release these before others, if any is released; named as their tasks name them.

        Where Spark's number cannot be told from such a name, as on YARN, the order stays as it is.
        """
        numbers = [spark_number(name) for name in executors]
        self._first = [number for number in numbers if number is not None]

    def close(self) -> None:
        """Release nothing any more."""
        self._release.close()

    def overdue(self) -> Overdue | None:
        """A request that has waited three times as long as usual."""
        if not self._waiting:
            return None
        executors, asked_s = self._waiting[0]
        waited_s = self._clock() - asked_s
        usual_s = self.grant_s or GRANT_PATIENCE_S / 3
        if waited_s <= 3 * usual_s:
            return None
        missing = executors - len(self._staying())
        if missing <= 0:
            return None  # all have come, and are being warmed up
        return Overdue(
            missing=missing, requested=executors, waited_s=waited_s, usual_s=self.grant_s
        )

    def _request(self, executors: int) -> None:
        anywhere = self._jvm.PythonUtils.toScalaMap(self._jvm.java.util.HashMap())
        self._requests.call(lambda: self._context.requestTotalExecutors(executors, 0, anywhere))
        _REQUESTED[self._application] = executors

    def _adopted(self) -> list[str]:
        """The executors that stay. Before the first request, those that have come are wanted."""
        staying = self._staying()
        self._wanted = max(self._wanted, min(len(staying), self._adopts))
        return staying

    def _staying(self) -> list[str]:
        """Executors that are up and not being released."""
        return _staying(self._context)

    def _surplus(self) -> list[str]:
        """The executors to release; none while some are warmed up, which takes a job of Spark."""
        there = self._adopted()
        if self._warm is not None and self._warm.busy:
            return []
        slow = [one for one in self._first if one in there]
        rest = [one for one in _newest_first(there) if one not in slow]
        return [*slow, *rest][: max(0, len(there) - self._wanted)]

    def _executors_for(self, cores: int) -> int:
        return max(1, -(-cores // self._per_executor))

    def _learned(self, seconds: float) -> float:
        """The new estimate of the time of a grant: halfway from the old one to this observation."""
        return seconds if self.grant_s is None else 0.5 * (self.grant_s + seconds)


def refuse_dynamic_allocation(session: SparkSession) -> None:
    """Refuse Spark's dynamic allocation: it and Tidegate would undo each other's requests."""
    if is_on(session, "spark.dynamicAllocation.enabled"):
        raise AskedWrongly(
            "spark.dynamicAllocation.enabled is true and would undo Tidegate's decisions; set "
            "it to false"
        )


def task_cpus(session: SparkSession) -> int:
    """The cores that Spark reserves for each task (`spark.task.cpus`).

    What Tidegate counts as a core is the place of one task. With two cores per task, a machine of
    eight has four of them.
    """
    return max(1, int(session.sparkContext.getConf().get("spark.task.cpus") or 1))


def cores_per_executor(session: SparkSession) -> int:
    """The tasks that one executor can run at a time: its cores over the cores of a task."""
    return max(1, _executor_cores(session) // task_cpus(session))


def _executor_cores(session: SparkSession) -> int:
    """The cores of one executor: as configured, else as the running executors have them."""
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
    """The most tasks that can run at a time; None if neither master nor configuration says."""
    cores = master_cores(session)
    return None if cores is None else max(1, cores // task_cpus(session))


def master_cores(session: SparkSession) -> int | None:
    """The most cores this application can have; None if neither master nor configuration says."""
    master = parse_master(str(session.sparkContext.master))
    if master.in_one_process:
        return int(session.sparkContext.defaultParallelism)
    most = session.sparkContext.getConf().get("spark.cores.max")
    known = [cores for cores in (master.cores, most and int(most)) if cores]
    return min(known, default=None)


def executors_up(session: SparkSession) -> int:
    """The number of executors registered now."""
    return int(session.sparkContext._jsc.sc().getExecutorIds().size())


def executors_expected(session: SparkSession) -> int:
    """Executors that are up, or that Spark was asked for and has not started yet."""
    return max(len(_staying(session.sparkContext._jsc.sc())), _target(session))


def _staying(context: Any) -> list[str]:
    """Executors that are up and not being released; Spark lists those until they exit."""
    backend = context.schedulerBackend()
    return [one for one in strings(backend.getExecutorIds()) if backend.isExecutorActive(one)]


def _target(session: SparkSession) -> int:
    """The number of executors that Spark works towards; 0 where that is not known.

    Before Tidegate's first request it is the one of Spark's own configuration. A standalone master
    without `spark.cores.max` gives all it has, and we do not know how much that is.
    """
    requested = _REQUESTED.get(str(session.sparkContext.applicationId))
    if requested is not None:
        return requested
    if parse_master(str(session.sparkContext.master)).url.startswith(("local-cluster", "spark:")):
        return (cores_there(session) or 0) // cores_per_executor(session)
    return int(session.sparkContext.getConf().get("spark.executor.instances") or _DEFAULT_INSTANCES)


def spark_number(executor: str) -> str | None:
    """Spark's number of an executor, by the host and the working directory that its tasks tell.

    A standalone worker calls the directory by the number. On Kubernetes the host is the pod.
    """
    host, _, directory = executor.partition(":")
    for end in (directory.rstrip("/").rpartition("/")[2], host.rpartition("-exec-")[2]):
        if end.isdecimal():
            return end
    return None


def _newest_first(executors: list[str]) -> list[str]:
    """Executors in the order of release: newest first, because the oldest have warm caches."""
    return sorted(executors, key=lambda name: (len(name), name), reverse=True)
