"""How old rows and results are: ours, and both readings of the overload paper's measure."""

import math

import numpy as np
import pytest

from tidegate.apps.planetlab.ages import AgeCounts, ResultAges
from tidegate.control.learning.sojourn import BatchStamps, Stamps

SECOND = 1_000_000


def batch(end_s: float, *arrivals_s: float) -> BatchStamps:
    arrivals_us = np.array([round(at * SECOND) for at in arrivals_s], dtype=np.int64)
    return BatchStamps(Stamps.of(np.sort(arrivals_us)), round(end_s * SECOND))


def test_every_row_counts_from_its_own_arrival() -> None:
    ages = ResultAges()
    ages.add(batch(12.0, 10.0, 10.5, 11.0))
    assert ages.rows.total == 3
    assert ages.rows.mean_s == pytest.approx(1.5, abs=0.002)


def test_a_result_is_as_old_as_its_oldest_row() -> None:
    ages = ResultAges()
    ages.add(batch(12.0, 10.2, 10.5, 11.1))  # two seconds, so two results
    assert ages.oldest.total == 2
    assert ages.oldest.mean_s == pytest.approx((1.8 + 0.9) / 2, abs=0.002)
    assert ages.newest_part.mean_s == ages.oldest.mean_s


def test_rows_of_earlier_batches_contribute_too() -> None:
    ages = ResultAges()
    ages.add(batch(10.6, 10.1))
    ages.add(batch(11.2, 10.8))
    assert ages.newest_part.mean_s == pytest.approx((0.5 + 0.4) / 2, abs=0.002)
    assert ages.oldest.mean_s == pytest.approx((0.5 + 1.1) / 2, abs=0.002)


def test_a_batch_of_the_warm_up_tells_only_when_its_windows_began() -> None:
    ages = ResultAges()
    ages.add(batch(10.6, 10.1), judged=False)
    assert ages.rows.total == ages.oldest.total == 0
    ages.add(batch(11.2, 10.8))
    assert ages.oldest.mean_s == pytest.approx(1.1, abs=0.002)


def test_a_batch_without_rows_has_no_results() -> None:
    ages = ResultAges()
    ages.add(batch(10.0))
    assert ages.oldest.total == 0
    assert math.isnan(ages.oldest.mean_s)


def test_old_windows_are_forgotten() -> None:
    ages = ResultAges()
    for second in range(500):
        ages.add(batch(second + 1.5, second + 0.5))
    assert len(ages._first_slot) < 100


def test_percentiles_are_nearest_ranks() -> None:
    ages = AgeCounts()
    ages.add(np.arange(1, 101), np.ones(100, dtype=np.int64))
    assert [ages.percentile_s(p) for p in (1, 50, 95, 100)] == [0.001, 0.050, 0.095, 0.100]
    assert ages.mean_s == pytest.approx(0.0505)
    assert ages.cdf((50, 95)) == ((0.050, 0.095), (0.5, 0.95))


def test_without_ages_there_is_no_percentile() -> None:
    assert math.isnan(AgeCounts().percentile_s(50))
    assert AgeCounts().cdf((50,)) == ((), ())


def test_a_clock_that_was_set_back_makes_no_age_negative() -> None:
    ages = AgeCounts()
    ages.add(np.array([-5, 3]), np.array([1, 2]))
    assert ages.total == 3
    assert ages.mean_s == pytest.approx(0.002)
