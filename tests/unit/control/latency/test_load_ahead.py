"""The load ahead after a time without ticks."""

import numpy as np

from tidegate.control.latency.load_ahead import JUMP, LoadForecast


def test_after_a_silence_the_first_rate_is_no_jump() -> None:
    ahead = LoadForecast()
    for second in range(120):
        ahead.observe(100.0, float(second))
        ahead.within(2)
    ahead.observe(300.0, 4000.0)
    assert 300.0 <= ahead.within(2).planned < 300.0 * float(np.exp(JUMP))
