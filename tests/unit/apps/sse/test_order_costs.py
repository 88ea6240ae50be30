"""What an order takes: every operator is timed, and computes what it computes in a pipeline."""

import itertools
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.helpers.keyed_operator import Operator
from tidegate.apps.sse.application import OPERATORS, analytics
from tidegate.apps.sse.market import Market
from tidegate.apps.sse.order_costs import OneTask, order_costs
from tidegate.apps.sse.orders import order_map
from tidegate.apps.sse.transactor import Transactor
from tidegate.workload.parse import parse_profile

MARKET = Market(parse_profile("constant:400"), 1, 30)


def orders(first: int, end: int) -> pa.Table:
    made = order_map(MARKET)(pa.table({"seq": np.arange(first, end, dtype=np.int64)}))
    assert isinstance(made, pa.Table)
    return made


def test_every_operator_is_timed_and_divided_by_the_orders() -> None:
    ticks = itertools.count()
    found = order_costs(orders=200, batches=2, stocks=20, clock=lambda: float(next(ticks)))
    assert tuple(found) == OPERATORS
    assert list(found.values()) == pytest.approx([1.0 / 200.0] * len(OPERATORS))


def test_real_times_are_above_nothing_and_below_what_the_paper_allows() -> None:
    found = order_costs(orders=2_000, batches=2, stocks=200)
    assert all(cost_s >= 0.0 for cost_s in found.values())
    assert 0.0 < sum(found.values()) < 1.17e-3


@pytest.mark.parametrize("name", ["vwap", "average", "alarm"])
def test_the_task_that_is_timed_has_the_state_of_the_batches_before(
    tmp_path: Path, name: str
) -> None:
    """Against the runtime for tests, whose two tasks swap their shards at every batch."""
    (function,) = (of for one, of, _ in analytics(MARKET) if one == name)
    task = OneTask(tmp_path / "a", "transactor", Transactor(), "stock", "seq")
    behind = OneTask(tmp_path / "a", name, function, "stock", "trade")
    other = Operator(tmp_path / "b", Transactor(), "stock", "seq")
    other_behind = Operator(tmp_path / "c", function, "stock", "trade")
    for first in range(0, 1200, 300):
        rows = orders(first, first + 300)
        trades, same = task.run(rows), other.run(rows)
        assert trades.num_rows > 0
        assert trades.sort_by("trade").equals(same.sort_by("trade"))
        answers, expected = behind.run(trades), other_behind.run(same)
        by = [(column, "ascending") for column in answers.column_names]
        assert answers.sort_by(by).equals(expected.sort_by(by))
