"""A small keyed runtime for tests: one operator, its tasks in sequence, one commit per batch."""

import hashlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.pipelines.keyed import BoundKeyed
from tidegate.spark.state.event_times import ALL
from tidegate.spark.state.files import Durable
from tidegate.spark.state.layout import file_schema, shard_of, slot_of
from tidegate.spark.state.manifest import KEPT, Manifests
from tidegate.spark.state.node_cache import NodeCache
from tidegate.spark.state.read import read_version
from tidegate.spark.state.task import Keeper, TaskState

SHARDS = 8


def hashes_of(keys: pa.Table, bits: int) -> np.ndarray:
    """Hash keys to `bits` bits. With few bits, many keys share a slot on purpose."""
    names = keys.column_names
    raw = [
        int.from_bytes(hashlib.blake2b(repr(key).encode(), digest_size=8).digest()) % (1 << bits)
        for key in zip(*(keys[name].to_pylist() for name in names), strict=True)
    ]
    return (np.array(raw, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)).view(np.int64)


class Store:
    """The state of one operator, and the batches that change it."""

    def __init__(
        self,
        root: Path,
        bound: BoundKeyed,
        key: pa.Schema,
        ttl_us: int | None = None,
        bits: int = 62,
    ):
        self.durable = Durable(str(root / "state" / "op"))
        self.durable.make()
        self.manifests = Manifests(Durable(str(root / "manifests")), Durable(str(root / "state")))
        self.manifests.directory.make()
        self.bound, self.key, self.ttl_us, self.bits, self.root = bound, key, ttl_us, bits, root
        self.reads = {"own": 0, "durable": 0}
        self.durable_bytes = 0

    def keeper(self, node: int) -> Keeper:
        cache = NodeCache(str(self.root / f"node-{node}"), self.durable, SHARDS)
        cache.make()
        return Keeper(
            operator="op", key=self.key, bound=self.bound, cache=cache, ttl_us=self.ttl_us
        )

    def run(
        self,
        batch_id: int,
        rows: pa.Table,
        route: list[int],
        nodes: list[int],
        at_us: int = 0,
        tries: int = 1,
    ) -> dict:
        hashes = hashes_of(rows.select(self.key.names), self.bits)
        task_of_row = np.array(route)[shard_of(hashes, SHARDS)]
        for _ in range(tries):
            version = self.manifests.read(batch_id - 1, {"op": SHARDS})["op"]
            changes, outputs, late, late_rows = [], [], [rows.slice(0, 0)], 0
            for task, node in enumerate(nodes):
                mine = task_of_row == task
                part = rows.filter(pa.array(mine))
                state = TaskState(
                    self.keeper(node),
                    version,
                    np.flatnonzero(np.array(route) == task),
                    batch_id,
                    at_us,
                    task,
                )
                update = self.bound.update(state.batch(part, slot_of(hashes[mine], SHARDS)))
                outputs.append(update.output)
                late_rows += update.late_count
                if update.late is not None:
                    late.append(part.filter(pa.array(update.late)))
                change = state.change(update)
                if change is not None:
                    changes.append(change)
                state.keeper.cache.forget(version, batch_id)
                self.reads["own"] += len(state.reads.own)
                self.reads["durable"] += len(state.reads.durable)
                self.durable_bytes += state.reads.durable_bytes
        after = version.after(changes, self._newest_us(rows), self.bound.delay_us, at_us=at_us)
        self.manifests.commit(batch_id, {"op": after})
        self.clean(batch_id)
        return {
            "output": pa.concat_tables(outputs),
            "late_rows": late_rows,
            "late": pa.concat_tables(late),
        }

    def clean(self, batch_id: int) -> None:
        kept = range(max(0, batch_id - KEPT + 1), batch_id + 1)
        self.manifests.clean(batch_id, [self.manifests.read(batch, {}) for batch in kept])

    def _newest_us(self, rows: pa.Table) -> dict[str, int]:
        if self.bound.event_time is None:
            return {}
        column = rows[self.bound.event_time]
        newest = pc.max(column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())).as_py()
        return {} if newest is None else {ALL: newest}

    def state(self, batch_id: int, at_us: int = 0) -> pa.Table:
        version = self.manifests.read(batch_id, {"op": SHARDS})["op"]
        schema = file_schema(self.key, self.bound)
        return read_version(self.durable, version, self.key.names, self.bound.within, at_us, schema)
