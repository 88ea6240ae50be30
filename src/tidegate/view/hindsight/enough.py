"""The fewest cores whose predicted latency is within a goal, by a model as it is now.

For one segment it is the smallest k whose prediction on k cores, with the imbalance to expect on k
cores, is within the goal. Loads change little from tick to tick, so the search begins where the
last one ended. For several segments it is the fewest along the planner's path of allocations.
"""

import math
from dataclasses import dataclass

from tidegate.control.allocation.allocate import Infeasible
from tidegate.control.latency.calibration import NEAR_FLOOR
from tidegate.control.latency.fewest_cores import CorePath, PredictedOutOfReach, predicted_s
from tidegate.control.learning.pipeline_model import PipelineModel
from tidegate.control.measurement import Measurement
from tidegate.control.operator_tasks import most_of

_ANY = 1 << 20
"""More cores than there ever are: finds what the target would need without a maximum."""
_HOPELESS = 256
"""After so many more cores that are all too few, the search goes another way."""
_AGAIN = 2
"""How often the cores are looked for again with the imbalance that is expected on them."""


@dataclass(frozen=True, slots=True)
class Enough:
    """Cores in all, and whether they hold the target; if none do, they come close to the best."""

    cores: int
    reachable: bool = True


class Search:
    """Finds the fewest cores for one load after another; the last answer is the next guess."""

    def __init__(self) -> None:
        self._last = 1

    def fewest(
        self,
        model: PipelineModel,
        tick: Measurement,
        rate: float,
        goal_s: float,
        share: float | None,
    ) -> Enough | None:
        """The fewest cores for so many rows a second; None while the cost of a batch is unknown.

        `share` is the share of rows that the goal is for; None: their mean.
        """
        if not tick.segments or not model.knows(tick):
            return None
        found = None
        if len(tick.segments) == 1:
            found = self._by_steps(model, tick, rate, goal_s, share)
        if found is None:
            found = along_path(model, tick, rate, goal_s, share)
        self._last = found.cores
        return found

    def _by_steps(
        self,
        model: PipelineModel,
        tick: Measurement,
        rate: float,
        goal_s: float,
        share: float | None,
    ) -> Enough | None:
        """Up or down from the last answer; None where more cores no longer help."""
        name = tick.segments[0].name
        most = most_of(tick, name, _ANY)

        def latency_s(cores: int) -> float:
            stations = model.stations(tick, rate, {name: cores})
            return predicted_s(stations, [cores], share) if stations else math.inf

        cores = min(self._last, most)
        at_s = latency_s(cores)
        if at_s <= goal_s:
            while cores > 1 and latency_s(cores - 1) <= goal_s:
                cores -= 1
            return Enough(cores)
        hopeless = cores + _HOPELESS
        while cores < most:
            if cores >= hopeless and math.isinf(at_s):
                return None
            next_s = latency_s(cores + 1)
            if math.isfinite(at_s) and next_s >= at_s:
                return None
            cores, at_s = cores + 1, next_s
            if at_s <= goal_s:
                return Enough(cores)
        return None


def along_path(
    model: PipelineModel, tick: Measurement, rate: float, goal_s: float, share: float | None
) -> Enough:
    """The fewest cores along the planner's allocations, for segments whose costs are known.

    More tasks are harder to balance, so they are looked for again with the imbalance to expect on
    the cores that were found, and the larger number counts.
    """
    found, cores = _on(model, tick, rate, goal_s, share, None)
    for _ in range(_AGAIN):
        again, more = _on(model, tick, rate, goal_s, share, cores)
        if again.cores <= found.cores:
            break
        found, cores = again, more
    return found


def _on(
    model: PipelineModel,
    tick: Measurement,
    rate: float,
    goal_s: float,
    share: float | None,
    cores: dict[str, int] | None,
) -> tuple[Enough, dict[str, int]]:
    stations = model.stations(tick, rate, cores)
    assert stations is not None  # asked only once every segment is known
    names = [segment.name for segment in tick.segments]
    most = [most_of(tick, name, _ANY) for name in names]
    path = CorePath(stations, share, least=[1] * len(names), most=most)
    reachable = True
    try:
        best = path.fewest(goal_s)
    except PredictedOutOfReach as error:
        best, reachable = path.fewest(error.latency_reachable_s * NEAR_FLOOR), False
    except Infeasible:
        # A segment cannot keep up within its own maximum of tasks: more cores would not help.
        given = [min(one.stable_from, limit) for one, limit in zip(stations, most, strict=True)]
        return Enough(sum(given), False), dict(zip(names, given, strict=True))
    given = [int(count) for count in best.cores]
    return Enough(best.total, reachable), dict(zip(names, given, strict=True))
