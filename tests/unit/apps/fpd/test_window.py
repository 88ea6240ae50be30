"""What is in the window, and when rows arrive."""

from pathlib import Path

import numpy as np
import pytest

from tidegate.apps.fpd.options import FpdOptions
from tidegate.apps.fpd.window import Changes, even_times, poisson_times, write_profile
from tidegate.errors import AskedWrongly
from tidegate.workload.parse import parse_profile


def test_the_oldest_leaves_before_a_new_one_enters() -> None:
    changes = Changes.of(np.arange(1, 12), window=4)
    assert changes.entering_ms.tolist() == [1, 2, 3, 4, 6, 8, 10]
    assert changes.leaving_ms.tolist() == [5, 7, 9, 11]
    assert changes.at_the_end == range(4, 7)
    assert Changes.of(np.arange(1, 11), window=4).at_the_end == range(3, 7)


def test_nothing_leaves_a_window_that_is_not_full() -> None:
    changes = Changes.of(np.arange(1, 4), window=4)
    assert not len(changes.leaving_ms)
    assert changes.at_the_end == range(3)


@pytest.mark.parametrize("text", ["constant:320", "sine:200+-150/7", "step:0@0,500@3"])
def test_poisson_rows_are_as_many_as_by_the_profile(text: str, tmp_path: Path) -> None:
    profile = parse_profile(text)
    times = poisson_times(profile, 10.0, seed=2)
    assert len(times) == profile.count(10_000)
    assert (np.diff(times) >= 0).all()
    assert times[0] >= 1
    assert times[-1] <= 10_000
    written = parse_profile(write_profile(times, tmp_path / "rows.csv"))
    moments = np.arange(0, 10_001)
    assert np.array_equal(written.counts(moments), np.searchsorted(times, moments, side="right"))


def test_poisson_counts_vary_as_much_as_their_mean() -> None:
    times = poisson_times(parse_profile("constant:320"), 200.0, seed=1)
    counts = np.bincount(times // 100, minlength=2000)
    assert 0.85 < counts.var() / counts.mean() < 1.15
    even = np.bincount(even_times(parse_profile("constant:320"), 200.0) // 100)
    assert even.var() / even.mean() < 0.1


def test_no_rows_at_all(tmp_path: Path) -> None:
    written = parse_profile(write_profile(np.empty(0, dtype=np.int64), tmp_path / "none.csv"))
    assert written.count(10_000) == 0


def test_options_are_read_and_checked() -> None:
    read = FpdOptions.of({"window": "50000", "threshold": "3", "arrivals": "even"})
    assert (read.window, read.threshold, read.largest, read.arrivals) == (50_000, 3, 4, "even")
    for extra, said in (
        ({"window": "many"}, "whole number"),
        ({"window": "0"}, "give 1 to"),
        ({"threshold": "0"}, "give 1 or more"),
        ({"largest": "5"}, "give 1 to 4"),
        ({"arrivals": "late"}, "poisson or even"),
    ):
        with pytest.raises(AskedWrongly, match=said):
            FpdOptions.of(extra)
