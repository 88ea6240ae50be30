"""The bandwidth that is learned from waits is the one that made them, or none is assumed."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.models.flow.bandwidth import LinkBandwidth


def fitted(sizes: list[float], waits: list[float]) -> float:
    link = LinkBandwidth()
    for size, wait_s in zip(sizes, waits, strict=True):
        link.add(size, wait_s)
    return link.bytes_s


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(1e3, 1e8), min_size=8, max_size=30),
    st.floats(0.0, 0.2),
    st.floats(1e5, 1e9),
)
def test_exact_waits_give_the_bandwidth(sizes: list[float], begin_s: float, rate: float) -> None:
    spread = float(np.std(sizes))
    if spread < 0.5 * float(np.mean(sizes)) or spread / rate < 1e-6:
        return
    found = fitted(sizes, [begin_s + size / rate for size in sizes])
    assert found == pytest.approx(rate, rel=1e-2)


def test_it_is_the_line_of_an_ordinary_fit() -> None:
    random = np.random.default_rng(3)
    sizes = random.uniform(1e5, 5e6, 40)
    waits = 0.05 + sizes / 2e7 + random.normal(0.0, 0.005, 40)
    weights = 0.98 ** np.arange(39, -1, -1.0)
    slope = np.polyfit(sizes, waits, 1, w=np.sqrt(weights))[0]
    assert fitted(sizes.tolist(), waits.tolist()) == pytest.approx(1.0 / slope, rel=1e-6)


def test_no_limit_is_assumed_without_evidence() -> None:
    assert math.isinf(LinkBandwidth().bytes_s)
    assert math.isinf(fitted([1e3, 1e6, 1e5], [0.1, 0.2, 0.1])), "too few batches"
    assert math.isinf(fitted([1e6] * 20, [0.1 + 0.01 * n for n in range(20)])), "all alike"
    random = np.random.default_rng(5)
    sizes = random.uniform(1e5, 1e6, 30).tolist()
    assert math.isinf(fitted(sizes, random.normal(0.1, 0.02, 30).tolist())), "only noise"
    shorter = [1.0 - 1e-7 * size for size in sizes]
    assert math.isinf(fitted(sizes, shorter)), "larger batches waited less"


def test_a_bandwidth_that_changes_is_learned_anew() -> None:
    random = np.random.default_rng(7)
    sizes = random.uniform(1e5, 5e6, 400)
    waits = np.where(np.arange(400) < 100, sizes / 1e8, sizes / 1e7)
    assert fitted(sizes.tolist(), waits.tolist()) == pytest.approx(1e7, rel=0.05)
