"""What the pipelines of one Spark application have in common: its cores.

Spark knows one number of executors for an application, so pipelines that each asked for their own
would undo each other's requests. Here they ask for the sum, and share what there is
(`control.sharing`). One `Commons` per SparkContext; a pipeline joins when its loop starts and
leaves when it stops.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from tidegate.control.measurement import Measurement
from tidegate.control.sharing import Claimant, Sharing
from tidegate.spark.negotiate import ExecutorNegotiator, cores_there

Boundary = Callable[[], AbstractContextManager[bool]]
_of_application: dict[str, "Commons"] = {}
_guard = threading.Lock()


class Commons:
    """The pipelines of one application that keep targets."""

    def __init__(self, cores: int | None, cores_per_executor: int) -> None:
        self._lock = threading.Lock()
        self._letting_go = threading.Lock()
        self._per_executor = cores_per_executor
        self._sharing = None if cores is None else Sharing(cores, cores_per_executor)
        self._parts: dict[str, Part] = {}
        self.executors: ExecutorNegotiator | None = None
        """Who asks Spark; None in one process, where cores are a budget that is there at once."""

    def join(
        self,
        name: str,
        session: SparkSession,
        *,
        local: bool,
        cores: int,
        target_s: float,
        boundary: Boundary,
    ) -> "Part":
        """A pipeline that starts with so many cores."""
        with self._lock:
            part = Part(self, name, Claimant(name, target_s), boundary, self._whole(cores))
            self._parts[name] = part
            if local:
                return part
            if self.executors is None:
                self.executors = ExecutorNegotiator(
                    session, self._per_executor, part.asked, boundary=self._boundary
                )
            else:
                self.executors.ask(self._asked)
            return part

    def leave(self, name: str) -> None:
        """A pipeline that has ended; the executors that only it needed go at the next boundary."""
        with self._lock:
            self._parts.pop(name, None)
            if self._sharing is not None:
                self._sharing.leave(name)
            if self.executors is not None and self._parts:
                self.executors.ask(self._asked)

    @property
    def empty(self) -> bool:
        """Whether no pipeline is left."""
        return not self._parts

    def shared(self, part: "Part", measurement: Measurement) -> Measurement:
        """The measurement with the cores that the other pipelines leave to this one."""
        claim = part.claimant.observe(measurement)
        with self._lock:
            if self._sharing is None or part.name not in self._parts:
                return measurement
            self._sharing.tell(part.name, claim)
            allowed = self._sharing.allowed(part.name)
        return replace(measurement, cores_allowed=allowed)

    def ask(self, part: "Part", cores: int) -> None:
        """More or fewer cores for one pipeline; Spark is asked for the sum."""
        with self._lock:
            part.asked = self._whole(cores)
            if self._sharing is not None:
                self._sharing.ask(part.name, part.asked)
            if self.executors is not None:
                self.executors.ask(self._asked)

    def granted(self, part: "Part") -> int:
        """Of the cores that are up, a pipeline's: those that it had, and new ones in turn."""
        with self._lock:
            if self.executors is None:
                return part.asked
            free = self.executors.granted()
            if len(self._parts) == 1:
                part.held = free
                return free
            for one in self._parts.values():
                one.held = min(one.held, one.asked, free)
                free -= one.held
            for one in self._parts.values():
                more = min(one.asked - one.held, free)
                one.held += more
                free -= more
            return part.held

    def let_go(self) -> None:
        """Release executors that are too many for all pipelines together; one loop at a time."""
        if self.executors is None or not self._letting_go.acquire(blocking=False):
            return
        try:
            self.executors.let_go()
        finally:
            self._letting_go.release()

    @property
    def _asked(self) -> int:
        return sum(part.asked for part in self._parts.values())

    def _whole(self, cores: int) -> int:
        return -(-cores // self._per_executor) * self._per_executor

    @contextmanager
    def _boundary(self) -> Iterator[bool]:
        """Between two micro-batches of every pipeline."""
        with ExitStack() as stack:
            reached = True
            for part in list(self._parts.values()):
                reached = reached and stack.enter_context(part.boundary())
            yield reached


@dataclass(slots=True)
class Part:
    """One pipeline's part of the cores: the negotiator of its loop."""

    commons: Commons
    name: str
    claimant: Claimant
    boundary: Boundary
    asked: int
    held: int = 0
    """Cores that are up and its own."""

    @property
    def grant_s(self) -> float | None:
        """How long a grant takes here, as observed; none at all in one process."""
        executors = self.commons.executors
        return 0.0 if executors is None else executors.grant_s

    @property
    def released(self) -> list[str]:
        """Executors that were let go, in order."""
        executors = self.commons.executors
        return [] if executors is None else executors.released

    def granted(self) -> int:
        """Cores that are up."""
        return self.commons.granted(self)

    def ask(self, cores: int) -> None:
        """Have so many cores, from as soon as they can be had."""
        self.commons.ask(self, cores)

    def let_go(self) -> None:
        """Give back what is too many, as far as it can go now."""
        self.commons.let_go()

    def overdue(self) -> str | None:
        """What was asked for and did not come in time, in words."""
        executors = self.commons.executors
        return None if executors is None else executors.overdue()

    def shared(self, measurement: Measurement) -> Measurement:
        """The measurement with the cores that the other pipelines leave to this one."""
        return self.commons.shared(self, measurement)

    def leave(self) -> None:
        """The pipeline has ended."""
        self.commons.leave(self.name)
        with _guard:
            for application, commons in list(_of_application.items()):
                if commons is self.commons and commons.empty:
                    del _of_application[application]


def commons_of(session: SparkSession, cores_per_executor: int) -> Commons:
    """The application's; made by the first pipeline that keeps a target."""
    application = str(session.sparkContext.applicationId)
    with _guard:
        if application not in _of_application:
            _of_application[application] = Commons(cores_there(session), cores_per_executor)
        return _of_application[application]
