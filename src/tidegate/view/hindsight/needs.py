"""How many cores each tick of a run needed, found afterwards from its records.

The fewest cores are found as the planner finds them, but with what the planner cannot have: the
load that really came, the whole target without a margin or a reserve, and the costs as they are
known a minute later, when the batches of that time have ended. Beside it is what was believed at
the tick itself, so that a wrong belief can be told from a wrong forecast.
"""

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tidegate.control.latency.calibration import Calibration
from tidegate.control.latency.fewest_cores import predicted_s
from tidegate.control.learning.pipeline_model import PipelineModel
from tidegate.control.record import Record
from tidegate.control.target import Target
from tidegate.view.hindsight.enough import Enough, Search
from tidegate.view.hindsight.rates import BATCHES, rates_that_came
from tidegate.view.hindsight.settings import InForce

LATER_S = 60.0
"""A tick is judged by the costs that are known so much later, or at the end of the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What one tick needed."""

    rate: float
    """Rows per second that came."""
    enough: int
    """The fewest cores that hold the target, in whole executors, up to the maximum."""
    wanted: int
    """The same without the maximum."""
    reachable: bool
    """Whether any number of cores holds the target; if not, `enough` come close to the best."""
    believed: int | None
    """The same cores by the costs as they were known at the tick; None before they were."""
    planned: int | None
    """By those costs and for the load that was forecast; None without a forecast."""


@dataclass(frozen=True, slots=True)
class Question:
    """Which mean latency did the model of a tick predict for this load on these cores?"""

    rate: float
    cores: Mapping[str, int]
    """Of each segment."""


class Needs:
    """Goes through the records of one run, in time order, with a model that learns as it did."""

    def __init__(
        self,
        run: Sequence[Record],
        settings: Sequence[InForce],
        questions: Mapping[int, Question] | None = None,
        watch: Callable[[], None] = lambda: None,
    ) -> None:
        self._run = run
        self._settings = settings
        self._questions = questions or {}
        self._watch = watch
        self.predicted_s: dict[int, float] = {}
        """The answers to the questions, where the model had one; complete after `find`."""
        self._model = PipelineModel()
        self._calibration: Calibration | None = None
        self._target: Target | None = None
        self._now, self._ahead, self._later = Search(), Search(), Search()
        recalled = run[0].recalled if run else None
        if recalled is not None:
            learned = recalled["learned"]
            age_s = max(float(recalled["now_s"]) - float(learned["at_s"]), 0.0)
            self._model.recall(learned.get("model", {}), age_s)
        batch_s = [
            0.0 if one.target is None else one.target.mean_s / BATCHES for one in self._settings
        ]
        self._rates = rates_that_came([one.measurement for one in run], batch_s)

    def find(self) -> list[Need | None]:
        """The need of each tick; None where no target or no cost of a batch is known."""
        believed: list[tuple[int | None, int | None]] = []
        found: list[Need | None] = [None] * len(self._run)
        waiting: deque[int] = deque()
        for place, record in enumerate(self._run):
            self._learn(place)
            believed.append(self._believed(place))
            self._answer(place)
            self._watch()
            waiting.append(place)
            due_s = record.measurement.at_s - LATER_S
            while self._run[waiting[0]].measurement.at_s <= due_s:
                judged = waiting.popleft()
                found[judged] = self._need(judged, believed[judged])
        for judged in waiting:
            found[judged] = self._need(judged, believed[judged])
        return found

    def _answer(self, place: int) -> None:
        """Predict the latency that a question is about, with what the model knows at its tick."""
        question, tick = self._questions.get(place), self._run[place].measurement
        if question is None or self._calibration is None:
            return
        if set(question.cores) != {segment.name for segment in tick.segments}:
            return
        cores = {segment.name: question.cores[segment.name] for segment in tick.segments}
        stations = self._model.stations(tick, question.rate, cores)
        if stations:
            found = predicted_s(stations, list(cores.values()), None) * self._calibration.bias
            if math.isfinite(found):
                self.predicted_s[place] = found

    def _learn(self, place: int) -> None:
        tick, target = self._run[place].measurement, self._settings[place].target
        if tick.stale is not None:
            return
        self._model.learn(tick)
        if target is None:
            return
        self._calibrate_for(target)
        present = self._model.stations(tick)
        if present and self._calibration is not None:
            self._calibration.learn(tick, present)

    def _calibrate_for(self, target: Target) -> None:
        """A calibration for another target begins with what the one before learned."""
        before = self._calibration
        if before is None or self._target != target:
            self._calibration, self._target = Calibration(target, self._model), target
            if before is not None:
                self._calibration.recall(before.learned(), 0.0)

    def _believed(self, place: int) -> tuple[int | None, int | None]:
        record = self._run[place]
        now = self._fewest(place, self._rates[place], self._now)
        forecast = record.beliefs.get("forecast_rate")
        if now is None or forecast is None:
            return None if now is None else now.cores, None
        planned = forecast * record.beliefs.get("margin", 1.0)
        ahead = self._fewest(place, planned, self._ahead)
        return now.cores, None if ahead is None else ahead.cores

    def _need(self, place: int, believed: tuple[int | None, int | None]) -> Need | None:
        found = self._fewest(place, self._rates[place], self._later)
        if found is None:
            return None
        most = self._settings[place].most(self._run[place].share)
        return Need(
            rate=self._rates[place],
            enough=min(found.cores, most),
            wanted=found.cores,
            reachable=found.reachable,
            believed=believed[0],
            planned=believed[1],
        )

    def _fewest(self, place: int, rate: float, search: Search) -> Enough | None:
        """The fewest cores for a load, by the costs that the model knows now."""
        tick, settings = self._run[place].measurement, self._settings[place]
        if settings.target is None or self._calibration is None:
            return None
        goal_s = settings.target.latency_s / self._calibration.factor
        found = search.fewest(self._model, tick, rate, goal_s, settings.target.share)
        return None if found is None else Enough(settings.whole(found.cores), found.reachable)
