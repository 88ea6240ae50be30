"""A forecaster that knows the time of day and of week once it has seen them.

It works on the logarithm of the load. A profile over the day, and one over the week that leans on
the day's until it has been seen often enough, say how the load usually moves from now to then;
the level says where it is now, so a jump lifts everything at once. How much of the usual move to
believe is learned by regression of the moves that came on those foretold, and how sure it is comes
from its own errors at each distance: nothing is assumed that it has not measured.
"""

from collections import deque

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import AskedWrongly
from tidegate.forecast import Forecast
from tidegate.forecast.logarithm import Logarithm, to_levels

Vector = NDArray[np.float64]

DAY_S = 86_400.0
BINS = 96
"""Bins of a day: a quarter of an hour each, read with interpolation."""
DISTANCES = np.array([1, 2, 4, 8, 16, 32, 64])
"""Steps ahead at which it checks itself."""
SMOOTHINGS = np.array([1.0, 0.5, 0.2])
"""How fast the level follows; the one with the smallest recent errors speaks."""
SETTLE_S = 43_200.0
"""A reading joins the profile half a day later: today must not be foretold by itself."""
TRUST_DAY = 0.5
TRUST_WEEK = 1.0
"""Visits at which a bin counts half: of the day's profile, and of the week's over the day's."""


class _Profile:
    """Mean log load per bin, older visits fading; visits are counted in days, not readings."""

    def __init__(self, bins: int, fading: float) -> None:
        self._fading = fading
        self.mean = np.zeros(bins)
        self.visits = np.zeros(bins)
        self._last_visit = np.full(bins, -np.inf)
        self._readings = np.zeros(bins)

    def learn(self, index: int, at_s: float, log_value: float) -> None:
        if at_s - self._last_visit[index] > DAY_S / 4:
            self.visits[index] = self._fading * self.visits[index] + 1.0
            self._readings[index] = 0.0
        self._last_visit[index] = at_s
        self._readings[index] += 1.0
        # this visit's readings share one visit's weight
        share = 1.0 / (self.visits[index] * self._readings[index])
        self.mean[index] += share * (log_value - self.mean[index])


