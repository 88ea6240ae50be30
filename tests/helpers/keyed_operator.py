"""One keyed operator without Spark: its real function on the real state, batch by batch."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from tests.helpers.keyed_store import SHARDS, Store
from tidegate.apps.event_progress import EventProgress
from tidegate.pipelines.functions.times import microseconds_of
from tidegate.pipelines.keyed import KeyedFunction


class Operator:
    """An operator with two tasks, whose shards move at every batch."""

    def __init__(
        self, root: Path, function: KeyedFunction, key: str, order_by: str | None = None
    ) -> None:
        self.root, self.function, self.key, self.order_by = root, function, key, order_by
        self.store: Store | None = None
        self.done = -1
        self.progress = EventProgress(None, None)

    def run(self, rows: pa.Table, tries: int = 1) -> pa.Table:
        if self.store is None:
            bound = self.function.bind(rows.schema, (self.key,))
            update = bound.update

            def told(batch):
                made = update(batch)
                return replace(made, output=made.output or bound.output.empty_table())

            key = pa.schema([rows.schema.field(self.key)])
            self.store = Store(self.root, replace(bound, update=told), key)
        self.done += 1
        route = [(shard + self.done) % 2 for shard in range(SHARDS)]
        ordered = rows if self.order_by is None else rows.sort_by(self.order_by)
        ran = self.store.run(self.done, ordered, route, [0, 1], tries=tries)
        event_time = self.store.bound.event_time
        newest_us = self.progress.newest_us
        if event_time is not None and rows.num_rows:
            last_us = int(microseconds_of(rows[event_time])[0].max())
            newest_us = last_us if newest_us is None else max(last_us, newest_us)
        self.progress = EventProgress(newest_us, self.progress.newest_us)
        assert ran["late_rows"] == 0
        return ran["output"]

    def state(self) -> pa.Table:
        assert self.store is not None
        return self.store.state(self.done)
