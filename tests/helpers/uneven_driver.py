"""A map on two executors of which one is slow; reports how its rows were dealt.

    python uneven_driver.py ROOT

Prints one JSON document. It needs its own process, because a process has only one Spark.
"""

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

import tidegate as tg
from tidegate.models.flow.deal import SLOTS
from tidegate.spark.batch.result import BatchResult
from tidegate.spark.loop.loop import ControlLoop

EXECUTORS = 2
FAST_S, SLOW_S = 0.002, 0.006
PATIENCE_S = 240.0


@dataclass(frozen=True)
class Work:
    """Waits for each row, three times as long on the executor that was the first to get rows."""

    claim: str

    def __call__(self, rows: pa.Table) -> pa.Table:
        mark = Path(self.claim)
        here = str(Path.cwd())
        try:
            with mark.open("x") as file:
                file.write(here)
        except FileExistsError:
            pass
        slow = mark.read_text() == here
        time.sleep(rows.num_rows * (SLOW_S if slow else FAST_S))
        return rows


def shares_of(result: BatchResult) -> dict[str, int]:
    """Rows of a batch by the executor that they were worked on."""
    rows: dict[str, int] = {}
    for report in result.of("work"):
        place = report.executor.partition(":")[2]
        rows[place] = rows.get(place, 0) + report.rows_in
    return rows


def main(root: Path) -> None:
    spark = tg.session(f"local-cluster[{EXECUTORS},1,1024]", "uneven")
    claim = root / "slow"
    stream = tg.arrivals(spark, "constant:150", keys="uniform:100", partitions=2)
    flow = (
        tg.pipeline("uneven", stream, arrival="timestamp")
        .map(Work(str(claim)), name="work", tasks=(2, 2))
        .keyed("count", tg.count(), key="key", shards=16)
    )
    run = flow.start(str(root / "ck"), target="20 seconds", cores=(2, 2), tasks=2, policy="flow")
    loop = run.loop
    assert isinstance(loop, ControlLoop)
    until_s = time.time() + PATIENCE_S

    def wait(done: Callable[[], bool]) -> None:
        while time.time() < until_s and run.isActive and not done():
            time.sleep(0.5)

    def newest() -> int:
        return max((result.plan.batch_id for result in run.results()), default=0)

    def dealt() -> bool:
        route = run.allocation()["work"].route
        return len(route) == EXECUTORS * SLOTS and route.count(0) != route.count(1)

    wait(dealt)
    begun = newest()
    wait(lambda: newest() >= begun + 5)
    run.stop()
    slow = claim.read_text()
    last = [shares_of(result) for result in run.results()[-3:]]
    told = {
        "dealt": [list(r.decision.deal["work"]) for r in loop.records if r.decision.deal],
        "slow": sum(rows.get(slow, 0) for rows in last) / sum(sum(r.values()) for r in last),
        "places": len({place for rows in last for place in rows}),
        "counted": sum(tg.read_state(str(root / "ck"), "count")["count"].to_pylist()),
        "rows": sum(r.rows_in for result in run.results() for r in result.of("work")),
        "failure": None if loop.failure is None else str(loop.failure),
    }
    spark.stop()
    print(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