class SeasonalForecaster:
    """Level plus the usual move of this time of day and week, with errors it has measured."""

    def __init__(self, step_s: float = 60.0, error_fading: float = 0.995) -> None:
        if not step_s > 0:
            raise AskedWrongly(f"A step is {step_s:g} s long, but must be longer than 0 s.")
        self._step_s = step_s
        self._error_fading = error_fading
        self._logarithm = Logarithm()
        self._day = _Profile(BINS, fading=0.8)
        self._week = _Profile(7 * BINS, fading=0.8)
        self._usual = np.zeros(7 * BINS)
        self._trust = np.zeros(7 * BINS)
        self._settling: deque[tuple[float, float]] = deque()
        self._at_s: float | None = None
        self._levels = np.zeros(SMOOTHINGS.size)
        size = int(DISTANCES[-1]) + 1
        self._said = np.zeros((size, SMOOTHINGS.size, DISTANCES.size))
        self._moves_said = np.zeros((size, DISTANCES.size))
        self._from_log = np.zeros(size)
        self._said_at = np.full(size, -1, dtype=np.int64)
        self._squares = np.tile(0.01 * np.sqrt(DISTANCES / 8.0), (SMOOTHINGS.size, 1))
        self._weights = np.full(DISTANCES.size, 5.0)
        self._move_said_came = 0.0
        self._move_said_said = 0.0

    @property
    def belief(self) -> float:
        """How much of the profile's move is believed, 0 to 1."""
        if self._move_said_said <= 0.0:
            return 0.5
        return float(np.clip(self._move_said_came / self._move_said_said, 0.0, 1.0))

    def observe(self, value: float, at_s: float) -> None:
        """Check what was said about this time, then learn from it."""
        log_value = self._logarithm.of(value)
        now = round(at_s / self._step_s)
        self._check(log_value, now)
        self._follow(log_value, at_s)
        self._settling.append((at_s, log_value))
        while self._settling and self._settling[0][0] <= at_s - SETTLE_S:
            self._learn(*self._settling.popleft())
        self._at_s = at_s
        slot = now % self._said_at.size
        moves = self._usual_moves(at_s, DISTANCES)
        self._said_at[slot] = now
        self._from_log[slot] = log_value
        self._moves_said[slot] = moves
        self._said[slot] = self._levels[:, None] + self.belief * moves

    def forecast(self, steps: int) -> Forecast:
        """The level moved as usual; the variance is that of the errors made at each distance."""
        if self._at_s is None:
            raise AskedWrongly("A forecast was asked for before any value was observed.")
        ahead = np.arange(1, steps + 1)
        best = int(np.argmin(np.log(self._squares).sum(axis=1)))
        log_mean = self._levels[best] + self.belief * self._usual_moves(self._at_s, ahead)
        squares = np.maximum.accumulate(self._squares[best])
        variance = np.interp(ahead, DISTANCES, squares)
        beyond = ahead > DISTANCES[-1]
        variance[beyond] = squares[-1] * ahead[beyond] / DISTANCES[-1]
        return to_levels(log_mean, variance)

    def _check(self, log_value: float, now: int) -> None:
        """Score what was said from each distance, and whether the usual moves came."""
        slots = (now - DISTANCES) % self._said_at.size
        known = self._said_at[slots] == now - DISTANCES
        if not known.any():
            return
        columns = np.arange(DISTANCES.size)[known]
        slots = slots[known]
        errors = log_value - self._said[slots, :, columns]
        weights = self._error_fading * self._weights[known] + 1.0
        self._squares[:, known] += (errors.T**2 - self._squares[:, known]) / weights
        self._weights[known] = weights
        said = self._moves_said[slots, columns]
        came = log_value - self._from_log[slots]
        # one week's memory, in readings of a minute
        self._move_said_came = 0.9999 * self._move_said_came + float(said @ came)
        self._move_said_said = 0.9999 * self._move_said_said + float(said @ said)

    def _follow(self, log_value: float, at_s: float) -> None:
        if self._at_s is None:
            self._levels[:] = log_value
            return
        steps = max(round((at_s - self._at_s) / self._step_s), 1)
        moved = self.belief * self._usual_moves(self._at_s, np.array([steps]))[0]
        keep = (1.0 - SMOOTHINGS) ** steps
        self._levels = log_value + keep * (self._levels + moved - log_value)

    def _usual_moves(self, at_s: float, steps: NDArray[np.int64]) -> Vector:
        """How the log load usually changes from now to each of these steps ahead."""
        position = (at_s + self._step_s * np.concatenate([[0], steps])) / (DAY_S / BINS) - 0.5
        left = np.floor(position)
        part = position - left
        left_bin = left.astype(np.int64) % (7 * BINS)
        right_bin = (left_bin + 1) % (7 * BINS)
        usual = (1.0 - part) * self._usual[left_bin] + part * self._usual[right_bin]
        trust = np.minimum(self._trust[left_bin], self._trust[right_bin])
        return np.asarray((usual[1:] - usual[0]) * np.minimum(trust[1:], trust[0]))

    def _learn(self, at_s: float, log_value: float) -> None:
        """Add a reading to both profiles and blend anew the bins it touched."""
        in_week = int(at_s // (DAY_S / BINS)) % (7 * BINS)
        in_day = in_week % BINS
        self._day.learn(in_day, at_s, log_value)
        self._week.learn(in_week, at_s, log_value)
        day, visits = self._day.mean[in_day], self._day.visits[in_day]
        week_visits = self._week.visits[in_day::BINS]
        lean = week_visits / (week_visits + TRUST_WEEK)
        self._usual[in_day::BINS] = day + lean * (self._week.mean[in_day::BINS] - day)
        self._trust[in_day::BINS] = visits / (visits + TRUST_DAY)
