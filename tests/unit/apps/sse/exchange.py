"""Runs the exchange without Spark: its real operators on the real state, batch by batch."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from tests.helpers.keyed_operator import Operator
from tidegate.apps.event_progress import EventProgress
from tidegate.apps.sse.application import analytics
from tidegate.apps.sse.boards import partials
from tidegate.apps.sse.market import Market
from tidegate.apps.sse.orders import order_map
from tidegate.apps.sse.transactor import Transactor


@dataclass(frozen=True)
class Ran:
    """What a run leaves behind."""

    trades: pa.Table
    answers: pa.Table
    states: dict[str, pa.Table]
    progress: dict[str, EventProgress]


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
    progress = {name: operator.progress for name, operator in operators.items()}
    return Ran(pa.concat_tables(trades), pa.concat_tables(answers), states, progress)
