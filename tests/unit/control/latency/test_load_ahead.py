"""The load ahead after a time without ticks, and after a fall of a noisy load."""

import numpy as np
import pytest

from tidegate.control.latency.load_ahead import JUMP, LoadForecast
from tidegate.workload.patterns import PATTERNS, Q3, Q11, pattern


def test_after_a_silence_the_first_rate_is_no_jump() -> None:
    ahead = LoadForecast()
    for second in range(120):
        ahead.observe(100.0, float(second))
        ahead.within(2)
    ahead.observe(300.0, 4000.0)
    assert 300.0 <= ahead.within(2).planned < 300.0 * float(np.exp(JUMP))


@pytest.mark.parametrize("magnitudes", [Q3, Q11], ids=["q3", "q11"])
@pytest.mark.parametrize("name", PATTERNS)
def test_the_next_seconds_are_not_what_the_last_minutes_were(name: str, magnitudes) -> None:
    """A random walk falls to nearly nothing within half a minute, and a cosine within a minute."""
    load = pattern(name, magnitudes, peak=2000.0, minute_s=2.0)
    ahead = LoadForecast()
    for second in range(1, 281):
        ahead.observe(load.rate(second - 0.5), float(second))
        planned = ahead.within(2).planned
        highest = max(load.rate(second - 0.5 - back) for back in range(min(second, 10)))
        assert planned <= 2.0 * highest + 1.0, f"second {second}"
