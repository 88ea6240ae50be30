"""Forecasts the distribution of the next minutes' load from what followed similar minutes.

A mean and a variance do not describe a load that is calm for two hours and then fourfold for eight
minutes. Here the forecast is a weighted set of past windows: every minute in memory whose following
window is known is an analogue, weighted by its similarity to the present. What makes two minutes
similar (the level against the last hours, the slope, the minute of the hour, the time of day, the
time since the last surge) differs from load to load. So there are several similarity measures,
mixed by how well each predicted the windows that have since been observed.
"""

import math
import statistics
from dataclasses import dataclass, replace

import numpy as np
from numba import njit
from numpy.typing import NDArray

from tidegate.forecast.gap import GapDetector, Kind
from tidegate.forecast.remembering import Remembered

Vector = NDArray[np.float64]

STEP = 0.02
THRESHOLDS: Vector = np.round(np.arange(-150, 151) * STEP, 10)
"""Logarithms of load over the present level, from a twentieth to twentyfold."""

HOUR = 60
DAY = 24 * HOUR
MEMORY = 7 * DAY
"""Minutes in memory: a week, so that the same time last week can be an analogue."""
HALF_LIFE = 7 * DAY
"""The age in minutes at which an analogue has half its weight."""
OVERLAP = 5.0
"""Neighbouring minutes share most of their windows, so this many count as one observation."""
SMOOTHING = 0.02
"""Standard deviation, in log ratio, of the kernel that smooths the distribution."""
PRIOR_NARROW, PRIOR_WIDE, PRIOR_WIDE_SHARE = 0.35, 1.0, 0.05
"""Prior of the log ratio, a mixture of two normals; it counts as one observation."""
PRIOR_SURGE = 0.05
"""Prior probability of a surge in a window; it counts as one observation."""
SHARE = 0.001
"""Share of the weight that is spread evenly over the similarity measures each minute, so that none
is ruled out for good (fixed share)."""

SURGE_ABOVE, SURGE_OVER = 0.35, 0.15
"""Log ratios to the last hours' median: a surge begins above the first, ends below the second."""
FLOOR = 0.02
"""A load counts as at least this share of the largest load in memory."""

# One row per similarity measure: bandwidths of level, slope, minute of the half hour, minute of the
# hour, minute of the day, minutes since the last surge. A bandwidth of 0 ignores the feature.
SIMILARITIES: Vector = np.array(
    [
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        [0.10, 0.10, 0.0, 0.0, 0.0, 0.0],
        [0.05, 0.05, 0.0, 0.0, 0.0, 0.0],
        [0.20, 0.0, 1.0, 0.0, 0.0, 0.0],
        [0.20, 0.0, 1.0, 0.0, 0.0, 20.0],
        [0.20, 0.0, 0.0, 1.0, 0.0, 0.0],
        [0.20, 0.0, 0.0, 0.0, 10.0, 0.0],
        [0.10, 0.10, 1.0, 0.0, 0.0, 0.0],
        [0.20, 0.0, 1.0, 0.0, 0.0, 8.0],
        [0.30, 0.0, 1.0, 0.0, 15.0, 0.0],
        [0.20, 0.0, 0.0, 0.0, 0.0, 8.0],
    ]
)


@dataclass(frozen=True, slots=True)
class WindowOutlook:
    """The load of the next window, as a curve over `THRESHOLDS` (log of load over `level`)."""

    level: float
    """The present load."""
    minutes_above: Vector
    """Expected minutes of the window with a load above the threshold."""
    gap: bool
    """Whether the present minute is a gap in the data; the level is then the one before the gap."""
    highest_above: Vector
    """The probability that the highest minute of the window has a load above the threshold."""

    def scaled(self, factor: float) -> "WindowOutlook":
        """The same outlook with the load in another unit."""
        return replace(self, level=self.level * factor)

    def highest_load(self, coverage: float) -> float:
        """The load that the window's highest minute stays below with this probability."""
        # The curve falls with the threshold, but interp needs it to rise.
        place = np.interp(coverage - 1.0, -self.highest_above, THRESHOLDS)
        return self.level * math.exp(float(place))

    def median_load(self) -> float:
        """The load that is exceeded in half of the window's minutes."""
        half = float(self.minutes_above[0]) / 2
        # The curve falls with the threshold, but interp needs it to rise.
        place = np.interp(-half, -self.minutes_above, THRESHOLDS)
        return self.level * math.exp(float(place))


