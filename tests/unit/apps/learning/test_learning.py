"""IncrementalLearning without Spark: the same models however the stream and the loop are cut."""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.keyed_operator import Operator
from tidegate.apps.learning.examples import (
    WRONG,
    example_map,
    features,
    hidden_weights,
    labels,
    value_matrix,
)
from tidegate.apps.learning.gradient import PartialGradient, examples_only
from tidegate.apps.learning.model import LearntModel, broadcast
from tidegate.apps.learning.options import PARTS, LearningOptions, learning_options
from tidegate.apps.learning.reference import compare, expected_models
from tidegate.errors import AskedWrongly

SMALL = LearningOptions(features=8, round=128, lag=1)
SEED = 2


class ByHand:
    """The operators with their state, and a loop whose rows wait until they are taken."""

    def __init__(self, root: Path, options: LearningOptions) -> None:
        self.gradient = Operator(root / "gradient", PartialGradient(options), "part")
        self.model = Operator(root / "model", LearntModel(options), "model")
        self.make = example_map(options, SEED)
        self.loop = self.make(numbered(0, 0))
        self.told: list[pa.Table] = []

    def batch(self, first: int, end: int, most: int | None = None) -> None:
        """A micro-batch of these examples, and of so many rows of the loop, by default all."""
        most = self.loop.num_rows if most is None else most
        taken, self.loop = self.loop.slice(0, most), self.loop.slice(most)
        rows = pa.concat_tables([self.make(numbered(first, end)), taken])
        models = self.model.run(self.gradient.run(rows))
        self.told.append(models)
        self.loop = pa.concat_tables([self.loop, broadcast(models).rows.cast(self.loop.schema)])

    def settle(self) -> None:
        """Process the loop until nothing new comes around."""
        while self.loop.num_rows:
            self.batch(0, 0)

    def models(self) -> pa.Table:
        return pa.concat_tables(self.told)


def numbered(first: int, end: int) -> pa.Table:
    return pa.table({"seq": np.arange(first, end, dtype=np.int64)})


@given(st.integers(0, 2**40), st.integers(0, 2**31))
def test_an_example_does_not_depend_on_its_neighbours(first: int, seed: int) -> None:
    make = example_map(SMALL, seed)
    together = make(numbered(first, first + 3)).to_pylist()
    assert together == [make(numbered(first + n, first + n + 1)).to_pylist()[0] for n in range(3)]


def test_features_are_exact_and_a_few_labels_are_wrong() -> None:
    numbers = np.arange(20_000)
    found = features(numbers, LearningOptions(), SEED)
    assert found.shape == (20_000, 32)
    assert (found * 64 == np.rint(found * 64)).all()
    assert (found.min(), found.max()) == (-2.0, 127 / 64)
    side = found @ hidden_weights(32, SEED) > 0
    given_labels = labels(numbers, found, SEED)
    assert (side != given_labels).mean() == pytest.approx(WRONG, abs=0.01)
    assert given_labels.mean() == pytest.approx(0.5, abs=0.05)


@settings(deadline=None, max_examples=15)
@given(st.data())
def test_cuts_and_the_way_around_the_loop_do_not_matter(data) -> None:
    lag = data.draw(st.integers(0, 3), label="lag")
    options = LearningOptions(features=8, round=PARTS, lag=lag)
    arrived = data.draw(st.integers(0, 6 * PARTS), label="arrived")
    with tempfile.TemporaryDirectory() as directory:
        run = ByHand(Path(directory), options)
        first = 0
        while first < arrived:
            end = min(arrived, first + data.draw(st.integers(1, 3 * PARTS), label="rows"))
            run.batch(first, end, data.draw(st.integers(0, run.loop.num_rows), label="looped"))
            first = end
        run.batch(arrived, arrived)
        run.settle()
        found = compare(run.models(), expected_models(arrived, options, SEED), arrived, options)
        assert found.correct, found.said
        assert found.figures["models"] == arrived // PARTS


def test_only_what_is_still_needed_is_remembered(tmp_path: Path) -> None:
    run = ByHand(tmp_path, SMALL)
    run.batch(0, 300)
    assert run.models().num_rows == 2  # rounds 0 and 1 learn from the model before all learning
    run.settle()
    items = run.gradient.state()["item"].to_numpy()
    assert sorted(items[items >= 0]) == list(range(256, 300))
    assert np.unique(items[items < 0]).tolist() == [-3, -2]  # versions 2 and 1
    assert run.model.state().num_rows == 1
    run.batch(300, 570)
    run.settle()
    items = run.gradient.state()["item"].to_numpy()
    assert sorted(items[items >= 0]) == list(range(512, 570))
    assert np.unique(items[items < 0]).tolist() == [-5, -4]
    final = expected_models(570, SMALL, SEED)[-1]
    (weights,) = value_matrix(run.model.state()["values"], 8).tolist()
    assert weights == final.weights


def test_it_learns() -> None:
    models = expected_models(60 * 512, LearningOptions(), SEED)
    known = [model.right / 512 for model in models]
    assert np.mean(known[:9]) < 0.65  # the first rounds know nothing
    assert np.mean(known[30:]) > 0.9  # one label in twenty is wrong


def test_wrong_models_are_found(tmp_path: Path) -> None:
    run = ByHand(tmp_path, SMALL)
    run.batch(0, 400)
    run.settle()
    told, expected = run.models(), expected_models(400, SMALL, SEED)
    assert compare(told, expected, 400, SMALL).correct
    assert "1 are missing or wrong" in compare(told.slice(1), expected, 400, SMALL).said
    twice = pa.concat_tables([told, told.slice(0, 1)])
    assert "1 were told twice" in compare(twice, expected, 400, SMALL).said
    off = told["right"].to_numpy() + 1
    wrong = compare(told.set_column(1, "right", pa.array(off)), expected, 400, SMALL)
    assert "3 are missing or wrong" in wrong.said
    assert not compare(None, expected, 400, SMALL).correct


def test_models_on_their_way_cost_no_time() -> None:
    rows = pa.table({"item": [5, -1, 0, -7]})
    assert examples_only(rows).tolist() == [1.0, 0.0, 1.0, 0.0]


def test_no_traces_go_around_the_loop(tmp_path: Path) -> None:
    """A model never has the key of the gradients that it was made from."""
    run = ByHand(tmp_path, SMALL)
    run.batch(0, 256)
    assert run.models()["model"].to_pylist() == [1, 2]


def test_options_are_read_and_checked() -> None:
    assert learning_options({"round": "64", "lag": "0"}) == LearningOptions(round=64, lag=0)
    for name, text, message in [
        ("round", "100", "round=100: give a multiple of 64"),
        ("features", "12", "features=12: give a multiple of 8"),
        ("lag", "65", "lag=65: give 0 to 64"),
    ]:
        with pytest.raises(AskedWrongly, match=message):
            learning_options({name: text})
