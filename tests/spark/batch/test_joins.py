"""Operators with several inputs on real Spark: joins, tables that are looked up, own functions."""

from collections import Counter
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest

import tidegate as tg
from tests.helpers.crash import crash_after
from tests.helpers.feed import Collected, Feed
from tests.helpers.join_reference import JoinByHand
from tidegate.spark.batch.step import Step

pytestmark = pytest.mark.spark
START = datetime(2026, 1, 1, tzinfo=UTC)
ORDERS = "id long, timestamp timestamp, n long, item string"
PAYMENTS = "n long, paid timestamp, order long, how string"


def micros(seconds: int) -> int:
    return round(START.timestamp() * 1e6) + seconds * 1_000_000


def side(seed: int, begin_s: int, names: tuple[str, ...]) -> tuple[pa.Table, list[tuple]]:
    """Rows of one side, as Spark reads them and as the reference does."""
    chance = np.random.default_rng(seed)
    count = 60
    rows = [
        (int(key), micros(begin_s + int(second)), seed * count + number)
        for number, (key, second) in enumerate(
            zip(chance.integers(0, 25, count), chance.integers(0, 40, count), strict=True)
        )
    ]
    columns = {
        names[0]: [key for key, _, _ in rows],
        names[1]: pa.array([at for _, at, _ in rows], pa.timestamp("us", "UTC")),
        "n": [number for _, _, number in rows],
        names[2]: [f"{names[2]} {number}" for _, _, number in rows],
    }
    return pa.table(columns), rows


def test_a_full_join_of_two_sources_survives_rescales_and_a_crash(spark, tmp_path):
    orders, payments = Feed(tmp_path / "orders", ORDERS), Feed(tmp_path / "payments", PAYMENTS)
    sink = Collected()
    truth = JoinByHand("full", 5_000_000, 15_000_000, 2_000_000, apart=True)
    expected: Counter = Counter()
    for batch in range(5):  # all files first, so that each batch has one of either source
        left, lefts = side(2 * batch, 30 * batch, ("id", "timestamp", "item"))
        right, rights = side(2 * batch + 1, 30 * batch + 5, ("order", "paid", "how"))
        orders.add(left)
        payments.add(right.select(["n", "paid", "order", "how"]))
        expected.update(truth.run(lefts, rights))

    def flow():
        stream = tg.pipeline("shop", orders.stream(spark), arrival="timestamp")
        other = stream.source(payments.stream(spark), name="payments", arrival="paid")
        both = stream.join(
            other,
            key="id",
            other_key="order",
            how="full",
            within=("5 seconds", "15 seconds"),
            other_event_time="paid",
            delay="2 seconds",
            name="matched",
            shards=16,
        )
        assert both.schema.names == ["id", "timestamp", "n", "item", "n_right", "paid", "how"]
        return both.to(sink).start(str(tmp_path / "ck"), tasks=2)

    run = flow()
    try:
        crash_after(run, Step.RAN, at_batch=2)
        run.rescale("matched", 5)
        with pytest.raises(Exception, match="of batch 2"):
            run.processAllAvailable()
        noted = sum(report.stamps.rows for report in run.results()[0].of("matched"))
        assert noted == 120, "arrivals of both sources"
    finally:
        run.stop()
    run = flow()
    try:
        run.rescale("matched", 3)
        run.processAllAvailable()
        assert [result.replayed for result in run.results()] == [True, False, False]
        assert len(run.results()[-1].of("matched")) == 3
    finally:
        run.stop()
    found = Counter((row["id"], row["n"], row["n_right"]) for row in sink.rows())
    assert found == expected
    assert truth.late_rows > 0
    assert any(left is None for _, left, _ in found) and any(right is None for *_, right in found)
    for row in sink.rows():
        assert row["item"] == (None if row["n"] is None else f"item {row['n']}")
        assert row["how"] == (None if row["n_right"] is None else f"how {row['n_right']}")


def test_tables_and_own_functions_of_several_inputs(spark, tmp_path):
    orders, prices = (
        Feed(tmp_path / "orders", "item string, n long"),
        Feed(tmp_path / "prices", "item string, price double"),
    )
    answers, balances = Collected(), Collected()
    shops = spark.createDataFrame([(0, "Kiel"), (1, "Bonn")], "shop long, city string")

    def with_shop(rows: pa.Table) -> pa.Table:
        return rows.append_column("shop", pa.array(rows["n"].to_numpy() % 3))

    def balance(ordered: pa.Table, priced: pa.Table, state: pa.Table) -> tg.Update:
        items = pa.concat_tables([ordered.select(["item"]), priced.select(["item"])])["item"]
        signs = np.repeat([1, -1], [ordered.num_rows, priced.num_rows])
        now = pa.table({"item": items, "now": signs}).group_by("item").aggregate([("now", "sum")])
        both = now.join(state, "item", join_type="left outer")
        left = pa.compute.add(both["now_sum"], pa.compute.fill_null(both["balance"], 0))
        table = pa.table({"item": both["item"], "balance": left})
        return tg.Update(output=table, upserts=table)

    stream = tg.pipeline("shop", orders.stream(spark))
    changes = stream.source(prices.stream(spark), name="prices")
    (
        stream.map(with_shop, "item string, n long, shop long")
        .enrich(shops, key="shop")
        .enrich(changes, key="item", how="inner", name="priced", shards=8)
        .to(answers)
    )
    flow = stream.keyed(
        "balance",
        balance,
        key="item",
        others=changes,
        state="balance long",
        output="item string, balance long",
        shards=8,
    ).to(balances)
    orders.add(pa.table({"item": ["a", "b"], "n": [0, 1]}))
    prices.add(pa.table({"item": ["a"], "price": [1.5]}))
    orders.add(pa.table({"item": ["a", "b"], "n": [2, 3]}))
    prices.add(pa.table({"item": ["b", "b", "a"], "price": [2.5, 3.5, 4.5]}))
    run = flow.start(str(tmp_path / "ck"), tasks=2)
    try:
        run.rescale("priced", 3)
        run.processAllAvailable()
        assert len(run.results()) == 2
    finally:
        run.stop()
    found = sorted(tuple(row.values()) for row in answers.rows())
    assert found == [("a", 0, 0, "Kiel", 1.5), ("a", 2, 2, None, 4.5), ("b", 3, 0, "Kiel", 3.5)]
    last = {row["item"]: row["balance"] for row in balances.rows()}
    assert last == {"a": 0, "b": 0}
