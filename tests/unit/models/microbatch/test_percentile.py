"""The distribution of the sojourn, against draws of the variables that define it."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.errors import AskedWrongly
from tidegate.models.microbatch.percentile import SojournTime, Way

SHARES = (0.5, 0.95, 0.99)


def drawn(sojourn: SojournTime, count: int = 200_000) -> np.ndarray:
    """Sojourns of single rows, drawn by the definition; long spans hold more rows."""
    random = np.random.default_rng(3)
    span_s, spread = sojourn.ways[0].span_s, sojourn.ways[0].spread
    y = np.maximum(spread * random.standard_normal(count), -1.0)
    y = random.choice(y, count, p=(1.0 + y) / (1.0 + y).sum())
    shares = np.array([way.share for way in sojourn.ways])
    chosen = random.choice(len(shares), count, p=shares / shares.sum())
    fixed, longer, noise = (
        np.array([getattr(way, name) for way in sojourn.ways])[chosen]
        for name in ("fixed_s", "longer_s", "noise_s")
    )
    gathered = random.random(count) * span_s * (1.0 + y)
    return fixed + longer * y + noise * random.standard_normal(count) + gathered


@settings(max_examples=25, deadline=None)
@given(
    span_s=st.floats(0.2, 5.0),
    spread=st.floats(0.0, 0.2),
    fixed=st.floats(0.5, 5.0),
    longer=st.floats(0.0, 1.0),
    noise=st.floats(0.0, 0.5),
    passes=st.floats(0.0, 0.7),
)
def test_the_percentiles_are_those_of_drawn_rows(
    span_s: float, spread: float, fixed: float, longer: float, noise: float, passes: float
) -> None:
    ways = (
        Way(1.0 - passes, fixed, longer, noise, span_s, spread),
        Way(passes, 2.0 * fixed, longer, 1.4 * noise, span_s, spread),
    )
    sojourn = SojournTime(ways)
    found = drawn(sojourn)
    assert sojourn.mean_s == pytest.approx(found.mean(), rel=0.01)
    for share in SHARES:
        within = float(np.mean(found <= sojourn.percentile(share)))
        assert within == pytest.approx(share, abs=min(0.015, 0.8 * (1.0 - share)))


def test_without_noise_the_sojourn_of_one_segment_is_uniform() -> None:
    sojourn = SojournTime((Way(1.0, 2.0, 0.0, 0.0, 2.0, 0.0),))
    assert sojourn.mean_s == pytest.approx(3.0)
    for share in SHARES:
        assert sojourn.percentile(share) == pytest.approx(2.0 + 2.0 * share, rel=1e-6)


def test_percentiles_rise_with_their_share() -> None:
    sojourn = SojournTime((Way(0.6, 1.0, 0.5, 0.1, 1.0, 0.1), Way(0.4, 3.0, 0.5, 0.2, 2.0, 0.05)))
    values = [sojourn.percentile(share) for share in np.linspace(0.01, 0.99, 60)]
    assert values == sorted(values)


def test_an_endless_sojourn_has_endless_percentiles() -> None:
    assert SojournTime((Way(1.0, math.inf, 0.0, 0.0, 1.0, 0.0),)).percentile(0.95) == math.inf


@pytest.mark.parametrize("share", [0.0, 1.0, -0.5, 95.0, math.nan])
def test_a_share_outside_zero_to_one_is_refused(share: float) -> None:
    with pytest.raises(AskedWrongly, match="within 0 to 1"):
        SojournTime((Way(1.0, 1.0, 0.0, 0.0, 1.0, 0.0),)).percentile(share)
