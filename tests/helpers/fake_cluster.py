"""A fake of Spark's driver for negotiators: the test decides when executors start or are busy."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from py4j.clientserver import ClientServer

_NUMBERS = itertools.count()


class Sequence(list):
    """A fake Scala sequence, with the methods that py4j shows."""

    def size(self) -> int:
        return len(self)

    def apply(self, place: int) -> Any:
        return self[place]


class JavaList(list):
    def add(self, value: Any) -> None:
        self.append(value)


class FakeGateway(ClientServer):
    """Stands for pinned threads."""

    def __init__(self) -> None:
        pass

    def new_array(self, kind: Any, size: int) -> list:
        return [None] * size


def _decommission_info() -> SimpleNamespace:
    scheduler = SimpleNamespace(ExecutorDecommissionInfo=lambda why, host: why)
    return SimpleNamespace(apache=SimpleNamespace(spark=SimpleNamespace(scheduler=scheduler)))


def at_once(work: Callable[[], None]) -> None:
    """Run what else would run in a thread."""
    work()


class FakeCluster:
    """A fake session. `arrive` starts requested executors, and `leave` ends one."""

    def __init__(self, executors: int = 1, *, master: str = "yarn", **conf: str) -> None:
        self.up = [str(number) for number in range(executors)]
        self.busy: set[str] = set()
        self.running = False
        """Whether a batch is running, so that no batch boundary is reached."""
        self.boundaries = 0
        self.asked: list[int] = []
        self.killed: list[str] = []
        self.now_s = 0.0
        self._next = executors
        conf = {"spark.executor.instances": str(executors), **conf}
        self._held = False
        self.decommissioned: list[str] = []
        self.executions: list[Any] = []
        """The running queries of all sessions, as Spark's shared state has them."""
        java = SimpleNamespace(util=SimpleNamespace(ArrayList=JavaList, HashMap=dict))
        utils = SimpleNamespace(toSeq=Sequence, toScalaMap=dict)
        scala = SimpleNamespace(Tuple2=lambda *two: two, Option=SimpleNamespace(empty=lambda: None))
        self._jsparkSession = SimpleNamespace(
            sharedState=lambda: SimpleNamespace(
                activeStreamingQueries=lambda: SimpleNamespace(values=lambda: self.executions)
            )
        )
        self.sparkContext = SimpleNamespace(
            _jsc=SimpleNamespace(sc=lambda: self),
            _jvm=SimpleNamespace(
                java=java, PythonUtils=utils, scala=scala, org=_decommission_info()
            ),
            _gateway=FakeGateway(),
            appName="fake",
            getConf=lambda: conf,
            master=master,
            applicationId=f"application {id(self)} {next(_NUMBERS)}",
        )

    @contextmanager
    def boundary(self, patience_s: float, needed: Callable[[], bool]) -> Iterator[bool]:
        self.boundaries += 1
        self.patience_s = patience_s
        self._held = not self.running
        try:
            yield not self.running
        finally:
            self._held = False

    def clock(self) -> float:
        return self.now_s

    def arrive(self, count: int) -> None:
        for _ in range(count):
            self.up.append(str(self._next))
            self._next += 1

    def leave(self) -> None:
        self.up = [one for one in self.up if one not in self.killed]

    # Spark's own methods, by their names in Spark.

    def taskScheduler(self) -> SimpleNamespace:  # noqa: N802
        return SimpleNamespace(isExecutorBusy=lambda one: one in self.busy)

    def getExecutorIds(self) -> Sequence:  # noqa: N802
        return Sequence(self.up)

    def requestTotalExecutors(self, total: int, local: int, hosts: Any) -> bool:  # noqa: N802
        self.asked.append(total)
        return True

    def schedulerBackend(self) -> SimpleNamespace:  # noqa: N802
        def kill(ids: Sequence, adjust: bool, count_failures: bool, force: bool) -> Sequence:
            assert self._held, "only between two batches"
            assert not (adjust or count_failures or force)
            gone = Sequence(one for one in ids if one not in self.busy)
            self.killed += gone
            return gone

        def decommission(named: list, adjust: bool, by_executor: bool) -> Sequence:
            assert not (adjust or by_executor)
            gone = Sequence(one for one, _ in named)
            self.killed += gone
            self.decommissioned += gone
            return gone

        return SimpleNamespace(
            killExecutors=kill,
            decommissionExecutors=decommission,
            getExecutorIds=lambda: Sequence(self.up),
            isExecutorActive=lambda one: one in self.up and one not in self.killed,
        )
