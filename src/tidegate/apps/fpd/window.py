"""Which tweet enters or leaves the sliding window, and when: the two sources of DRS fig. 5.

Rows are changes of the window. The first W let a tweet in. From then on the oldest tweet leaves and
a new one enters, in turn, so that the window never has more than W. The rate of the two sources
together is the rate that was asked for; DRS V-B has 320 a second, by a Poisson process.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tidegate.apps.fpd.itemsets import Ints
from tidegate.workload.counter import uniforms, words
from tidegate.workload.profile import Profile

_TIME = 10
"""The stream of random numbers that arrival times are drawn from."""
_MOST_MOMENTS = 300_000
"""Arrival times are whole milliseconds; in a run with more of them than this, coarser."""


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """The changes of the window in one run."""

    entering_ms: Ints
    """When each tweet enters, by its number, in milliseconds since the start."""
    leaving_ms: Ints
    """When each tweet leaves; shorter, as the last ones stay."""

    @classmethod
    def of(cls, times_ms: Ints, window: int) -> "Changes":
        """Changes at these times, which increase."""
        number = np.arange(len(times_ms))
        leaves = (number >= window) & ((number - window) % 2 == 0)
        return cls(times_ms[~leaves], times_ms[leaves])

    @property
    def at_the_end(self) -> range:
        """The tweets that are in the window after all changes."""
        return range(len(self.leaving_ms), len(self.entering_ms))


def poisson_times(rate: Profile, seconds: float, seed: int) -> Ints:
    """A Poisson process of this rate, given how many rows there are: as many as by the profile.

    Given their number, the times of a Poisson process are independent draws with the density of
    the rate, in order.
    """
    end_ms = round(seconds * 1000)
    step_ms = max(1, -(-end_ms // _MOST_MOMENTS))
    moments = np.append(np.arange(0, end_ms, step_ms), end_ms)
    arrived: npt.NDArray[np.float64] = rate.cumulative(moments)
    draws = uniforms(words(np.arange(rate.count(end_ms)), seed, _TIME)) * arrived[-1]
    draws.sort()
    place = np.searchsorted(arrived, draws, side="right")
    found: Ints = moments[np.minimum(place, len(moments) - 1)]
    return found


def even_times(rate: Profile, seconds: float) -> Ints:
    """Rows as evenly spaced as the profile has them."""
    rows = np.arange(rate.count(round(seconds * 1000)))
    return -(-rate.arrival_us(rows) // 1000)


def write_profile(times_ms: Ints, place: Path) -> str:
    """Write a rate profile by which rows arrive at exactly these times; returns its short form.

    A row that arrives at millisecond m needs a rate of 1000 a second from m - 1 to m.
    """
    moments, rows = np.unique(times_ms, return_counts=True)
    rates = dict.fromkeys((0, *moments.tolist()), 0.0)
    rates |= dict(zip((moments - 1).tolist(), (rows * 1000.0).tolist(), strict=True))
    lines = (f"{ms / 1000:.3f},{rates[ms]:g}\n" for ms in sorted(rates))
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("second,rate\n" + "".join(lines), encoding="utf-8")
    return f"csv:{place}"
