"""Selects, among several forecasters, the one that has recently done best.

What counts is the highest load of the next cycle, and how large a margin on the forecast must be to
cover it with probability rho. So each candidate has its own conformal margin, and is scored by the
pinball loss of forecast plus margin. A forecaster that is off by a constant factor loses nothing; a
forecaster that is right only on average does.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tidegate.errors import AskedWrongly
from tidegate.forecast import Forecast, Forecaster
from tidegate.forecast.conformal import AdaptiveConformal
from tidegate.forecast.remembering import Remembered, finite


@dataclass(frozen=True, slots=True)
class _Predicted:
    """The candidates' forecasts of the highest load of one cycle."""

    at_step: int
    points: dict[str, float]


class SelectedForecaster(Remembered):
    """Forecasts with the candidate of the smallest discounted loss.

    Another candidate takes over when its loss is smaller by the share `edge`. Every `every` steps
    the candidates forecast the cycle of `cycle` steps that begins `lead` steps later. `lead` is the
    start-up time of machines (the paper's U), and `cycle` the time between decisions (S).
    """

    _LEARNED = ("_candidates", "_margins", "_losses", "_selected", "_recent", "_step")

    def __init__(
        self,
        candidates: Mapping[str, Forecaster],
        *,
        lead: int = 2,
        cycle: int = 10,
        rho: float = 0.95,
        every: int = 10,
        fading: float = 0.98,
        edge: float = 0.05,
    ) -> None:
        if not candidates:
            raise AskedWrongly("A selection needs at least one candidate forecaster.")
        self._candidates = dict(candidates)
        self._lead, self._cycle, self._every = lead, cycle, every
        self._rho = rho
        self._fading = fading
        self._edge = edge
        self._margins = {name: AdaptiveConformal() for name in self._candidates}
        self._losses = dict.fromkeys(self._candidates, 0.0)
        self._selected = next(iter(self._candidates))
        self._recent: deque[float] = deque(maxlen=lead + cycle)
        self._predicted: deque[_Predicted] = deque()
        self._step = 0

    @property
    def selected(self) -> str:
        """The name of the candidate in use."""
        return self._selected

    @property
    def losses(self) -> dict[str, float]:
        """Discounted pinball loss of each candidate, in log units; smaller is better."""
        return dict(self._losses)

    def observe(self, value: float, at_s: float) -> None:
        """Pass the value to all candidates, score the cycle that it ends, forecast the next."""
        for candidate in self._candidates.values():
            candidate.observe(value, at_s)
        self._recent.append(value)
        self._step += 1
        horizon = self._lead + self._cycle
        while self._predicted and self._predicted[0].at_step + horizon <= self._step:
            self._judge(self._predicted.popleft().points)
        if self._step % self._every == 0:
            points = {
                name: point_of(candidate.forecast(horizon), self._lead)
                for name, candidate in self._candidates.items()
            }
            self._predicted.append(_Predicted(self._step, points))

    def forecast(self, steps: int) -> Forecast:
        """What the selected candidate says."""
        return self._candidates[self._selected].forecast(steps)

    def learned(self) -> dict[str, Any]:
        """What the candidates have learned, how they have done, and what they last said."""
        said = [[one.at_step, dict(one.points)] for one in self._predicted]
        return {**super().learned(), "predicted": said}

    def recall(self, learned: Mapping[str, Any], age_s: float) -> None:
        """Begin with what the candidates of an earlier run learned."""
        before = self._selected
        super().recall(learned, age_s)
        if self._selected not in self._candidates:
            self._selected = before
        said = learned.get("predicted", [])
        self._predicted = deque(
            _Predicted(int(step), {name: finite(points[name]) for name in self._candidates})
            for step, points in said
        )

    def _judge(self, points: dict[str, float]) -> None:
        highest = max(list(self._recent)[-self._cycle :])
        if not highest > 0:
            return
        for name, point in points.items():
            margin = self._margins[name]
            score = float(np.log(highest) - np.log(point)) if point > 0 else 10.0
            over = score - margin.quantile(self._rho)
            loss = max(self._rho * over, (self._rho - 1.0) * over)
            self._losses[name] = self._fading * self._losses[name] + (1 - self._fading) * loss
            margin.update(score)
        best = min(self._losses, key=self._losses.__getitem__)
        if self._losses[best] < (1.0 - self._edge) * self._losses[self._selected]:
            self._selected = best


def point_of(forecast: Forecast, lead: int) -> float:
    """A point forecast of a cycle's highest load: eq. 14 with one deviation instead of two."""
    mean, variance = forecast.highest(lead, sigmas=1.0)
    return mean + float(np.sqrt(variance))
