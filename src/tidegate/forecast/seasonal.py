"""A seasonal forecaster: it learns how the load changes over the day and the week.

It works on the logarithm of the load. A daily profile, and a weekly one that falls back on the
daily one until it has enough data, predict how the load usually changes from now to a later time.
The level is tracked separately, so a jump raises the whole forecast at once. A regression of actual
changes on predicted ones learns how far to trust the profile, and the forecaster's own errors at
each distance give the variance: both are measured, not assumed.
"""

from collections import deque
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import AskedWrongly
from tidegate.forecast import Forecast
from tidegate.forecast.logarithm import Logarithm, to_levels
from tidegate.forecast.remembering import Remembered

Vector = NDArray[np.float64]

DAY_S = 86_400.0
BINS = 96
"""Bins of a day: a quarter of an hour each, with interpolation between them."""
DISTANCES = np.array([1, 2, 4, 8, 16, 32, 64])
"""Steps ahead at which the forecaster measures its own errors."""
SMOOTHINGS = np.array([1.0, 0.5, 0.2])
"""Smoothing factors of the level; the one with the smallest recent errors is used."""
SETTLE_S = 43_200.0
"""A reading enters the profile half a day late, so that today does not predict itself."""
TRUST_DAY = 0.5
TRUST_WEEK = 1.0
"""Visits after which a bin has half its weight: in the daily profile, and in the weekly profile
against the daily one."""


class _Profile(Remembered):
    """Mean log load per bin, with a lower weight for older visits. All readings of a bin on one
    day are one visit.
    """

    _LEARNED = ("mean", "visits", "_last_visit", "_readings")

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
        # The readings of this visit share the weight of one visit.
        share = 1.0 / (self.visits[index] * self._readings[index])
        self.mean[index] += share * (log_value - self.mean[index])


class SeasonalForecaster(Remembered):
    """The level plus the usual change at this time of day and week, with measured errors."""

    _LEARNED = (
        "_logarithm",
        "_day",
        "_week",
        "_usual",
        "_trust",
        "_settling",
        "_at_s",
        "_levels",
        "_squares",
        "_weights",
        "_cross_moment",
        "_predicted_moment",
        "_predicted",
        "_predicted_moves",
        "_from_log",
        "_predicted_at",
    )
    _LIKE: ClassVar = {"_settling": (0.0, 0.0), "_at_s": 0.0}

    def __init__(self, step_s: float = 60.0, error_fading: float = 0.995) -> None:
        if not step_s > 0:
            raise AskedWrongly(f"step_s is {step_s:g}, but a step must be longer than 0 s.")
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
        self._predicted = np.zeros((size, SMOOTHINGS.size, DISTANCES.size))
        self._predicted_moves = np.zeros((size, DISTANCES.size))
        self._from_log = np.zeros(size)
        self._predicted_at = np.full(size, -1, dtype=np.int64)
        self._squares = np.tile(0.01 * np.sqrt(DISTANCES / 8.0), (SMOOTHINGS.size, 1))
        self._weights = np.full(DISTANCES.size, 5.0)
        self._cross_moment = 0.0
        self._predicted_moment = 0.0

    @property
    def belief(self) -> float:
        """How far the changes that the profile predicts are trusted, from 0 to 1."""
        if self._predicted_moment <= 0.0:
            return 0.5
        return float(np.clip(self._cross_moment / self._predicted_moment, 0.0, 1.0))

    def observe(self, value: float, at_s: float) -> None:
        """Score the earlier forecasts of this step, then learn from the value."""
        log_value = self._logarithm.of(value)
        now = round(at_s / self._step_s)
        self._check(log_value, now)
        self._follow(log_value, at_s)
        self._settling.append((at_s, log_value))
        while self._settling and self._settling[0][0] <= at_s - SETTLE_S:
            self._learn(*self._settling.popleft())
        self._at_s = at_s
        slot = now % self._predicted_at.size
        moves = self._usual_moves(at_s, DISTANCES)
        self._predicted_at[slot] = now
        self._from_log[slot] = log_value
        self._predicted_moves[slot] = moves
        self._predicted[slot] = self._levels[:, None] + self.belief * moves

    def forecast(self, steps: int) -> Forecast:
        """The level plus the usual changes; the variance comes from the errors at each distance."""
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
        """Score the forecasts from each distance, and the changes that the profile predicted."""
        slots = (now - DISTANCES) % self._predicted_at.size
        known = self._predicted_at[slots] == now - DISTANCES
        if not known.any():
            return
        columns = np.arange(DISTANCES.size)[known]
        slots = slots[known]
        errors = log_value - self._predicted[slots, :, columns]
        weights = self._error_fading * self._weights[known] + 1.0
        self._squares[:, known] += (errors.T**2 - self._squares[:, known]) / weights
        self._weights[known] = weights
        predicted = self._predicted_moves[slots, columns]
        actual = log_value - self._from_log[slots]
        # A memory of about one week, with a reading per minute.
        self._cross_moment = 0.9999 * self._cross_moment + float(predicted @ actual)
        self._predicted_moment = 0.9999 * self._predicted_moment + float(predicted @ predicted)

    def _follow(self, log_value: float, at_s: float) -> None:
        if self._at_s is None:
            self._levels[:] = log_value
            return
        steps = max(round((at_s - self._at_s) / self._step_s), 1)
        moved = self.belief * self._usual_moves(self._at_s, np.array([steps]))[0]
        keep = (1.0 - SMOOTHINGS) ** steps
        self._levels = log_value + keep * (self._levels + moved - log_value)

    def _usual_moves(self, at_s: float, steps: NDArray[np.int64]) -> Vector:
        """How much the log load usually changes from now to each of these steps ahead."""
        position = (at_s + self._step_s * np.concatenate([[0], steps])) / (DAY_S / BINS) - 0.5
        left = np.floor(position)
        part = position - left
        left_bin = left.astype(np.int64) % (7 * BINS)
        right_bin = (left_bin + 1) % (7 * BINS)
        usual = (1.0 - part) * self._usual[left_bin] + part * self._usual[right_bin]
        trust = np.minimum(self._trust[left_bin], self._trust[right_bin])
        return np.asarray((usual[1:] - usual[0]) * np.minimum(trust[1:], trust[0]))

    def _learn(self, at_s: float, log_value: float) -> None:
        """Add a reading to both profiles, and blend the affected bins again."""
        in_week = int(at_s // (DAY_S / BINS)) % (7 * BINS)
        in_day = in_week % BINS
        self._day.learn(in_day, at_s, log_value)
        self._week.learn(in_week, at_s, log_value)
        day, visits = self._day.mean[in_day], self._day.visits[in_day]
        week_visits = self._week.visits[in_day::BINS]
        lean = week_visits / (week_visits + TRUST_WEEK)
        self._usual[in_day::BINS] = day + lean * (self._week.mean[in_day::BINS] - day)
        self._trust[in_day::BINS] = visits / (visits + TRUST_DAY)
