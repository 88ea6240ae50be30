"""A rate profile: how many rows have arrived by each millisecond, and when each row arrives.

A profile consists of steps of constant rate; smooth shapes are cut into up to a thousand fine
steps, each with the exact mean of its interval. The count is then a chain of monotone operations,
and rounding cannot make a row arrive twice or never: row n has arrived by millisecond m if and only
if `n < count(m)`, whichever range is computed, now or in a replay.
"""

import hashlib
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tidegate.errors import AskedWrongly
from tidegate.workload.counter import words

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_FINE_STEPS = 1000
_LEVELS, _SHUFFLES = 25, 40
_EARLY_ROWS = 1e-6
"""A row counts as arrived when this fraction of it is still missing; see `counts`."""


@dataclass(frozen=True, eq=False)
class Profile:
    """Steps of constant rate. The last rate holds for ever, or all steps repeat every period."""

    starts_ms: Ints
    """The start of each step; the first is 0, except in a `window` of a longer profile."""
    rates: Floats
    """Rows per second during each step."""
    period_ms: int | None = None
    base_rows: Floats = field(default_factory=lambda: np.empty(0))
    """Rows that have arrived when each step begins; computed from the other fields."""

    def __post_init__(self) -> None:
        if len(self.base_rows) == len(self.starts_ms):
            return
        grown = np.diff(self.starts_ms) * self.rates[:-1] / 1000.0
        object.__setattr__(self, "base_rows", np.concatenate(([0.0], np.cumsum(grown))))

    @property
    def rows_per_period(self) -> float:
        """Rows that arrive in one period; only for profiles with a period."""
        assert self.period_ms is not None
        last = (self.period_ms - self.starts_ms[-1]) * self.rates[-1] / 1000.0
        return float(self.base_rows[-1] + last)

    def rate(self, at_s: float) -> float:
        """Rows per second at `at_s` seconds after the start."""
        at_ms = round(at_s * 1e6) / 1000.0
        if self.period_ms is not None:
            at_ms %= self.period_ms
        step = int(np.searchsorted(self.starts_ms, at_ms, side="right")) - 1
        return float(self.rates[step]) if step >= 0 else 0.0

    def cumulative(self, at_ms: npt.ArrayLike) -> Floats:
        """The integral of the rate: rows, with fractions, in the first `at_ms` milliseconds."""
        at = np.maximum(np.asarray(at_ms, dtype=np.int64), 0)
        if self.period_ms is None:
            return self._within(at)
        turns, at = np.divmod(at, self.period_ms)
        once = self.rows_per_period
        # The next period is computed by another operation: rounding must not pass its first row.
        return np.minimum(turns * once + self._within(at), (turns + 1) * once)

    def _within(self, at_ms: Ints) -> Floats:
        step = np.searchsorted(self.starts_ms, at_ms, side="right") - 1
        grown = self.base_rows[step] + (at_ms - self.starts_ms[step]) * self.rates[step] / 1000.0
        last = len(self.starts_ms) - 1
        # For the same reason, rounding must not pass the next step's base.
        return np.where(
            step < last, np.minimum(grown, self.base_rows[np.minimum(step + 1, last)]), grown
        )

    def count(self, at_ms: int) -> int:
        """Whole rows that have arrived by millisecond `at_ms`."""
        return int(self.counts(at_ms))

    def counts(self, at_ms: npt.ArrayLike) -> Ints:
        """Whole rows that have arrived by each millisecond.

        A row counts when all but a millionth of it has arrived, so that rounding makes none late.
        """
        return np.floor(self.cumulative(at_ms) + _EARLY_ROWS).astype(np.int64)

    def arrival_us(self, rows: Ints) -> Ints:
        """The microsecond at which each row arrives: row n, from 0, when the count is n + 1."""
        wanted = rows + 1.0 - _EARLY_ROWS
        turn_us: Ints | int = 0
        if self.period_ms is not None:
            once = self.rows_per_period
            turns = np.maximum(np.ceil(wanted / once) - 1.0, 0.0)
            wanted = np.minimum(wanted - turns * once, once)
            turn_us = turns.astype(np.int64) * self.period_ms * 1000
        step = np.maximum(np.searchsorted(self.base_rows, wanted, side="left") - 1, 0)
        since_us = np.ceil((wanted - self.base_rows[step]) / self.rates[step] * 1e6)
        at_us = turn_us + self.starts_ms[step] * 1000 + since_us.astype(np.int64)
        # Rounding may have put a row on the wrong side of a millisecond; `counts` is right.
        at_ms = -(-at_us // 1000)
        at_us = np.where(self.counts(at_ms - 1) > rows, (at_ms - 1) * 1000, at_us)
        return np.where(self.counts(at_ms) <= rows, at_ms * 1000 + 1, at_us)

    def window(self, begin_ms: int, end_ms: int) -> "Profile":
        """The part that determines the rows from `begin_ms` to `end_ms`, small enough to ship."""
        if self.period_ms is not None:
            return self
        first = max(int(np.searchsorted(self.starts_ms, begin_ms - 2, side="right")) - 1, 0)
        last = int(np.searchsorted(self.starts_ms, end_ms + 2, side="right")) + 1
        return Profile(
            self.starts_ms[first:last], self.rates[first:last], None, self.base_rows[first:last]
        )

    @property
    def fingerprint(self) -> str:
        """A hash that is equal for profiles with the same arrivals, across processes."""
        digest = hashlib.blake2b(digest_size=8)
        digest.update(self.starts_ms.tobytes())
        digest.update(self.rates.tobytes())
        digest.update(str(self.period_ms).encode())
        return digest.hexdigest()

    def __str__(self) -> str:
        """The short form that `parse_profile` reads."""
        steps = zip(self.starts_ms.tolist(), self.rates.tolist(), strict=True)
        repeat = "" if self.period_ms is None else f"/{self.period_ms / 1000!r}"
        return "step:" + ",".join(f"{rate!r}@{ms / 1000!r}" for ms, rate in steps) + repeat


def constant(rate: float) -> Profile:
    """A constant rate."""
    return steps([(0.0, rate)])


def steps(changes: list[tuple[float, float]], period_s: float | None = None) -> Profile:
    """Steps from `(second, rate)` pairs, the first at 0; repeated every `period_s` if given."""
    starts_ms = np.array([_to_ms(second) for second, _ in changes], dtype=np.int64)
    rates = np.array([_rate(rate) for _, rate in changes], dtype=np.float64)
    if not changes or starts_ms[0] != 0:
        raise AskedWrongly("a rate profile must begin at second 0; give the rate at 0 first.")
    if np.any(np.diff(starts_ms) <= 0):
        raise AskedWrongly(
            "a rate profile's seconds must increase from step to step by at least a millisecond."
        )
    if period_s is None:
        return Profile(starts_ms, rates)
    period_ms = _to_ms(period_s)
    if period_ms <= starts_ms[-1]:
        raise AskedWrongly(
            f"a rate profile that repeats every {period_s:g} s has a step at second "
            f"{starts_ms[-1] / 1000:g}; make the period longer than its last step."
        )
    if not np.any(rates > 0):
        return Profile(starts_ms[:1], rates[:1])
    return Profile(starts_ms, rates, period_ms)


def ramp(begin: float, end: float, over_s: float) -> Profile:
    """A linear change from one rate to another, which then holds."""
    _rate(begin), _rate(end)
    edges_ms = _edges(over_s)
    middles = (edges_ms[:-1] + edges_ms[1:]) / 2.0 / edges_ms[-1]
    rates = np.append(begin + (end - begin) * middles, end)
    return Profile(edges_ms, rates.astype(np.float64))


def sine(mean: float, amplitude: float, period_s: float) -> Profile:
    """A sine wave around the mean: it begins at the mean and rises first."""
    _rate(mean)
    if abs(amplitude) > mean:
        raise AskedWrongly(
            f"a sine of {mean:g} +- {abs(amplitude):g} rows/s would have a negative rate; make the "
            "amplitude at most the mean."
        )
    edges_ms = _edges(period_s)
    turns = edges_ms / edges_ms[-1] * 2.0 * np.pi
    means = mean + amplitude * -np.diff(np.cos(turns)) / np.diff(turns)
    if mean == 0:
        return constant(0)
    return Profile(edges_ms[:-1], np.maximum(means, 0.0), int(edges_ms[-1]))


def spike(base: float, peak: float, at_s: float, for_s: float) -> Profile:
    """A base rate, with another rate from `at_s` for `for_s` seconds."""
    if at_s == 0:
        return steps([(0.0, peak), (for_s, base)])
    return steps([(0.0, base), (at_s, peak), (at_s + for_s, base)])


def uniform(low: float, high: float) -> Profile:
    """Another rate every second, uniform between two; it repeats after 1,000 s.

    In every 25 s each of 25 evenly spaced rates comes once, in random order, so that even the mean
    of a short run is in the middle.
    """
    if _rate(low) > _rate(high):
        raise AskedWrongly(
            f"a rate that is uniform from {low:g} to {high:g} rows/s is not possible; give the "
            "lower rate first."
        )
    if high == 0:
        return constant(0)
    seconds = np.arange(_LEVELS * _SHUFFLES, dtype=np.int64)
    order = np.argsort(words(seconds, seed=0).reshape(_SHUFFLES, _LEVELS), axis=1)
    rates = np.linspace(low, high, _LEVELS)[order].ravel()
    return Profile(seconds * 1000, rates, len(seconds) * 1000)


def _edges(over_s: float) -> Ints:
    """Edges of up to a thousand fine steps, on whole milliseconds."""
    over_ms = _to_ms(over_s)
    if over_ms < 1:
        raise AskedWrongly(f"a rate profile cannot change over {over_s:g} s; give a longer time.")
    count = min(_FINE_STEPS, over_ms)
    return np.arange(count + 1, dtype=np.int64) * over_ms // count


def _rate(value: float) -> float:
    if not (np.isfinite(value) and 0 <= value <= 1e9):
        raise AskedWrongly(
            f"a rate of {value:g} rows/s is not possible; give a number from 0 to 1e9."
        )
    return value


def _to_ms(second: float) -> int:
    if not (np.isfinite(second) and 0 <= second <= 1e10):
        raise AskedWrongly(f"{second:g} s is not a time in a rate profile; give 0 to 1e10 s.")
    return round(second * 1000)
