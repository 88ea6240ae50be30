"""Imitated Spark queries on an imitated cluster, under the attached meter and a real controller.

No Spark is started: the queries return progress reports as Spark would, and the cluster grants
executors some seconds after they are asked for.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import pytest

from tests.helpers.fake_query import FakeQuery, progress
from tidegate.control.assemble import new_controller
from tidegate.control.assembly import Assembly
from tidegate.control.record import Record
from tidegate.spark.measure import attached_meter
from tidegate.spark.measure.attached_meter import AttachedMeter
from tidegate.spark.measure.read_limits import ReadLimits
from tidegate.spark.measure.stage_work import BatchWork

BEGUN_S = 1_700_000_000.0
OFFSETS_S, PLANNING_S, LOG_S = 0.05, 0.15, 0.10
COLD = (5.0, 3.0, 2.0)
"""How many times as long the first batches take."""


class Cluster:
    """Grants what is asked for after a while; releases at once."""

    def __init__(self, cores: int, grant_after_s: float) -> None:
        self.asked = cores
        self.grant_s: float | None = None
        self._there, self._after_s = cores, grant_after_s
        self._asked_s = self.now_s = 0.0

    def granted(self) -> int:
        if self.asked <= self._there:
            self._there = self.asked
        elif self.now_s - self._asked_s >= self._after_s:
            self._there, self.grant_s = self.asked, self._after_s
        return self._there

    def ask(self, cores: int) -> None:
        self.asked, self._asked_s = cores, self.now_s

    def let_go(self) -> None:
        """It released at once."""

    def overdue(self) -> None:
        return None

    def close(self) -> None:
        """There is nothing to close."""


@dataclass
class Imitated:
    """One query: its load, what its rows cost, and where it is."""

    query: FakeQuery
    arrived: Callable[[float], float]
    """Rows that have arrived until a second of the run."""
    row_s: float
    state: bool = False
    limit_rows: int | None = None
    number: int = 0
    taken: int = 0
    begins_s: float = 1.0
    before_s: float = 0.0
    works: dict[int, BatchWork] = field(default_factory=dict)

    def run_until(self, now_s: float, cores: int) -> None:
        """Report the batches that end until now, on so many cores."""
        while True:
            there = int(self.arrived(self.begins_s)) - self.taken
            rows = there if self.limit_rows is None else min(there, self.limit_rows)
            slow = COLD[self.number] if self.number < len(COLD) else 1.0
            busy_s = slow * rows * self.row_s
            work_s = 0.2 * slow + busy_s / max(cores, 1)
            duration_s = OFFSETS_S + PLANNING_S + LOG_S + work_s
            if self.begins_s + duration_s > now_s:
                return
            span_s = max(self.begins_s - self.before_s, 0.1)
            self.query.meter.coming.append(
                replace(
                    progress(self.number, BEGUN_S + self.begins_s, duration_s, rows, span_s),
                    offsets_s=OFFSETS_S,
                    planning_s=PLANNING_S,
                    log_s=LOG_S,
                    work_s=work_s,
                    state_s=0.25 * busy_s if self.state else None,
                    behind_rows=there - rows,
                )
            )
            self.works[self.number] = BatchWork(busy_s, 0.0)
            self.number, self.taken = self.number + 1, self.taken + rows
            self.before_s, self.begins_s = self.begins_s, self.begins_s + duration_s


def attached_run(
    monkeypatch: pytest.MonkeyPatch,
    queries: list[Imitated],
    assembly: Assembly,
    *,
    seconds: int,
    begins_with: int,
    grant_after_s: float = 6.0,
) -> list[Record]:
    """The records of an attachment to these queries."""
    monkeypatch.setattr(attached_meter, "QueryMeter", lambda query: query.meter)
    limits = {one.query: ReadLimits(rows=one.limit_rows) for one in queries}
    monkeypatch.setattr(attached_meter, "read_limits", lambda query: limits[query])
    clock = SimpleNamespace(time=lambda: BEGUN_S, perf_counter=lambda: 0.0)
    monkeypatch.setattr(attached_meter, "time", clock)
    cluster = Cluster(begins_with, grant_after_s)
    by_run = {str(one.query.runId): one for one in queries}
    meter = AttachedMeter(
        lambda: [one.query for one in queries],
        cluster,
        lambda: sum(work.busy_s for one in queries for work in one.works.values()),
        lambda run_id: by_run[run_id].works,
    )
    controller = new_controller(assembly)
    found = []
    for second in range(1, seconds + 1):
        cluster.now_s = float(second)
        for run_id, one in by_run.items():
            # Spark's scheduler gives a query what the others leave; the meter divides them alike.
            cores = meter._shares.get(run_id, cluster.granted() // len(queries))
            one.run_until(float(second), max(cores, 1))
        record = controller.tick(meter.measure(BEGUN_S + second))
        if record.acted and record.decision.cores is not None:
            cluster.ask(record.decision.cores)
        found.append(record)
    return found
