"""Six loads on which stream autoscalers are compared, with another rate every minute.

The shapes are those of the generators of delftdata/espa-autoscaling, which belong to the comparison
of stream autoscalers of DEBS 2024: cosine, random, increasing, decreasing, spiking (a cosine with
spikes on it) and converging (nothing, once, twice and once a rate). Their minutes are played in a
few seconds here, and their rates are scaled so that the highest one is what a machine can take.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tidegate.errors import AskedWrongly, nearest
from tidegate.workload.counter import uniforms, words
from tidegate.workload.profile import Profile, steps

Floats = npt.NDArray[np.float64]

MINUTES = 140
"""How long the original runs each of them."""
SEED = 1066
"""The original's seed; its random numbers are others, so the rates are as well."""
PERIOD = 60
"""Minutes of a period of the cosine."""
SPIKE_CHANCE = 0.1
"""Of a spike to begin in a minute without one. Ours: the original leaves it to who runs it, and has
none otherwise."""
_LONGEST_SPIKE = 3
_NOISE, _SPIKE, _SPIKE_LENGTH, _SPIKE_HEIGHT = range(4)
"""Streams of random numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Magnitudes:
    """The rates of a query in the original, in events per second."""

    mean: float
    """The middle of the cosine, and where the random walk begins."""
    swing: float
    """From the middle of the cosine to its top."""
    climb: float
    """What the increasing load is made from; it rises by about 0.85 of it in 140 minutes."""
    fall: float
    """What the decreasing load begins with; it falls by about 0.83 of it in 140 minutes."""
    step: float = 10_000.0
    """The most by which noise moves the cosine, and a minute the random walk."""


Q1 = Magnitudes(mean=150_000.0, swing=100_000.0, climb=240_000.0, fall=240_000.0)
Q3 = Magnitudes(mean=50_000.0, swing=25_000.0, climb=75_000.0, fall=80_000.0)
Q11 = Magnitudes(mean=30_000.0, swing=15_000.0, climb=150_000.0, fall=150_000.0)
"""Those of the three queries that the generators know."""


def cosine(of: Magnitudes, minutes: int, seed: int) -> Floats:
    """A cosine that begins at its top, with noise."""
    turns = 2.0 * np.pi * np.arange(minutes) / PERIOD
    return _from_0(of.mean + of.swing * np.cos(turns) + of.step * _noise(minutes, seed))


def random_walk(of: Magnitudes, minutes: int, seed: int) -> Floats:
    """A walk with steps that go up as often as down."""
    moves = of.step * _noise(minutes, seed)
    moves[0] = 0.0
    return _walk(of.mean, moves)


def increasing(of: Magnitudes, minutes: int, seed: int) -> Floats:
    """A walk from nearly nothing, whose steps lead up on average."""
    return _walk(2_000.0, of.climb * _between(-1 / 30, 1 / 22, minutes, seed))


def decreasing(of: Magnitudes, minutes: int, seed: int) -> Floats:
    """A walk from the top, whose steps lead down on average."""
    return _walk(of.fall + 2_000.0, of.fall * _between(-1 / 21, 1 / 28, minutes, seed))


def spiking(of: Magnitudes, minutes: int, seed: int) -> Floats:
    """The cosine, with spikes of one to three minutes that add half of its swing or more."""
    begins = _uniform(minutes, seed, _SPIKE) < SPIKE_CHANCE
    lengths = 1 + (_uniform(minutes, seed, _SPIKE_LENGTH) * _LONGEST_SPIKE).astype(np.int64)
    heights = of.swing * (0.5 + 0.5 * _uniform(minutes, seed, _SPIKE_HEIGHT))
    left = 0
    spikes = np.zeros(minutes)
    for minute in range(minutes):
        if left > 0:
            spikes[minute] = heights[minute]
            left -= 1
        elif begins[minute]:
            left = int(lengths[minute])
    return cosine(of, minutes, seed) + spikes


def converging(of: Magnitudes, minutes: int, seed: int) -> Floats:
    """Nothing for a seventh of the time, then a rate, twice the rate, and the rate again."""
    levels = np.repeat([0.0, 1.0, 1.0, 2.0, 2.0, 1.0, 1.0], -(-minutes // 7))[:minutes]
    return _from_0(of.mean * (levels + 0.1 * _noise(minutes, seed)))


PATTERNS: dict[str, Callable[[Magnitudes, int, int], Floats]] = {
    "cosine": cosine,
    "random": random_walk,
    "increasing": increasing,
    "decreasing": decreasing,
    "spiking": spiking,
    "converging": converging,
}
"""All six by name: rates by the minute, from the magnitudes, the number of minutes and a seed."""


def pattern(
    name: str,
    of: Magnitudes,
    *,
    peak: float,
    minute_s: float,
    minutes: int = MINUTES,
    seed: int = SEED,
) -> Profile:
    """A pattern whose minutes take `minute_s` each, scaled so that its highest rate is `peak`."""
    if name not in PATTERNS:
        raise AskedWrongly(f"there is no load '{name}'{nearest(name, PATTERNS)}")
    if minutes < 1 or not minute_s > 0.0 or not peak > 0.0:
        raise AskedWrongly(
            f"{minutes} minutes of {minute_s:g} s with at most {peak:g} events/s are no load; give"
            " more than 0 of each"
        )
    rates = PATTERNS[name](of, minutes, seed)
    highest = float(rates.max())
    if highest <= 0.0:
        raise AskedWrongly(f"{minutes} minutes of '{name}' have no events; give more minutes")
    scaled = (rates * (peak / highest)).tolist()
    return steps([(minute * minute_s, rate) for minute, rate in enumerate(scaled)])


def _walk(begin: float, moves: Floats) -> Floats:
    """A walk that does not go below 0."""
    rates = np.empty(len(moves))
    rate = begin
    for minute, move in enumerate(moves.tolist()):
        rate = max(rate + move, 0.0)
        rates[minute] = rate
    return rates


def _from_0(rates: Floats) -> Floats:
    return np.maximum(rates, 0.0)


def _uniform(minutes: int, seed: int, stream: int) -> Floats:
    return uniforms(words(np.arange(minutes, dtype=np.int64), seed, stream))


def _between(low: float, high: float, minutes: int, seed: int) -> Floats:
    return low + (high - low) * _uniform(minutes, seed, _NOISE)


def _noise(minutes: int, seed: int) -> Floats:
    """From -1 to 1."""
    return _between(-1.0, 1.0, minutes, seed)
