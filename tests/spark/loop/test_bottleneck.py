"""The bottleneck of a running pipeline is named, and named anew when it moves."""

import dataclasses
import json
import time
from pathlib import Path

import pyarrow as pa

import tidegate as tg
from tidegate.control.record import Record
from tidegate.pipelines.functions import count
from tidegate.pipelines.keyed import BoundKeyed, KeyedBatch, KeyedFunction, Update
from tidegate.recording import read_records
from tidegate.spark.loop.loop import ControlLoop

OPERATORS = ("parse", "match", "count")
SLOW_S = 0.02
TICKS = 3


@dataclasses.dataclass(frozen=True)
class Work:
    """Waits for each row as long as a file says that this operator's rows take just now."""

    costs: str
    operator: str

    def wait(self, rows: pa.Table) -> None:
        time.sleep(rows.num_rows * json.loads(Path(self.costs).read_text())[self.operator])

    def __call__(self, rows: pa.Table) -> pa.Table:
        self.wait(rows)
        return rows


@dataclasses.dataclass(frozen=True)
class Worked:
    """A keyed function with that work in front of it."""

    inner: KeyedFunction
    work: Work

    def bind(self, rows: pa.Schema, key: tuple[str, ...]) -> BoundKeyed:
        bound = self.inner.bind(rows, key)

        def update(batch: KeyedBatch) -> Update:
            self.work.wait(batch.rows)
            return bound.update(batch)

        return dataclasses.replace(bound, update=update)


def make_slow(costs: Path, operator: str) -> float:
    """From now on this operator does the work; gives the time of the change."""
    new = costs.with_suffix(".new")
    new.write_text(json.dumps({name: SLOW_S if name == operator else 0.0 for name in OPERATORS}))
    new.replace(costs)
    return time.time()


def since(loop: ControlLoop, changed_s: float) -> list[Record]:
    """The ticks from the first on that saw a batch of the new work alone."""
    records = list(loop.records)
    for place, record in enumerate(records):
        for batch in record.measurement.segments[0].batches:
            if batch.rows and batch.ended_s - batch.duration_s > changed_s:
                return records[place:]
    return []


def test_a_bottleneck_that_moves_is_named_within_three_ticks(spark, tmp_path, wait_for) -> None:
    costs = tmp_path / "costs.json"
    make_slow(costs, "parse")
    stream = tg.arrivals(spark, "constant:40", keys="uniform:100", partitions=1)
    flow = (
        tg.pipeline("moving", stream, arrival="timestamp")
        .map(Work(str(costs), "parse"), name="parse", tasks=(1, 2))
        .map(Work(str(costs), "match"), name="match", tasks=(1, 2))
        .keyed("count", Worked(count(), Work(str(costs), "count")), key="key", shards=16)
    )
    run = flow.start(
        str(tmp_path / "ck"), target="30 seconds", cores=(2, 2), tasks=2, policy="static"
    )
    loop = run.loop
    assert isinstance(loop, ControlLoop)
    try:
        for operator in ("parse", "match", "count", "parse"):
            changed_s = make_slow(costs, operator)

            def seen(changed_s: float = changed_s) -> bool:
                return len(since(loop, changed_s)) >= TICKS or loop.failure is not None

            wait_for(seen, run.queries["main"])
            assert loop.failure is None
            named = [
                record.bottleneck.operator
                for record in since(loop, changed_s)[:TICKS]
                if record.bottleneck is not None  # a stale tick names nothing
            ]
            assert named and named[-1] == operator, named
    finally:
        run.stop()
    records = read_records(tmp_path / "ck")
    assert records == list(loop.records)
    last = next(record.bottleneck for record in reversed(records) if record.bottleneck)
    assert last.tasks == 2
    assert (
        "`parse` would be the first to limit the pipeline" in last.words
        and "its 2 tasks" in last.words
    )


def test_the_flow_policy_widens_the_operator_that_limits(spark, tmp_path, wait_for) -> None:
    """Two tasks cannot carry it; a map without tasks of its own is left as it is."""
    costs = tmp_path / "costs.json"
    make_slow(costs, "match")
    stream = tg.arrivals(spark, "constant:110", keys="uniform:100", partitions=1)
    flow = (
        tg.pipeline("widened", stream, arrival="timestamp")
        .map(Work(str(costs), "parse"), name="parse")
        .map(Work(str(costs), "match"), name="match", tasks=(1, 4))
        .keyed("count", Worked(count(), Work(str(costs), "count")), key="key", shards=16)
    )
    run = flow.start(
        str(tmp_path / "ck"), target="20 seconds", cores=(2, 4), tasks=2, policy="flow"
    )
    loop = run.loop
    assert isinstance(loop, ControlLoop)

    def widened() -> bool:
        return run.allocation()["match"].tasks > 2 or loop.failure is not None

    try:
        wait_for(widened, run.queries["main"])
    finally:
        run.stop()
    assert loop.failure is None
    change = next(record for record in loop.records if "match" in record.decision.tasks)
    assert "the way to `match` is " in change.decision.reason
    assert "parse" not in change.decision.tasks
    assert change.bottleneck is not None and change.bottleneck.operator == "match"
