"""Instances are functions of their number, and a tree of the stated depth labels them."""

import numpy as np
import pytest

from tidegate.apps.vht.instances import Instances
from tidegate.apps.vht.options import VhtOptions, vht_options
from tidegate.apps.vht.packed import LEVELS, level_of
from tidegate.errors import AskedWrongly


def test_any_part_can_be_made_alone() -> None:
    instances = Instances(VhtOptions(), 7)
    whole, part = np.arange(1000), np.arange(400, 500)
    assert (instances.levels(whole)[400:500] == instances.levels(part)).all()
    assert (instances.labels(whole)[400:500] == instances.labels(part)).all()
    assert (instances.levels(whole) != Instances(VhtOptions(), 8).levels(whole)).any()


def test_attributes_are_uniform_and_the_others_are_empty() -> None:
    levels = Instances(VhtOptions(attributes=5), 1).levels(np.arange(50_000))
    for attribute in range(5):
        shares = np.bincount(level_of(levels, attribute), minlength=LEVELS) / len(levels)
        assert np.abs(shares - 1 / LEVELS).max() < 0.01
    assert (levels >> 20 == 0).all()


def test_so_many_labels_are_wrong() -> None:
    instances = Instances(VhtOptions(noise=0.2), 1)
    seq = np.arange(50_000)
    right = instances.concept(instances.levels(seq))
    assert np.mean(right != instances.labels(seq)) == pytest.approx(0.2, abs=0.01)
    assert 0.2 < right.mean() < 0.8


def test_sixteen_attributes_fit() -> None:
    levels = Instances(VhtOptions(attributes=16), 1).levels(np.arange(1000))
    assert (levels < 0).any()
    assert set(level_of(levels, 15).tolist()) == set(range(LEVELS))


@pytest.mark.parametrize(
    "extra",
    [{"attributes": "17"}, {"depth": "13"}, {"noise": "0.6"}, {"grace": "0"}, {"delay": "-1"}],
)
def test_options_that_are_refused(extra: dict[str, str]) -> None:
    (name,) = extra
    with pytest.raises(AskedWrongly, match=f"{name}="):
        vht_options(extra)
