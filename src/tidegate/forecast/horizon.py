"""Selects the forecaster for a horizon, by how each has done on this load at that horizon.

What counts is the highest load up to the horizon, and how large a margin is needed to cover it with
probability rho. Every candidate has a conformal margin of its own and is scored by the pinball loss
of forecast and margin together, faded over time. Scores at one horizon say little about another, so
each length of horizon has its own.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tidegate.errors import AskedWrongly
from tidegate.forecast.conformal import AdaptiveConformal
from tidegate.forecast.remembering import Remembered, finite, held, plain

FEWEST = 12
"""Scores before a candidate may be used."""
EDGE = 0.1
"""Another candidate takes over when its loss is smaller by this share."""
FADING = 0.985
"""The weight of a score, compared with the next one's."""
MOST_MARGIN = math.log(2.0)
_MOST_SCORE = 2.0
_OPEN_AT_ONCE = 3
"""Forecasts that overlap: one begins in each third of a horizon, and at most every `_EVERY_S`."""
_EVERY_S = 5.0
_SMOOTHED = 0.125
"""Share of the horizon over which the load is smoothed before its highest value is taken. A spike
that is much shorter than the horizon is over before anything could be done about it."""
_LENGTHS_KEPT = 4
_SILENCE_S = 15.0
"""Without a tick for so long, open forecasts cannot be judged."""


@dataclass(slots=True)
class _Candidate(Remembered):
    """How one forecaster has done at one horizon."""

    _LEARNED = ("margin", "loss", "weight", "scores")

    margin: AdaptiveConformal = field(
        default_factory=lambda: AdaptiveConformal(memory=200, fading=0.985, gain=0.15, prior_sd=0.1)
    )
    loss: float = 0.0
    weight: float = 0.0
    scores: int = 0

    def recall(self, learned: Mapping[str, Any], age_s: float) -> None:
        """Begin with the scores of an earlier run.

        New ones soon outweigh old ones, and very old ones have to be earned again.
        """
        super(_Candidate, self).recall(learned, age_s)  # slots make another class of this one
        left = held(age_s)
        self.loss, self.weight = left * self.loss, left * self.weight
        self.scores = round(left * self.scores) if self.weight > 0.0 else 0

    def mean_loss(self) -> float:
        return self.loss / self.weight if self.scores >= FEWEST else math.inf


@dataclass(slots=True)
class _Open:
    """What the candidates said about the time up to `until_s`, and the highest load since."""

    until_s: float
    length: int
    points: dict[str, float]
    highest: float = 0.0


