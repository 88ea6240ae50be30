"""A capacity that is learned while a pipeline runs, from no sample on (MST III-B).

The paper trains its curves before the start and adds saturated intervals later. It says that online
training alone "can gradually approach the accuracy with offline training", but not how to begin: a
curve of eq. 2 has four weights. So the first samples go into the Bayesian model, which has an
answer from the first one on, and the paper's curves take over when there are enough.
"""

from collections import deque
from collections.abc import Collection

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tidegate.models.capacity.bayes import BayesianCapacity
from tidegate.models.capacity.choice import choose
from tidegate.models.capacity.machines import CapacityModel
from tidegate.models.capacity.samples import Samples, check_sample
from tidegate.models.capacity.shapes import Shape

Vector = NDArray[np.float64]

MEMORY = 200
"""The newest samples that count: a pipeline that runs for weeks changes."""
_SUGGESTED = 60
"""The newest estimates that stand in for samples."""
FEWEST_COUNTS = max(shape.weights for shape in Shape)
"""Numbers of cores that must have been measured before the paper's curves are fitted."""


class OnlineCapacity:
    """The paper's curves on the newest samples; with few samples the Bayesian model."""

    def __init__(
        self, samples: Samples = (), *, max_machines: int = 128, curve: str | None = None
    ) -> None:
        """`samples` were measured before. They count until as many new ones take their place.

        `curve` is the shape that a calibration has chosen (III-A2); None: the error chooses.
        """
        self._shape = None if curve is None else Shape(curve)
        self.measured = tuple(samples)
        for m, throughput in self.measured:
            check_sample(m, throughput)
        self._samples: deque[tuple[int, float]] = deque(maxlen=MEMORY)
        self._suggested: deque[tuple[int, float]] = deque(maxlen=_SUGGESTED)
        self._max_machines = max_machines
        self._model: CapacityModel | None = None

    @property
    def known(self) -> bool:
        """Whether there is any sample or estimate."""
        return bool(self.measured or self._samples or self._suggested)

    @property
    def samples(self) -> tuple[tuple[int, float], ...]:
        """What was learned here, oldest first: neither measured before nor an estimate."""
        return tuple(self._samples)

    def observe(self, m: int, throughput: float) -> None:
        """Learn from a saturated interval; the model is fitted when it is next needed."""
        check_sample(m, throughput)
        self._samples.append((m, throughput))
        self._model = None

    def suggest(self, m: int, throughput: float) -> None:
        """Note an estimate from an interval that was not saturated.

        The newest ones stand in for samples while these are too few for a curve. Without them a
        pipeline with too many cores would never be saturated, and never learn that it has too many.
        """
        check_sample(m, throughput)
        self._suggested.append((m, throughput))
        if not enough(self._sampled()):
            self._model = None

    def mean(self, m: ArrayLike) -> Vector:
        """Expected throughput at m machines.

        Beyond the measured counts it grows in proportion at most: a parabola through a few noisy
        samples may rise ever faster, but no pipeline does.
        """
        machines = np.asarray(m, dtype=np.float64)
        most = self._most()
        mean = self._fitted().mean(m)
        top = float(self._fitted().mean(np.array([min(most, self._max_machines)]))[0])
        return np.where(machines > most, np.minimum(mean, top * machines / most), mean)

    def variance(self, m: ArrayLike) -> Vector:
        """Predictive variance of one interval's throughput at m machines.

        Beyond the measured counts it is that of the largest one, relative to the mean. Eq. 7 has
        one variance for all counts. The Bayesian model is ever less sure further away, so no count
        would be enough with probability rho, and a load just above the capacity of a few machines
        would get all that there may be.
        """
        model = self._fitted()
        variance = model.variance(m)
        if not isinstance(model, BayesianCapacity):
            return variance
        most = min(self._most(), self._max_machines)
        relative = model.variance([most])[0] / model.mean([most])[0] ** 2
        beyond = np.asarray(m) > most
        return np.where(beyond, np.minimum(variance, relative * self.mean(m) ** 2), variance)

    def quantile(self, m: ArrayLike, probability: float) -> Vector:
        """Throughput that one interval at m machines stays below with this probability."""
        return self._fitted().quantile(m, probability)

    def _most(self) -> int:
        """The largest count that was measured."""
        return max(count for count, _ in self._counting())

    def _sampled(self) -> list[tuple[int, float]]:
        """The samples that count. Those that were measured before give way from all counts."""
        room = MEMORY - len(self._samples)
        places = range(len(self.measured))
        if len(self.measured) > room:
            places = np.linspace(0, len(self.measured) - 1, room).round().astype(int).tolist()
        return [*(self.measured[place] for place in places), *self._samples]

    def _counting(self) -> list[tuple[int, float]]:
        """The samples, and the estimates while samples are too few."""
        samples = self._sampled()
        return samples if enough(samples) else [*samples, *self._suggested]

    def _fitted(self) -> CapacityModel:
        if self._model is None:
            samples, most = self._counting(), self._max_machines
            if enough(samples):
                self._model = choose(samples, max_machines=most, only=self._shape).model
            else:
                self._model = BayesianCapacity(samples, max_machines=most)
        return self._model


def enough(samples: Collection[tuple[int, float]]) -> bool:
    """Whether both curves of the paper can be fitted."""
    return len(samples) > FEWEST_COUNTS and len({m for m, _ in samples}) >= FEWEST_COUNTS
