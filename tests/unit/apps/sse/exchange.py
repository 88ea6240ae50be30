"""Runs the exchange without Spark: its real operators on the real state, batch by batch."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from tests.helpers.keyed_store import SHARDS, Store
from tidegate.apps.sse.application import analytics
from tidegate.apps.sse.boards import partials
from tidegate.apps.sse.market import Market
from tidegate.apps.sse.orders import order_map
from tidegate.apps.sse.transactor import Transactor
from tidegate.pipelines.keyed import KeyedFunction


@dataclass(frozen=True)
class Ran:
    """What a run leaves behind."""

    trades: pa.Table
    answers: pa.Table
    states: dict[str, pa.Table]


class Operator:
    """One operator with two tasks, whose shards move at every batch."""

    def __init__(self, root: Path, function: KeyedFunction, key: str, order_by: str) -> None:
        self.root, self.function, self.key, self.order_by = root, function, key, order_by
        self.store: Store | None = None
        self.done = -1

    def run(self, rows: pa.Table) -> pa.Table:
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
        ran = self.store.run(self.done, rows.sort_by(self.order_by), route, [0, 1])
        assert ran["late_rows"] == 0
        return ran["output"]

    def state(self) -> pa.Table:
        assert self.store is not None
        return self.store.state(self.done)


def run_exchange(
    root: Path, market: Market, arrived: int, cuts: Sequence[int], only: Sequence[str] | None = None
) -> Ran:
    """Run all orders, in micro-batches that end at the cuts; `only` some analytics, or all."""
    numbers = pa.table({"seq": np.arange(arrived, dtype=np.int64)})
    orders = order_map(market)(numbers)
    operators = {"transactor": Operator(root / "transactor", Transactor(), "stock", "seq")}
    for name, function, key in analytics(market):
        if only is None or name in only:
            operators[name] = Operator(root / name, function, key, "trade")
    trades, answers = [], []
    for first, end in itertools.pairwise([0, *sorted(cuts), arrived]):
        made = operators["transactor"].run(orders.slice(first, end - first))
        trades.append(made)
        for name, operator in operators.items():
            if name != "transactor":
                rows = partials(made).rows if operator.key == "board" else made
                answers.append(operator.run(rows))
    states = {name: operator.state() for name, operator in operators.items()}
    return Ran(pa.concat_tables(trades), pa.concat_tables(answers), states)
