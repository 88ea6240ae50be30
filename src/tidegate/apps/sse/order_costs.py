"""What the exchange's operators really take for an order, on one core of this machine.

Nothing is stretched. Each operator runs here as one of its tasks runs on Spark: it is given the
rows of a batch as columns, reads the state of their keys from files, calls its function and writes
what has changed. What Spark needs to plan a batch and to send its rows is left out.
"""

import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from tidegate.apps.sse.application import BOARDS, SHARDS, TRANSACTOR, analytics, compile_loops
from tidegate.apps.sse.boards import partials
from tidegate.apps.sse.market import STOCKS, Market
from tidegate.apps.sse.orders import order_map
from tidegate.apps.sse.transactor import Transactor
from tidegate.pipelines.functions.times import microseconds_of
from tidegate.pipelines.keyed import KeyedFunction
from tidegate.spark.state.event_times import ALL
from tidegate.spark.state.files import Durable
from tidegate.spark.state.layout import slot_of
from tidegate.spark.state.node_cache import NodeCache
from tidegate.spark.state.task import Keeper, TaskState
from tidegate.spark.state.version import Version
from tidegate.workload.parse import parse_profile

BATCH_ORDERS = 20_000
"""Orders of a batch. They come within a second of the market."""
BATCHES, WARM = 8, 3
"""Batches that are timed, after some that are not: books fill, and loops are compiled."""
_MIX = np.uint64(0x9E3779B97F4A7C15)


def order_costs(
    *,
    orders: int = BATCH_ORDERS,
    batches: int = BATCHES,
    stocks: int = STOCKS,
    seed: int = 1,
    clock: Callable[[], float] = time.process_time,
) -> Mapping[str, float]:
    """Seconds per order of each operator: those of the median batch.

    An order may cause no transaction, or several. So an analytic's time for the transactions of a
    batch is divided by the orders of the batch. By default it is CPU time, whatever else the
    machine does.
    """
    compile_loops()
    market = Market(parse_profile(f"constant:{orders}"), seed, stocks)
    order = order_map(market)
    spent: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="tidegate-orders-") as directory:
        place = Path(directory)
        first = OneTask(place, TRANSACTOR, Transactor(), "stock", "seq")
        behind = [
            OneTask(place, name, function, key, "trade")
            for name, function, key in analytics(market)
        ]
        for batch in range(WARM + batches):
            numbers = np.arange(batch * orders, (batch + 1) * orders, dtype=np.int64)
            made = order(pa.table({"seq": numbers}))
            assert isinstance(made, pa.Table)
            begun_s = clock()
            trades = first.run(made)
            spent.setdefault(TRANSACTOR, []).append(clock() - begun_s)
            for one in behind:
                begun_s = clock()
                rows = trades
                if one.name in BOARDS:
                    told = partials(trades)
                    rows = told if isinstance(told, pa.Table) else told.rows
                one.run(rows)
                spent.setdefault(one.name, []).append(clock() - begun_s)
    return {name: float(np.median(each[WARM:])) / orders for name, each in spent.items()}


class OneTask:
    """A keyed operator whose only task has all shards, with its state in files."""

    def __init__(
        self, place: Path, name: str, function: KeyedFunction, key: str, order_by: str
    ) -> None:
        self.name = name
        self._function, self._key, self._order_by = function, key, order_by
        self._durable = Durable(str(place / "state" / name))
        self._durable.make()
        self._node = str(place / "node" / name)
        self._version = Version.empty(SHARDS)
        self._keeper: Keeper | None = None
        self._batch_id = -1

    def run(self, rows: pa.Table) -> pa.Table:
        """Process a batch; returns the rows for the next operator."""
        keeper = self._kept(rows.schema)
        self._batch_id += 1
        rows = rows.sort_by(self._order_by)
        keys = np.ascontiguousarray(rows[self._key].to_numpy())
        hashes = (keys.astype(np.uint64) * _MIX).view(np.int64)
        state = TaskState(keeper, self._version, np.arange(SHARDS), self._batch_id, 0, task=0)
        update = keeper.bound.update(state.batch(rows, slot_of(hashes, SHARDS)))
        change = state.change(update)
        keeper.cache.forget(self._version, self._batch_id)
        newest_us = {}
        if keeper.bound.event_time is not None and rows.num_rows:
            newest_us[ALL] = int(microseconds_of(rows[keeper.bound.event_time])[0].max())
        changes = [] if change is None else [change]
        self._version = self._version.after(changes, newest_us, keeper.bound.delay_us, at_us=0)
        return keeper.bound.output.empty_table() if update.output is None else update.output

    def _kept(self, schema: pa.Schema) -> Keeper:
        """Bound to the columns of the first rows."""
        if self._keeper is None:
            cache = NodeCache(self._node, self._durable, SHARDS)
            cache.make()
            self._keeper = Keeper(
                operator=self.name,
                key=pa.schema([schema.field(self._key)]),
                bound=self._function.bind(schema, (self._key,)),
                cache=cache,
            )
        return self._keeper
