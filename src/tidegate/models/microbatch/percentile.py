"""The distribution of a row's sojourn through micro-batches: its mean and its percentiles.

A row arrives at a uniformly random moment of the span S over which its batch is gathered, and the
durations of batches vary. With y the relative deviation of that span, the sojourn is

    T = c + b y + e + u S (1 + y),    u uniform on (0, 1),  y ~ N(0, s^2),  e ~ N(0, sigma^2).

c is what every row takes, b says how much longer a batch takes when it was gathered for longer, and
e is the noise of the batches themselves. More rows arrive in a longer span, so y counts 1 + y fold.
Rows may take several ways (a loop is passed once, twice, ...), which makes T a mixture.

Given y, T is a normal plus a uniform variable, whose distribution function is the integral of the
normal one. Five Gauss-Hermite points average over y. So each value is closed arithmetic, and a
percentile takes microseconds by bisection.
"""

import math
from dataclasses import dataclass
from typing import Any

import numba as nb
import numpy as np

from tidegate.errors import AskedWrongly

_POINTS, _WEIGHTS = np.polynomial.hermite_e.hermegauss(5)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
MOST_SPREAD = 0.3
"""The largest s that is used: beyond it the spread of durations is no longer a small deviation."""
_STEPS = 40


@dataclass(frozen=True, slots=True)
class Way:
    """One way that rows take through the pipeline."""

    share: float
    """The share of the rows that take it."""
    fixed_s: float
    """c: what each of these rows takes, besides the time in which its batch is gathered."""
    longer_s: float
    """b: what a batch takes longer, per relative deviation of the span in which it is gathered."""
    noise_s: float
    """sigma: the deviation of the time that all its batches and waits take."""
    span_s: float
    """S: the time in which a batch of its first segment is gathered."""
    spread: float
    """s: the relative deviation of that time from batch to batch, at most `MOST_SPREAD`."""

    @property
    def mean_s(self) -> float:
        """E[T] of this way. Long spans hold more rows, so y has the mean s^2 over the rows."""
        square = self.spread**2
        return self.fixed_s + self.longer_s * square + self.span_s * (1.0 + square) / 2.0


@dataclass(frozen=True, slots=True)
class SojournTime:
    """The distribution of the sojourn over all rows."""

    ways: tuple[Way, ...]
    """Their shares add up to 1."""

    @property
    def mean_s(self) -> float:
        """E[T]."""
        return sum(way.share * way.mean_s for way in self.ways)

    def percentile(self, share: float) -> float:
        """The sojourn that this share of the rows do not exceed."""
        if not 0.0 < share < 1.0:
            raise AskedWrongly(f"a share of {share:g} rows is not possible; give one within 0 to 1")
        if not self.mean_s < math.inf:
            return math.inf
        table = np.array(
            [(w.share, w.fixed_s, w.longer_s, w.noise_s, w.span_s, w.spread) for w in self.ways]
        )
        return float(_percentile(share, table))


@nb.njit(cache=True)
def _percentile(share: float, ways: Any) -> float:
    """Bisect the distribution function between bounds that no row leaves in practice."""
    low, high = np.inf, 0.0
    for index in range(len(ways)):
        _, fixed_s, longer_s, noise_s, span_s, spread = ways[index]
        reach_s = 6.0 * (noise_s + spread * (abs(longer_s) + span_s))
        low = min(low, fixed_s - reach_s)
        high = max(high, fixed_s + span_s + reach_s)
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        if _upto(middle, ways) < share:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


@nb.njit(cache=True)
def _upto(at_s: float, ways: Any) -> float:
    """The share of the rows whose sojourn is at most `at_s`."""
    found = 0.0
    for index in range(len(ways)):
        share, fixed_s, longer_s, noise_s, span_s, spread = ways[index]
        inside = total = 0.0
        for point in range(len(_POINTS)):
            y = spread * _POINTS[point]
            weight = _WEIGHTS[point] * (1.0 + y)
            total += weight
            begin_s = fixed_s + longer_s * y
            inside += weight * _below(at_s - begin_s, span_s * (1.0 + y), noise_s)
        found += share * inside / total
    return found


@nb.njit(cache=True)
def _below(at_s: float, span_s: float, noise_s: float) -> float:
    """P(u span + noise <= at): the mean of the normal distribution function over the span."""
    if noise_s < 1e-6 * span_s or noise_s <= 0.0:
        if span_s <= 0.0:
            return 1.0 if at_s >= 0.0 else 0.0
        return min(max(at_s / span_s, 0.0), 1.0)
    if span_s < 1e-3 * noise_s:
        return _normal((at_s - 0.5 * span_s) / noise_s)
    upper, lower = at_s / noise_s, (at_s - span_s) / noise_s
    return min(max(noise_s / span_s * (_integral(upper) - _integral(lower)), 0.0), 1.0)


@nb.njit(cache=True)
def _normal(z: float) -> float:
    return 0.5 * math.erfc(-z / math.sqrt(2.0))


@nb.njit(cache=True)
def _integral(z: float) -> float:
    """The integral of the normal distribution function up to z: z Phi(z) + phi(z)."""
    return z * _normal(z) + math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