class Analogues(Remembered):
    """Remembers a week of minutes; call `observe` once a minute, then `outlook`.

    The window is the `length` minutes that begin `lead` minutes after the last observation: a
    machine requested now, which takes `lead` minutes to start, serves that window.
    """

    _LEARNED = ("_belief", "_surge_belief")

    def __init__(
        self,
        *,
        lead: int = 2,
        length: int = 1,
        memory: int = MEMORY,
        similarities: Vector = SIMILARITIES,
        half_life: float = HALF_LIFE,
    ) -> None:
        self.lead = lead
        self.length = length
        self._memory = memory
        self._similarities = np.ascontiguousarray(similarities, dtype=np.float64)
        self._half_life = half_life
        self._belief = np.full(len(similarities), 1.0 / len(similarities))
        self._surge_belief = self._belief.copy()
        self._awaiting: list[tuple[int, Vector, Vector]] = []
        self._minutes = 0
        self._largest = 0.0
        self._good: list[float] = []
        self._gaps = GapDetector()
        self._gap_before = False
        self._surging = False
        self._surge_at = -10 * DAY
        room = memory + length + lead + DAY
        self._first = 0
        self._log_load = np.full(room, np.nan)
        self._minute = np.zeros(room, dtype=np.int64)
        self._level = np.zeros(room)
        self._excess = np.zeros(room)
        self._slope = np.zeros(room)
        self._age = np.zeros(room)
        self._bins = np.full((room, length), -1, dtype=np.int16)
        self._surge = np.zeros(room, dtype=np.int8)

    @property
    def belief(self) -> Vector:
        """The present weight of each similarity measure."""
        return self._belief.copy()

    def miss(self, at_s: float, minutes: int = 1) -> None:
        """Pass over minutes of which nothing was measured, the last of which ended at `at_s`.

        Once no window reaches back before the gap, its minutes are all alike but for their time.
        These are filled in at once, because a gap of a week has ten thousand of them.
        """
        one_by_one = min(minutes, self.lead + self.length + 1)
        for left in range(minutes - 1, minutes - 1 - one_by_one, -1):
            now = self._begin(at_s - 60.0 * left)
            self._log_load[now] = np.nan
            self._gap_before = bool(self._good)
            self._describe(now)
            self._complete(now - self.lead - self.length)
        left = minutes - one_by_one
        while left > 0:
            left -= self._miss_at_once(at_s, left)

    def _miss_at_once(self, at_s: float, left: int) -> int:
        """Fill in as many of the missing minutes that are left as there is room for."""
        self._make_room()
        begin = self._minutes - self._first
        count = min(left, len(self._log_load) - begin)
        end = begin + count
        before, after = np.arange(count), begin - self.lead - self.length
        self._log_load[begin:end] = np.nan
        self._minute[begin:end] = round(at_s / 60.0) - left + 1 + before
        self._level[begin:end] = self._level[begin - 1]
        self._excess[begin:end] = self._excess[begin - 1]
        self._slope[begin:end] = self._slope[begin - 1]
        self._age[begin:end] = np.minimum(self._minutes + 1 + before - self._surge_at, 600)
        self._bins[after : after + count] = -1
        self._surge[after : after + count] = 0
        self._minutes += count
        last = self._first + after + count - 1
        self._awaiting = [one for one in self._awaiting if one[0] > last]
        return count

    def observe(self, load: float, at_s: float) -> None:
        """Learn the load of one minute, which ended at `at_s`."""
        now = self._begin(at_s)
        self._largest = max(self._largest, load)
        value = math.log(max(load, FLOOR * self._largest, 1e-300))
        if self._gaps.observe(load) is not Kind.LOAD:
            self._log_load[now] = np.nan
        else:
            if self._gap_before and value < self._good[-1] - 1.0:
                self._good.clear()  # it was no gap after all, but a lull at another level
            self._good.append(value)
            del self._good[:-90]
            self._log_load[now] = value
        self._gap_before = bool(np.isnan(self._log_load[now])) and bool(self._good)
        self._describe(now)
        self._complete(now - self.lead - self.length)

    def outlook(self) -> WindowOutlook:
        """The distribution of the next window's load, from the analogues of the last minute."""
        now = self._minutes - self._first - 1
        known = max(0, now - self.lead - self.length + 1)
        start = max(0, known - self._memory)
        above, largest, weight = _gather(  # first axis: calm, surge
            self._similarities,
            math.log(2.0) / self._half_life,
            now,
            start,
            known,
            self._minute,
            self._excess,
            self._slope,
            self._age,
            self._bins,
            self._surge,
            len(THRESHOLDS),
        )
        seen = weight / OVERLAP
        seen_all = seen[0] + seen[1]
        # A measure with few observations falls back on all minutes, and those on the prior.
        usual = (seen[1, 0] + PRIOR_SURGE) / (seen_all[0] + 1.0)
        hazard = (seen[1] + usual) / (seen_all + 1.0)
        hazard[0] = usual
        surge = float(self._surge_belief @ hazard)
        scores = _filled_up(largest[0], seen[0], _PRIOR)
        self._awaiting.append((self._minutes - 1, scores, hazard))
        minutes_above, highest_above = np.zeros((2, len(THRESHOLDS)))
        surging = self._surge_belief * hazard / surge
        for kind, chance, belief in ((0, 1.0 - surge, self._belief), (1, surge, surging)):
            steps = _filled_up(above[kind], seen[kind], self.length * _PRIOR)
            minutes_above += chance * _exceedance(belief @ steps)
            highest = _filled_up(largest[kind], seen[kind], _PRIOR)
            highest_above += chance * _exceedance(belief @ highest)
        return WindowOutlook(
            level=math.exp(self._level[now]),
            minutes_above=minutes_above,
            gap=bool(np.isnan(self._log_load[now])),
            highest_above=highest_above,
        )

    def _begin(self, at_s: float) -> int:
        """The place of the next minute."""
        self._make_room()
        now = self._minutes - self._first
        self._minutes += 1
        self._minute[now] = round(at_s / 60.0)
        return now

    def _describe(self, now: int) -> None:
        good = self._good
        level = sum(good[-2:]) / len(good[-2:]) if good else 0.0
        before = sum(good[-12:-10]) / 2 if len(good) >= 12 else level
        excess = level - statistics.median(good) if good else 0.0
        minute = self._minutes
        if not self._surging and excess > SURGE_ABOVE:
            self._surging, self._surge_at = True, minute
        elif self._surging and excess < SURGE_OVER:
            self._surging = False
        self._level[now] = level
        self._excess[now] = excess
        self._slope[now] = level - before
        self._age[now] = min(minute - self._surge_at, 600)

    def _complete(self, origin: int) -> None:
        """The window of this minute is complete: store it, and score the forecasts of it."""
        if origin < 0:
            return
        begin = origin + self.lead + 1
        ratios = self._log_load[begin : begin + self.length] - self._level[origin]
        bins = _bins(ratios)
        self._bins[origin] = bins
        surge = bool(bins[0] >= 0 and THRESHOLDS[bins[0]] + self._excess[origin] > SURGE_ABOVE)
        self._surge[origin] = surge
        number = origin + self._first
        while self._awaiting and self._awaiting[0][0] <= number:
            asked_at, scores, hazard = self._awaiting.pop(0)
            if asked_at != number or bins[0] < 0:
                continue
            share = SHARE * self.length
            likelihood = hazard if surge else 1.0 - hazard
            self._surge_belief = _revise(self._surge_belief, likelihood, share)
            if not surge:
                likelihood = _smooth_at(scores, int(bins[0])) + 1e-5
                self._belief = _revise(self._belief, likelihood, share)

    def _make_room(self) -> None:
        if self._minutes - self._first < len(self._log_load):
            return
        kept = self._memory + self.length + self.lead
        shift = len(self._log_load) - kept
        for column in (
            self._log_load,
            self._minute,
            self._level,
            self._excess,
            self._slope,
            self._age,
            self._bins,
            self._surge,
        ):
            column[:kept] = column[shift:].copy()
        self._first += shift