class HorizonSelection:
    """Call `observe` once a tick, then `choose` with the candidates' points.

    `own` is the candidate that comes with a margin of its own. It is used until another one has
    proved better.
    """

    def __init__(self, rho: float, own: str, *, tick_s: float = 1.0) -> None:
        if not 0.0 < rho < 1.0:
            raise AskedWrongly(f"rho is {rho:g}, but a coverage must be between 0 and 1.")
        self._rho = rho
        self._silence_s = max(_SILENCE_S, 3.0 * tick_s)
        self._own = own
        self._by_length: dict[int, dict[str, _Candidate]] = {}
        self._selected: dict[int, str] = {}
        self._open: list[_Open] = []
        self._last_s = -math.inf
        self._opened_s = -math.inf
        self._length_s = 0.0
        self._smooth = 0.0
        """The rate, smoothed over a part of the horizon."""

    def losses(self, horizon_s: float) -> dict[str, float]:
        """The mean pinball loss of each candidate at about this horizon, in log units."""
        known = self._by_length.get(_length(horizon_s), {})
        return {name: one.mean_loss() for name, one in known.items()}

    def selected(self, horizon_s: float) -> str:
        """The candidate in use at about this horizon."""
        return self._selected.get(_length(horizon_s), self._own)

    def observe(self, rate: float, at_s: float) -> None:
        """Judge the forecasts whose horizon ends with this tick."""
        if at_s - self._last_s > max(self._silence_s, 0.2 * self._length_s):
            self._open.clear()
        known = self._smooth > 0.0 and self._length_s > 0.0
        passed = (at_s - self._last_s) / (_SMOOTHED * self._length_s) if known else math.inf
        self._smooth += (rate - self._smooth) * -math.expm1(-max(passed, 0.0))
        self._last_s = at_s
        still = []
        for one in self._open:
            one.highest = max(one.highest, self._smooth)
            if at_s >= one.until_s - 1e-6:
                self._judge(one)
            else:
                still.append(one)
        self._open = still

    def choose(
        self, points: Mapping[str, float], horizon_s: float, at_s: float
    ) -> tuple[str, float, float]:
        """The candidate to use, its point and its margin (in logarithms, 0 for `own`)."""
        length = _length(horizon_s)
        every_s = max(horizon_s / _OPEN_AT_ONCE, _EVERY_S)
        if at_s - self._opened_s >= every_s and min(points.values()) > 0.0:
            self._open.append(_Open(at_s + horizon_s, length, dict(points)))
            self._opened_s, self._length_s = at_s, horizon_s
        name = self._selected.get(length, self._own)
        if name == self._own or name not in points:
            return self._own, points[self._own], 0.0
        margin = self._by_length[length][name].margin.quantile(self._rho)
        return name, points[name], min(margin, MOST_MARGIN)

    def learned(self) -> dict[str, Any]:
        """How every candidate has done, for each length of horizon, and what is still open."""
        lengths = {
            str(length): {
                "selected": self._selected.get(length, self._own),
                "candidates": {name: one.learned() for name, one in known.items()},
            }
            for length, known in self._by_length.items()
        }
        said = [[one.until_s, one.length, one.points, one.highest] for one in self._open]
        times = [plain(one) for one in (self._last_s, self._opened_s, self._length_s)]
        return {"lengths": lengths, "open": said, "times_s": times, "smooth": self._smooth}

    def recall(self, learned: Mapping[str, Any], age_s: float) -> None:
        """Begin with how the candidates did in an earlier run, by the age of that."""
        self._open = [
            _Open(
                finite(until_s),
                int(length),
                {str(name): finite(point) for name, point in points.items() if point > 0.0},
                finite(highest),
            )
            for until_s, length, points, highest in learned["open"]
        ]
        times_s = [float(one) for one in learned["times_s"]]
        if any(map(math.isnan, times_s)):
            raise ValueError("a time is not a number")
        self._last_s, self._opened_s, self._length_s = times_s
        self._smooth = finite(learned["smooth"])
        for text, one in learned["lengths"].items():
            length, known = int(text), {}
            for name, candidate in one["candidates"].items():
                known[name] = _Candidate()
                known[name].recall(candidate, age_s)
            self._by_length[length] = known
            selected = one["selected"]
            if selected in known and known[selected].mean_loss() < math.inf:
                self._selected[length] = selected

    def _judge(self, one: _Open) -> None:
        if one.highest <= 0.0:
            return
        known = self._by_length.setdefault(one.length, {})
        for name, point in one.points.items():
            candidate = known.setdefault(name, _Candidate())
            score = math.log(one.highest) - math.log(point)
            score = min(max(score, -_MOST_SCORE), _MOST_SCORE)
            over = score
            if name != self._own:
                over -= min(candidate.margin.quantile(self._rho), MOST_MARGIN)
                candidate.margin.update(score)
            loss = max(self._rho * over, (self._rho - 1.0) * over)
            candidate.loss = FADING * candidate.loss + loss
            candidate.weight = FADING * candidate.weight + 1.0
            candidate.scores += 1
        self._select(one.length, known)
        while len(self._by_length) > _LENGTHS_KEPT:
            oldest = next(length for length in self._by_length if length != one.length)
            del self._by_length[oldest]
            self._selected.pop(oldest, None)

    def _select(self, length: int, known: Mapping[str, _Candidate]) -> None:
        losses = {name: candidate.mean_loss() for name, candidate in known.items()}
        best = min(losses, key=losses.__getitem__)
        used = self._selected.get(length, self._own)
        if losses[best] < (1.0 - EDGE) * losses.get(used, math.inf):
            self._selected[length] = best


def _length(horizon_s: float) -> int:
    """The class of horizons of similar length: a factor of two and a half from one to the next."""
    return round(math.log(max(horizon_s, 1.0)) / math.log(2.5))
