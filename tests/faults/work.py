"""What a cluster does in a batch, imitated: tasks in turn, some twice, some too late."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa

from tests.faults.rows import hashes
from tests.faults.turns import Killed
from tidegate.control.shards.route import even_route
from tidegate.pipelines.graph import Segment
from tidegate.spark.batch.channel import ChannelTask, Log
from tidegate.spark.batch.checkpoint import Checkpoint
from tidegate.spark.batch.keyed_task import KeyedStage, KeyedTask
from tidegate.spark.batch.plan import BatchPlan, OperatorPlan
from tidegate.spark.batch.report import ShedCounts, TaskReport, once
from tidegate.spark.batch.worker import HASH, ORDER, PARTED, TASK, packed
from tidegate.spark.state.layout import shard_of
from tidegate.spark.state.node_cache import NodeCache
from tidegate.spark.state.packed_version import PackedVersion
from tidegate.spark.state.task import Keeper
from tidegate.spark.state.version import Version


class Reported:
    """In place of Spark's accumulator."""

    def __init__(self) -> None:
        self.value: list[TaskReport] = []

    def add(self, reports: list[TaskReport]) -> None:
        self.value += reports


@dataclass
class ImitatedWork:
    """The `Work` of a transaction: it runs the real task code."""

    segment: Segment
    place: Checkpoint
    caches: Path
    chance: Random
    batch_id: int
    read: Callable[[BatchPlan], tuple[pa.Table, int, int]]
    """The rows that the plan keeps, how many were offered, and how many are kept."""
    sink: Callable[[pa.Table], None]
    too_late: Callable[[Callable[[], object]], None]
    """Takes a task that goes on after its driver was killed."""
    stages: dict[str, bytes]
    """The packed tasks of this world, by their node's cache and what is kept there."""
    _plan: BatchPlan = field(init=False)
    _before: Mapping[str, Version] = field(init=False)
    _output: pa.Table = field(init=False)
    _told: Reported = field(default_factory=Reported)

    def operators(self) -> dict[str, OperatorPlan]:
        """A route and parts by chance: a replay that planned afresh would have others."""
        tasks = self.chance.randint(1, 2)
        (node,) = self.segment.keyed
        route = tuple(self.chance.sample(even_route(node.shards, tasks), node.shards))
        parts = self.chance.choice((1, 1, 2, 3))
        return {node.name: OperatorPlan(tasks, route, parts)}

    def previewed(self, plan: BatchPlan) -> BatchPlan:
        """Nothing is counted: the route is by chance in any case."""
        return plan

    def compile(self, plan: BatchPlan, before: Mapping[str, Version]) -> None:
        """Nothing runs yet."""
        self._plan, self._before = plan, before

    def write_sinks(self, check: Callable[[], None], replayed: bool) -> None:
        """Run the tasks, and give the sink what they emit."""
        check()
        (node,) = self.segment.keyed
        rows, offered, kept = self.read(self._plan)
        number = hashes(rows.column("k").to_numpy())
        entry = self._plan.operators[node.name]
        task_of = np.array(entry.route)[shard_of(number, node.shards)]
        part_of = np.array(entry.part_of)[shard_of(number, node.shards)]
        rows = (
            rows.append_column(HASH, pa.array(number))
            .append_column(ORDER, pa.array(np.arange(rows.num_rows)))
            .append_column(TASK, pa.array(task_of.astype(np.int32)))
            .append_column(PARTED, pa.array(part_of.astype(np.int32)))
        )
        parts = []
        for task in range(entry.tasks):
            mine = rows.filter(pa.array(task_of == task))
            mine = mine.take(
                pa.array(self.chance.sample(range(mine.num_rows), mine.num_rows), pa.int64())
            )
            attempt = self._attempt(node.name, task, mine)
            if self.chance.random() < 0.1:
                attempt()  # its executor died after it had written; another attempt follows
            try:
                parts.append(attempt())
            except Killed:
                if self.chance.random() < 0.5:
                    self.too_late(attempt)
                raise
        self._output = pa.concat_tables(parts)
        if "source" in (read.name for read in self.segment.reads):
            self._count(offered, kept)
        self.sink(self._output)

    def _attempt(self, operator: str, task: int, rows: pa.Table) -> Callable[[], pa.Table]:
        """A task attempt on one of two nodes."""
        node = self.chance.randrange(2)
        entry = self._plan.operators[operator]
        call = KeyedTask(
            self._stage(operator, node),
            self.batch_id,
            self._plan.at_us,
            PackedVersion.of(self._before[operator]),
            np.array(entry.route, dtype=np.int32),
            self._told,
            None if entry.parts == 1 else np.array(entry.part_of, dtype=np.int32),
        )
        if entry.parts == 1:
            return lambda: call(pa.table({TASK: [task]}), rows)
        names = {TASK: task, PARTED: -1}
        naming = pa.table(
            {one.name: pa.array([names.get(one.name)], one.type) for one in rows.schema}
        )
        size = self.chance.randint(1, 50)
        blocks = pa.concat_tables([naming, rows]).sort_by(PARTED).to_batches(max_chunksize=size)
        output = next(one for one in self.segment.keyed if one.name == operator).bound.output
        return lambda: pa.Table.from_batches(list(call.in_parts(iter(blocks))), output)

    def _stage(self, operator: str, node: int) -> bytes:
        folder = str(self.caches / f"node-{node}" / operator)
        earlier = self.place.earlier.get(operator, ())
        known = f"{folder} {len(earlier)} {self.place.names.kept(operator)}"
        if known not in self.stages:
            keyed = next(one for one in self.segment.keyed if one.name == operator)
            keeper = Keeper(
                operator=operator,
                key=keyed.key_schema,
                bound=keyed.bound,
                cache=NodeCache(folder, self.place.state(operator), keyed.shards, earlier=earlier),
            )
            self.stages[known] = packed(KeyedStage(keeper, keyed.rows, None))
        return self.stages[known]

    def _count(self, offered: int, kept: int) -> None:
        counts = ShedCounts(classes=((offered, kept),))
        self._told.add(
            [
                TaskReport(
                    batch_id=self.batch_id,
                    operator="source",
                    task=0,
                    rows_in=offered,
                    rows_out=kept,
                    busy_s=0.0,
                    function_s=0.0,
                    executor="imitated",
                    started_s=0.0,
                    shed=counts,
                )
            ]
        )

    def write_channels(self) -> dict[str, list[tuple[str, int]]]:
        """Write the output into the channel, in two parts."""
        written: dict[str, list[tuple[str, int]]] = {}
        for write in self.segment.writes:
            log = Log(self.place.channel(write.channel.name))
            task = ChannelTask(write.channel.name, log.data, self.batch_id, self._told)
            half = self._output.num_rows // 2
            files = written.setdefault(write.channel.name, [])
            for part in (self._output.slice(0, half), self._output.slice(half)):
                for told in task(iter(part.to_batches())):
                    row = told.to_pylist()[0]
                    files.append((row["file"], row["rows"]))
        return written

    def reports(self, counting: Collection[str]) -> list[TaskReport]:
        """All tasks have run: what they reported, once each."""
        return once(self._told.value)

    def release(self) -> None:
        """Nothing is held."""
