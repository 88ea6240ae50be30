"""When a series of throughput samples has converged: MST's K out of N method (II-A)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from tidegate.errors import AskedWrongly


@dataclass(frozen=True, slots=True, kw_only=True)
class Convergence:
    """Converged when K of the latest N samples lie within delta of the sample before each."""

    close: int = 4
    """K."""
    latest: int = 5
    """N."""
    delta: float = 0.05
    """How far a sample may be from the one before, as a share of that one."""

    def __post_init__(self) -> None:
        if not 1 <= self.close <= self.latest:
            raise AskedWrongly(
                f"{self.close} of the latest {self.latest} samples cannot converge: give K of N"
                " with K from 1 to N, such as 4 of 5"
            )
        if not 0.0 < self.delta < math.inf:
            raise AskedWrongly(
                f"samples within {self.delta:g} of the one before are never there: give a share"
                " above 0, such as 0.05"
            )

    def reached(self, samples: Sequence[float]) -> bool:
        """Whether these samples, oldest first, have converged. It takes N + 1 of them."""
        judged = samples[-(self.latest + 1) :]
        if len(judged) <= self.latest:
            return False
        near = sum(abs(one - before) <= self.delta * before for before, one in pairwise(judged))
        return near >= self.close
