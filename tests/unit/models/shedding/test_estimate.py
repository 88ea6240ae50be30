"""Estimates from what was kept: unbiased, and as wrong as they say."""

import numpy as np
import pyarrow as pa
import pytest

import tidegate as tg
from tidegate.errors import AskedWrongly

WINDOWS = 600
ROWS = 400


def windows(keep: float, seed: int) -> tuple[list, list, list, list]:
    """Sums and means of windows of skewed values, with the truth."""
    random = np.random.default_rng(seed)
    sums, totals, means, averages = [], [], [], []
    for _ in range(WINDOWS):
        values = random.gamma(2.0, 10.0, ROWS)
        kept = values[random.random(ROWS) < keep]
        weights = np.full(len(kept), 1.0 / keep)
        sums.append(tg.estimated_sum(kept, weights))
        totals.append(float(values.sum()))
        means.append(tg.estimated_mean(kept, weights))
        averages.append(float(values.mean()))
    return sums, totals, means, averages


@pytest.mark.parametrize("keep", [0.5, 0.2])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_the_truth_is_within_the_stated_error_as_often_as_stated(
    keep: float, confidence: float
) -> None:
    sums, totals, means, averages = windows(keep, 3)
    spread = 3.0 * np.sqrt(confidence * (1 - confidence) / WINDOWS)
    for found, truths in ((sums, totals), (means, averages)):
        inside = np.mean(
            [
                abs(one.value - truth) <= one.within(confidence)
                for one, truth in zip(found, truths, strict=True)
            ]
        )
        assert inside == pytest.approx(confidence, abs=spread + 0.01)


def test_sums_are_unbiased() -> None:
    sums, totals, _, _ = windows(0.5, 5)
    error = np.mean([one.value / truth for one, truth in zip(sums, totals, strict=True)]) - 1.0
    stated = np.mean([one.standard_error / one.value for one in sums]) / np.sqrt(WINDOWS)
    assert abs(error) < 4.0 * stated


def test_classes_with_their_own_share_are_weighed_each_by_its_own() -> None:
    random = np.random.default_rng(1)
    keep = np.where(np.arange(20_000) % 4 == 0, 1.0, 0.25)
    values = np.where(keep == 1.0, 100.0, 10.0)
    kept = random.random(len(keep)) < keep
    weights = 1.0 / keep[kept]
    total = tg.estimated_sum(values[kept], weights)
    assert abs(total.value - values.sum()) <= total.within(0.999)
    offered = tg.estimated_count(weights)
    assert abs(offered.value - 20_000) <= offered.within(0.999)
    assert np.mean(values[kept]) > 1.5 * tg.estimated_mean(values[kept], weights).value


def test_nothing_shed_nothing_uncertain() -> None:
    found = tg.estimated_sum([1.0, 2.0, 3.0], [1.0, 1.0, 1.0])
    assert (found.value, found.standard_error, found.within()) == (6.0, 0.0, 0.0)
    assert tg.estimated_count([]).value == 0.0


def test_one_kept_row_cannot_state_an_error() -> None:
    assert tg.estimated_sum([5.0], [2.0]).within() == float("inf")


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda: tg.estimated_count([0.5]), "weights are 1 / keep"),
        (lambda: tg.estimated_count([float("nan")]), "weights are 1 / keep"),
        (lambda: tg.estimated_sum([1.0], [1.0, 1.0]), "one weight per value"),
        (lambda: tg.estimated_mean([], []), "there is no mean"),
        (lambda: tg.estimated_sum([1.0], [2.0]).within(1.0), "give for example 0.95"),
    ],
)
def test_nonsense_is_refused(ask: object, said: str) -> None:
    with pytest.raises(AskedWrongly, match=said):
        ask()  # type: ignore[operator]


def test_columns_may_come_from_arrow_or_pandas() -> None:
    table = pa.table({"price": [10.0, 20.0], "_weight": [2.0, 4.0]})
    for rows in (table, table.to_pandas()):
        assert tg.estimated_sum(rows["price"], rows["_weight"]).value == 100.0
        assert tg.estimated_count(rows["_weight"]).value == 6.0