_KERNEL: Vector = np.exp(-0.5 * (np.arange(-4, 5) * STEP / SMOOTHING) ** 2)
_KERNEL /= _KERNEL.sum()
_PRIOR: Vector = (1 - PRIOR_WIDE_SHARE) / PRIOR_NARROW * np.exp(
    -0.5 * (THRESHOLDS / PRIOR_NARROW) ** 2
) + PRIOR_WIDE_SHARE / PRIOR_WIDE * np.exp(-0.5 * (THRESHOLDS / PRIOR_WIDE) ** 2)
_PRIOR /= _PRIOR.sum()


def _exceedance(steps: Vector) -> Vector:
    """Turn counts per bin into smoothed counts above each threshold."""
    smooth = np.convolve(steps, _KERNEL, mode="same")
    # Add what the kernel pushed over the edge back to the last bin.
    smooth[-1] += steps.sum() - smooth.sum()
    above = np.cumsum(smooth[::-1])[::-1]
    return np.asarray(np.maximum(np.append(above[1:], 0.0) + smooth / 2, 0.0))


def _filled_up(counted: Vector, seen: Vector, prior: Vector) -> Vector:
    """Per similarity measure, the mean of its counts and of the fallback as one observation.

    The first measure weighs all minutes alike. Its mean with the prior is the others' fallback.
    """
    counted = counted / OVERLAP
    usual = (counted[0] + prior) / (seen[0] + 1.0)
    filled = (counted + usual) / (seen + 1.0)[:, None]
    filled[0] = usual
    return np.asarray(filled)


