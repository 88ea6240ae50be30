"""Model and statistics learn the sequential tree, however the stream and the loop are cut."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.apps.vht.by_hand import ByHand
from tidegate.apps.vht.instances import Instances
from tidegate.apps.vht.options import VhtOptions
from tidegate.apps.vht.verdict import Learned, judged

QUICK = {"attributes": 4, "depth": 2, "noise": 0.05}


@settings(deadline=None, max_examples=20)
@given(st.data())
def test_cuts_and_delays_do_not_matter(data) -> None:
    options = VhtOptions(
        **QUICK,
        grace=data.draw(st.sampled_from([20, 50, 100])),
        delay=data.draw(st.sampled_from([0, 1, 30, 200])),
    )
    run = ByHand(Instances(options, data.draw(st.integers(1, 5))))
    for _ in range(data.draw(st.integers(1, 12))):
        run.learn(data.draw(st.integers(0, 400)))
        if data.draw(st.booleans()):
            run.count()
    run.settle()
    verdict = judged(run.learned(), run.instances, run.first)
    assert verdict.correct, verdict.said


@pytest.mark.parametrize("delay", [0, 100, 1000])
def test_a_tree_that_grows(delay: int) -> None:
    run = ByHand(Instances(VhtOptions(**QUICK, grace=100, delay=delay), 3))
    while run.first < 10_000:
        run.learn(500)
        run.count()
    run.settle()
    verdict = judged(run.learned(), run.instances, run.first)
    assert verdict.correct, verdict.said
    assert verdict.figures["nodes"] >= 5
    assert verdict.figures["accuracy"] > 0.7
    assert run.held == 0
    assert (run.most_held == 0) == (delay == 1000)


def test_the_statistics_of_split_leaves_are_forgotten() -> None:
    run = ByHand(Instances(VhtOptions(**QUICK, grace=100, delay=0), 3))
    for _ in range(20):
        run.learn(500)
        run.count()
    run.settle()
    leaves = int((run.model.state["attribute"].to_numpy() == -1).sum())
    assert run.statistics.state.num_rows <= leaves * 4


@pytest.fixture(scope="module")
def learned() -> ByHand:
    run = ByHand(Instances(VhtOptions(**QUICK, grace=100, delay=50), 3))
    for _ in range(8):
        run.learn(500)
        run.count()
    run.settle()
    return run


def changed(table: pa.Table, column: str, row: int) -> pa.Table:
    """The table with one number raised by one."""
    values = table[column].to_numpy().copy()
    values[row] += 1
    return table.set_column(table.schema.get_field_index(column), column, pa.array(values))


def test_the_verdict_notices(learned: ByHand) -> None:
    right, instances = learned.learned(), learned.instances
    rows, model, counts = right.predictions, right.model, right.statistics
    wrong = [
        Learned(None, model, counts),
        Learned(rows.slice(1), model, counts),
        Learned(pa.concat_tables([rows, rows.slice(0, 1)]), model, counts),
        Learned(changed(rows, "predicted", 7), model, counts),
        Learned(rows, changed(model, "taken", 0), counts),
        Learned(rows, changed(model, "cut", 0), counts),
        Learned(rows, model, counts.slice(1)),
        Learned(rows, changed(model, "seen_1", model.num_rows - 1), counts),
    ]
    assert judged(right, instances, learned.first).correct
    assert [judged(one, instances, learned.first).correct for one in wrong] == [False] * 8


def test_accuracy_is_told_beside_the_peers_and_is_no_part_of_the_verdict(learned: ByHand) -> None:
    labels = learned.instances.labels(np.arange(learned.first))
    verdict = judged(learned.learned(), learned.instances, learned.first, labels.tolist())
    assert verdict.figures["river_accuracy"] == 1.0
    assert verdict.correct, "it is the tree of the sequential reference"
    assert verdict.said.endswith("beside river's 1.000")
    rows = learned.learned()
    wrong = judged(
        Learned(None, rows.model, rows.statistics), learned.instances, learned.first, [0]
    )
    assert not wrong.correct and "0 predictions of" in wrong.said
