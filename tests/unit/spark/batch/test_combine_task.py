"""The tasks in front of and behind the shuffle, without Spark between them."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.helpers.keyed_store import hashes_of
from tidegate.pipelines import functions as tg
from tidegate.pipelines.keyed import ROWS
from tidegate.spark.batch import combine_task
from tidegate.spark.batch.ahead import AHEAD_US
from tidegate.spark.batch.combine_task import CombineStage, CombineTask
from tidegate.spark.batch.keyed_task import KeyedStage, KeyedTask
from tidegate.spark.batch.report import TaskReport, combining, newest_of
from tidegate.spark.batch.worker import HASH, ORDER, TASK, packed
from tidegate.spark.measure.stamps import ArrivalSample
from tidegate.spark.shedding.task import ShedStage
from tidegate.spark.state.files import Durable
from tidegate.spark.state.node_cache import NodeCache
from tidegate.spark.state.packed_version import PackedVersion
from tidegate.spark.state.task import Keeper
from tidegate.spark.state.version import Version

SHARDS, TASKS = 8, 2
ROUTE = np.arange(SHARDS, dtype=np.int32) % TASKS
ROW = pa.schema(
    [
        ("k", pa.string()),
        ("v", pa.int64()),
        ("kind", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
    ]
)
AT_US = 1_700_000_000_000_000
COUNT = 3_000


@dataclass
class Told:
    """An accumulator, in this process."""

    reports: list[TaskReport] = field(default_factory=list)

    def add(self, reports: list[TaskReport]) -> None:
        self.reports += reports


class World:
    """One operator and its state, given batches with and without combining."""

    def __init__(self, root: Path, function) -> None:
        bound = function.bind(ROW, ("k",))
        assert bound.combiner is not None
        folder = Durable(str(root / "state"))
        folder.make()
        cache = NodeCache(str(root / "node"), folder, SHARDS)
        keeper = Keeper(operator="op", key=pa.schema([ROW.field("k")]), bound=bound, cache=cache)
        sample = ArrivalSample("at")
        offered = ShedStage("in", "kind", ("gold", "other"))
        stage = KeyedStage(keeper, ROW, None, sample, offered, combiner=bound.combiner)
        needs = pa.schema([ROW.field(name) for name in bound.combiner.needs])
        front = CombineStage("op", bound.combiner, needs, sample, offered)
        self.bound = bound
        self.front, self.plain = packed(front), packed(stage)
        self.behind = packed(stage.of_combined(bound.combiner))
        self.version = Version.empty(SHARDS)
        self.batch_id = 0

    def run(self, parts: list[pa.Table], combine: bool) -> tuple[pa.Table, list[TaskReport]]:
        """One batch; each part is what one task reads, in blocks of some hundred rows."""
        told = Told()
        stage = self.behind if combine else self.plain
        sent = []
        for number, part in enumerate(parts):
            blocks = part.to_batches(max_chunksize=500)
            if combine:
                task = CombineTask(self.front, self.batch_id, AT_US, told)
                blocks = list(task(iter(blocks)))
            rows = pa.Table.from_batches(blocks)
            hashes = hashes_of(rows.select(["k"]), 62)
            order = (np.int64(number) << 33) + np.arange(rows.num_rows)
            task_of = ROUTE[hashes % SHARDS]
            sent.append(
                rows.append_column(HASH, pa.array(hashes))
                .append_column(ORDER, pa.array(order))
                .append_column(TASK, pa.array(task_of))
            )
        routed = pa.concat_tables(reversed(sent))  # a shuffle delivers blocks in any order
        outputs = []
        for number in range(TASKS):
            mine = routed.filter(pa.array(routed[TASK].to_numpy() == number))
            version = PackedVersion.of(self.version)
            keyed = KeyedTask(stage, self.batch_id, AT_US, version, ROUTE, told)
            outputs += list(keyed.without_anchor(iter(mine.to_batches())))
        own = [report for report in told.reports if report.operator == "op"]
        changes = [report.change for report in own if report.change is not None]
        self.version = self.version.after(changes, newest_of(own), self.bound.delay_us, at_us=AT_US)
        self.batch_id += 1
        return pa.Table.from_batches(outputs, self.bound.output), told.reports


def rows(seed: int) -> pa.Table:
    """Half of the rows have one key; some are late from the second batch on, some far ahead."""
    chance = np.random.default_rng(seed)
    key = np.where(chance.random(COUNT) < 0.5, 0, chance.integers(0, 50, COUNT))
    at_us = AT_US + (seed * 12 + chance.integers(-40, 20, COUNT)) * 1_000_000
    if seed == 2:
        at_us[7] = AT_US + AHEAD_US + 60_000_000
    return pa.table(
        {
            "k": [f"key-{number}" for number in key],
            "v": chance.integers(0, 100, COUNT),
            "kind": chance.choice(["gold", "tin"], COUNT),
            "at": pa.array(at_us, pa.timestamp("us", "UTC")),
        },
        schema=ROW,
    )


@pytest.mark.parametrize("held", [1 << 20, 700])
def test_what_is_told_and_emitted_does_not_depend_on_combining(tmp_path, monkeypatch, held):
    """However many rows a task holds until it combines them."""
    monkeypatch.setattr(combine_task, "MOST_ROWS", held)
    function = tg.window(
        tg.aggregate(n=tg.count(), total=tg.sum("v")), every="10 seconds", event_time="at"
    )
    ways = {combine: World(tmp_path / str(combine), function) for combine in (False, True)}
    late = 0
    for seed in range(4):
        table = rows(seed)
        parts = [table.slice(0, 1_000), table.slice(1_000)]
        (plain, told), (ours, ours_told) = (
            ways[combine].run(parts, combine) for combine in (False, True)
        )
        assert ours.equals(plain)
        assert ways[True].version.event_times == ways[False].version.event_times
        own = [report for report in told if report.operator == "op"]
        behind = [report for report in ours_told if report.operator == "op"]
        front = [report for report in ours_told if report.operator == combining("op")]
        for one, other in zip(own, behind, strict=True):
            assert (one.rows_in, one.rows_out) == (other.rows_in, other.rows_out)
            assert (one.late_rows, one.ahead_rows) == (other.late_rows, other.ahead_rows)
        late += sum(report.late_rows for report in own)
        assert sum(report.rows_in for report in front) == COUNT
        left = sum(report.rows_out for report in front)
        assert left == sum(report.combined_rows for report in behind)
        assert left < 0.7 * COUNT or seed == 2, "nothing is combined beside a row far ahead"
        for name in ("stamps", "class_rows"):
            noted = [getattr(report, name) for report in ours_told if getattr(report, name)]
            expected = [getattr(report, name) for report in told if getattr(report, name)]
            assert summed(noted) == summed(expected), name
    assert late > 0


def summed(noted: list) -> list[int]:
    """Stamps by their slots, or rows by their class, over all tasks."""
    if isinstance(noted[0], tuple):
        return np.sum(noted, axis=0).tolist()
    found: dict[int, int] = {}
    for one in noted:
        for slot, count in zip(one.slots.tolist(), one.counts.tolist(), strict=True):
            found[slot] = found.get(slot, 0) + count
    return sorted(found.items())


def test_a_part_without_rows_sends_none():
    bound = tg.count().bind(ROW, ("k",))
    needs = pa.schema([ROW.field("k")])
    told = Told()
    task = CombineTask(packed(CombineStage("op", bound.combiner, needs)), 0, AT_US, told)
    assert list(task(iter([]))) == []
    (report,) = told.reports
    assert (report.operator, report.rows_in, report.rows_out) == (combining("op"), 0, 0)
    (block,) = task(iter(rows(0).slice(0, 1).to_batches()))
    assert block.column(ROWS).to_pylist() == [1]