def _revise(belief: Vector, likelihood: Vector, share: float) -> Vector:
    """Bayes' rule, with a small share spread evenly (fixed share)."""
    belief = belief * likelihood
    belief /= belief.sum()
    return np.asarray((1 - share) * belief + share / len(belief))


def _smooth_at(scores: Vector, place: int) -> Vector:
    first, last = max(0, place - 4), min(scores.shape[1], place + 5)
    return np.asarray(scores[:, first:last] @ _KERNEL[first - place + 4 : last - place + 4])


def _bins(ratios: Vector) -> NDArray[np.int16]:
    """Bins of a window's loads, largest first; -1 for minutes without a load."""
    bins = np.full(len(ratios), -1, dtype=np.int16)
    known = np.sort(ratios[~np.isnan(ratios)])[::-1]
    places = np.rint((known - THRESHOLDS[0]) / STEP)
    bins[: len(known)] = np.clip(places, 0, len(THRESHOLDS) - 1)
    return bins


@njit(cache=True, fastmath=True)
def _gather(  # type: ignore[no-untyped-def]
    likenesses, decay, now, start, stop, minute, excess, slope, age, bins, surge, size
):  # pragma: no cover - compiled
    """Weighted histograms over the analogues, for calm and surge, one row per measure."""
    kinds = likenesses.shape[0]
    above_out = np.zeros((2, kinds, size))
    largest_out = np.zeros((2, kinds, size))
    weight_out = np.zeros((2, kinds))
    sharpness = np.zeros(likenesses.shape)
    for kind in range(kinds):
        for feature in range(likenesses.shape[1]):
            if likenesses[kind, feature] > 0:
                sharpness[kind, feature] = 0.5 / likenesses[kind, feature] ** 2
    apart = np.zeros(likenesses.shape[1])
    for j in range(start, stop):
        if bins[j, 0] < 0:
            continue
        recency = decay * (j - now)
        apart[0] = (excess[j] - excess[now]) ** 2
        apart[1] = (slope[j] - slope[now]) ** 2
        minutes = minute[now] - minute[j]
        half_hour = minutes % 30
        hour = minutes % 60
        day = minutes % 1440
        apart[2] = float(min(half_hour, 30 - half_hour)) ** 2
        apart[3] = float(min(hour, 60 - hour)) ** 2
        apart[4] = float(min(day, 1440 - day)) ** 2
        apart[5] = (age[j] - age[now]) ** 2
        c = surge[j]
        for kind in range(kinds):
            exponent = recency
            for feature in range(6):
                exponent -= sharpness[kind, feature] * apart[feature]
            if exponent < -7.0:
                continue
            w = math.exp(exponent)
            weight_out[c, kind] += w
            largest_out[c, kind, bins[j, 0]] += w
            for s in range(bins.shape[1]):
                b = bins[j, s]
                if b < 0:
                    break
                above_out[c, kind, b] += w
    return above_out, largest_out, weight_out
