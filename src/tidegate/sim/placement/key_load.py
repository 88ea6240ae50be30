"""Key distributions that change: Elasticutor's micro-benchmark (5.1) and stock exchange (5.4)."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]


class KeyLoad(Protocol):
    """The share of each key in the stream, over time."""

    @property
    def keys(self) -> int:
        """How many keys there are."""
        ...

    def era(self, at_s: float) -> int:
        """A number that changes whenever the shares change."""
        ...

    def shares(self, era: int) -> Vector:
        """The shares of all keys, which add up to 1."""
        ...


@dataclass(frozen=True, slots=True)
class ShuffledZipf:
    """Zipf frequencies, reassigned to other keys omega times a minute."""

    keys: int = 10_000
    exponent: float = 0.5
    shuffles_per_minute: float = 2.0
    seed: int = 7

    def era(self, at_s: float) -> int:
        """How often the keys have been shuffled by this time."""
        return int(at_s * self.shuffles_per_minute / 60.0 + 1e-9)

    def shares(self, era: int) -> Vector:
        """The zipf frequencies in the random order of this era."""
        weights = np.arange(1, self.keys + 1.0) ** -self.exponent
        order = np.random.default_rng((self.seed, era)).permutation(self.keys)
        return np.asarray(weights[order] / weights.sum())


@dataclass(frozen=True, slots=True)
class Stocks:
    """Orders of stocks: zipf popularity, with a drift and bursts of each stock.

    The paper's dataset is not public. Its figure 15 shows rates of single stocks that drift over
    minutes and multiply within seconds. Here the logarithm of a stock's rate is a stationary
    autoregression, and now and then one stock's rate is `burst` times as high for `burst_s`.
    """

    keys: int = 1_500
    exponent: float = 0.6
    wander: float = 0.6
    """Standard deviation of the logarithm of a stock's rate."""
    memory_s: float = 60.0
    burst: float = 4.0
    bursts_per_s: float = 0.2
    burst_s: int = 20
    seed: int = 7

    def era(self, at_s: float) -> int:
        """The second; the shares change every second."""
        return int(at_s + 1e-9)

    def shares(self, era: int) -> Vector:
        """The shares in this second, computed from the seed alone."""
        window = int(3 * self.memory_s)
        decay = np.exp(-1.0 / self.memory_s)
        level = np.zeros(self.keys)
        for second in range(era - window, era + 1):
            level *= decay
            level += self._random(second).normal(0.0, np.sqrt(1 - decay**2), self.keys)
        rates = np.arange(1, self.keys + 1.0) ** -self.exponent * np.exp(self.wander * level)
        for second in range(era - self.burst_s, era + 1):
            random = self._random(second + 10**6)
            if random.random() < self.bursts_per_s:
                rates[random.integers(self.keys)] *= self.burst
        return np.asarray(rates / rates.sum())

    def _random(self, second: int) -> np.random.Generator:
        return np.random.default_rng((self.seed, second + 10**4))
